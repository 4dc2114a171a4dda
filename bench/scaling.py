#!/usr/bin/env python3
"""Throughput against the number of workers, changed by `echellectl scale` within one lossless run."""

import json
import subprocess
import time

from chain import look_at
from programs import ANSWER_S, BINARIES, ENVIRONMENT, Cluster, remove_runtime_folder, simulated

COUNTS = (1, 2, 3, 4, 8, 2, 1)
SETTLING_S = 1.0


def scale(workers):
    subprocess.run([str(BINARIES / "echellectl"), "scale", str(workers)], env=ENVIRONMENT,
                   stdout=subprocess.DEVNULL, timeout=ANSWER_S, check=True)


def frames_per_s(cluster, seconds):
    before, _, _ = look_at(cluster)
    time.sleep(seconds)
    after, _, _ = look_at(cluster)
    return (after["frames"]["done"] - before["frames"]["done"]) / (after["wall_s"] - before["wall_s"])


def measure(seconds):
    """Frames per second with each number of workers in turn, and what was lost meanwhile."""
    steps = []
    with Cluster("--source", simulated("asap"), "--workers", COUNTS[0],
                 duration_s=60 + 2 * seconds * len(COUNTS)) as cluster:
        cluster.wait_until_at_work()
        for workers in COUNTS:
            scale(workers)
            time.sleep(SETTLING_S)
            steps.append({"workers": workers, "frames_per_s": frames_per_s(cluster, seconds)})
        report = cluster.stop()
    return {"steps": steps, "frames": report["frames"], "blocks": report["blocks"],
            "worker_private_max_bytes": report["memory"]["worker_private_max_bytes"]}


if __name__ == "__main__":
    try:
        print(json.dumps(measure(2.0), indent=2))
    finally:
        remove_runtime_folder()
