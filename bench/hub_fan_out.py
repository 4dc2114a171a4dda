#!/usr/bin/env python3
"""What a hub delivers to 1, 10 and 100 subscribers, beside a coordinator's own feed: messages a second,
what was missed, and the CPU time of publisher and readers.

    python3 bench/hub_fan_out.py [--seconds 5] [--rate HZ] [--build build/bench]

The coordinator, the hub and the process that holds all subscribers share the machine's CPUs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CHANNELS, SAMPLES, NPERSEG = 16, 2048, 1024
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def wait_for(path, process):
    deadline = time.monotonic() + 20
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"hub_fan_out: {process.args[0]} does not offer {path}")
        time.sleep(0.01)


def measure(programs, subscribers, through_hub, seconds, rate_hz):
    with tempfile.TemporaryDirectory(prefix="ech-", dir="/tmp") as runtime:
        environment = dict(os.environ, XDG_RUNTIME_DIR=runtime)

        def start(program, *arguments, **options):
            return subprocess.Popen([str(programs / program), *map(str, arguments)],
                                    env=environment, **options)

        source = f"sim:?channels={CHANNELS}&samples={SAMPLES}&rate={rate_hz}"
        coordinator = start("echelle-coordinator", "--quiet", "--source", source, "--workers", 1,
                            "--nperseg", NPERSEG, "--average", 1, "--fft-effort", "estimate")
        started = [coordinator]
        try:
            publisher, name = coordinator, "echelle"
            wait_for(Path(runtime) / "echelle/echelle/feed", coordinator)
            if through_hub:
                name = "hub"
                publisher = start("echelle-hub", "--quiet", "--topic", "psd/")
                started.append(publisher)
                wait_for(Path(runtime) / "echelle/hub/feed", publisher)
            endpoint = f"ipc://{runtime}/echelle/{name}/feed"
            before_s, began = cpu_s(publisher.pid), time.monotonic()
            reader = start("bench_hub_fan_out", endpoint, subscribers, seconds,
                           stdout=subprocess.PIPE, text=True)
            out, _ = reader.communicate(timeout=seconds + 60)
            wall_s = time.monotonic() - began
            publisher_s = cpu_s(publisher.pid) - before_s
            if reader.returncode != 0:
                sys.exit("hub_fan_out: the readers failed")
            counted = json.loads(out)
            return {
                "through": "hub" if through_hub else "feed", "subscribers": subscribers,
                "offered_per_s": subscribers * CHANNELS * rate_hz / SAMPLES,
                "delivered_per_s": counted["messages"] / counted["seconds"],
                "mbyte_per_s": counted["bytes"] / counted["seconds"] / 1e6,
                "missed_fraction": counted["missed"]
                / max(1, counted["messages"] + counted["missed"]),
                "publisher_cpus": publisher_s / wall_s,
            }
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=float, default=2e5, help="samples/s of each of 16 channels")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build/bench")
    options = parser.parse_args()
    for through_hub in (False, True):
        for subscribers in (1, 10, 100):
            row = measure(options.build / "bin", subscribers, through_hub, options.seconds,
                          options.rate)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
