#!/usr/bin/env python3
"""Whole runs against bare FFTW on the same cores, in turns: core time per frame and throughput.

The chain's core time is all CPU time of all its processes (workers, ZeroMQ's threads, coordinator)
while it runs steadily, divided by the frames done meanwhile.
"""

import argparse
import itertools
import json
import time

import process_times
from programs import Cluster, kernel_alone, median, remove_runtime_folder, simulated

LAYOUTS = ("channel-major", "sample-major")
AVERAGES = (16, 1)
WORKERS = (1, 2)
WARM_UP_S = 0.3
ATTEMPTS = 5


def measure_chain(workers, layout, average, seconds, notify="zmq"):
    """One run; again, a few times, when a worker was replaced in it: its CPU time is gone then."""
    for _ in range(ATTEMPTS):
        run = run_chain(workers, layout, average, seconds, notify)
        if not run["recoveries"]:
            return run
    raise RuntimeError(f"workers were replaced in each of {ATTEMPTS} runs: the machine is too busy "
                       "to measure")


def look_at(cluster):
    """Status, CPU times, and when those were read."""
    status = cluster.steady_status()
    began_s = time.monotonic()
    times = process_times.cpu_times_ns(cluster.session)
    return status, times, (began_s + time.monotonic()) / 2


def run_chain(workers, layout, average, seconds, notify):
    """Core time per frame by role and thread, and frames per second, of one run."""
    arguments = ("--source", simulated("asap"), "--layout", layout, "--average", average,
                 "--workers", workers, "--notify", notify)
    with Cluster(*arguments) as cluster:
        cluster.wait_until_at_work()
        time.sleep(WARM_UP_S)
        before, times_before, at_before_s = look_at(cluster)
        time.sleep(seconds)
        after, times, at_s = look_at(cluster)
        memory = process_times.memory_bytes(cluster.session)
        report = cluster.stop()
    frames = after["frames"]["done"] - before["frames"]["done"]
    if frames <= 0:
        raise RuntimeError("no frame was done while it was measured")
    # By way of rates, for frames and CPU times are not read at quite the same moment.
    frames_per_s = frames / (after["wall_s"] - before["wall_s"])
    core_us = {
        f"{role}: {thread}": (used_ns - times_before.get((role, thread), 0)) / 1000
        / (at_s - at_before_s) / frames_per_s
        for (role, thread), used_ns in times.items()
    }
    return {
        "core_us": sum(core_us.values()),
        "core_us_by_thread": core_us,
        "worker_report_us": report["frame_us"]["core"],
        "frames_per_s": frames_per_s,
        "block": {key: report["config"][key]
                  for key in ("block_frames", "block_channels", "block_reason")},
        "page_kind": report["memory"]["page_kind"],
        "memory": memory,
        "recoveries": len(report["recoveries"]),
    }


def medians_by_thread(rounds):
    names = sorted({name for each in rounds for name in each["chain"]["core_us_by_thread"]})
    return {
        name: median(each["chain"]["core_us_by_thread"].get(name, 0.0) for each in rounds)
        for name in names
    }


def measure_shape(workers, layout, average, repeats, seconds):
    """Turns of kernels alone and chain; medians, and medians of the ratios of each turn."""
    shape = {"layout": layout, "average": average}
    rounds = []
    for _ in range(repeats):
        alone = kernel_alone(1, seconds / 2, **shape)
        at_once = kernel_alone(workers, seconds / 2, **shape) if workers > 1 else alone
        chain = measure_chain(workers, layout, average, seconds)
        rounds.append({"alone": alone, "at_once": at_once, "chain": chain})

    def over_rounds(figure):
        return median(figure(each) for each in rounds)

    return {
        "workers": workers, "layout": layout, "average": average,
        "bare_fft_us": over_rounds(lambda r: r["at_once"]["bare_fft_us"]),
        "engine_us": over_rounds(lambda r: r["at_once"]["engine_us"]),
        "seal_us": over_rounds(lambda r: r["at_once"]["seal_us"]),
        "chain_us": over_rounds(lambda r: r["chain"]["core_us"]),
        "worker_report_us": over_rounds(lambda r: r["chain"]["worker_report_us"]),
        "engine_over_bare_fft": over_rounds(lambda r: r["at_once"]["engine_over_bare_fft"]),
        "chain_over_bare_fft": over_rounds(
            lambda r: r["chain"]["core_us"] / r["at_once"]["bare_fft_us"]),
        "chain_us_by_thread": medians_by_thread(rounds),
        "frames_per_s": over_rounds(lambda r: r["chain"]["frames_per_s"]),
        # Of what as many kernels would do, each with a core as one alone has it; and as all have
        # it when they compute at the same time.
        "throughput_over_kernels_alone": over_rounds(
            lambda r: r["chain"]["frames_per_s"] * r["alone"]["engine_us"] / 1e6 / workers),
        "throughput_over_kernels_at_once": over_rounds(
            lambda r: r["chain"]["frames_per_s"] * r["at_once"]["engine_us"] / 1e6 / workers),
        "block": rounds[-1]["chain"]["block"],
        "page_kind": rounds[-1]["chain"]["page_kind"],
        "kernels": rounds[-1]["alone"]["kernels"],
        "plan": rounds[-1]["alone"]["plan"],
        "memory": rounds[-1]["chain"]["memory"],
    }


def measure(repeats, seconds):
    return [
        measure_shape(workers, layout, average, repeats, seconds)
        for average, layout, workers in itertools.product(AVERAGES, LAYOUTS, WORKERS)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each run (3)")
    given = parser.parse_args()
    print(json.dumps(measure(given.repeats, given.seconds), indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
