#!/usr/bin/env python3
"""128 channels at 10 MS/s in real time on two workers: whether a frame is lost, with bare FFTW on
the same two cores measured before and after, and the memory that the run takes."""

import argparse
import json
import time

import process_times
from programs import Cluster, kernel_alone, median, remove_runtime_folder, simulated

WORKERS = 2
RATE = 10e6


def run_chain(seconds):
    arguments = ("--source", simulated("realtime", channels=128, rate=int(RATE)),
                 "--workers", WORKERS)
    with Cluster(*arguments, duration_s=seconds) as cluster:
        cluster.wait_until_at_work()
        time.sleep(seconds / 2)
        memory = process_times.memory_bytes(cluster.session)
        return cluster.finish(), memory


def planning_ms():
    """What a start spends on plans when the wisdom of an earlier start is there: FFTW's for the pairs
    as well, which no CPU with 512-bit vectors needs by itself."""
    for _ in range(2):
        with Cluster("--source", simulated("asap", channels=128, frames=16), "--workers", WORKERS,
                     "--fft", "fftw") as cluster:
            fft = cluster.finish()["fft"]
    if fft["wisdom"] != "read":
        raise RuntimeError(f"the second start's wisdom was {fft['wisdom']}, not read")
    return fft["planning_ms"]


def measure(seconds):
    before = kernel_alone(WORKERS, 1.0)
    report, memory = run_chain(seconds)
    after = kernel_alone(WORKERS, 1.0)
    return {
        "seconds": seconds,
        "bare_fft_us": median((before["bare_fft_us"], after["bare_fft_us"])),
        "frames": report["frames"],
        "dropped": sum(report["frames"]["dropped"].values()),
        "realtime_factor": report["realtime_factor"],
        "worker_core_us": report["frame_us"]["core"],
        "latency": report["frame_us"]["latency"],
        "planning_ms": planning_ms(),
        "memory_report": report["memory"],
        "memory": memory,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the run (60)")
    print(json.dumps(measure(parser.parse_args().seconds), indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
