#!/usr/bin/env python3
"""The highest simulated sample rate at which a run loses nothing.

A run can fail by chance, so a rate holds when `--needed` of `--trials` runs lose nothing. Bisection
between 40 % and 110 % of what the cluster does as fast as it can; a run that has lost a frame is
stopped at once.
"""

import argparse
import json
import time

from chain import measure_chain
from programs import Cluster, remove_runtime_folder, simulated

CHANNELS = 128
SAMPLES = 2048
LOOK_EVERY_S = 0.5


def loses_nothing(rate_hz, workers, seconds):
    """One run at this rate."""
    arguments = ("--source", simulated("realtime", channels=CHANNELS, rate=int(rate_hz)),
                 "--workers", workers)
    with Cluster(*arguments, duration_s=seconds) as cluster:
        cluster.wait_until_at_work()
        while cluster.process.poll() is None:
            status = cluster.status()
            if status and status["frames"]["dropped"]:
                return False
            time.sleep(LOOK_EVERY_S)
        report = cluster.finish()
    frames = report["frames"]
    wanted = 0.99 * seconds * rate_hz / SAMPLES  # the source kept its pace as well
    return not frames["dropped"] and frames["in_flight"] == 0 and frames["done"] >= wanted


def holds(rate_hz, workers, seconds, trials, needed):
    """Answers (whether the rate holds, what each trial said)."""
    outcomes = []
    while outcomes.count(True) < needed and outcomes.count(False) <= trials - needed:
        outcomes.append(loses_nothing(rate_hz, workers, seconds))
    return outcomes.count(True) >= needed, outcomes


def search(workers, seconds, trials, needed, steps):
    top = measure_chain(workers, "channel-major", 16, 2.0)["frames_per_s"] * SAMPLES
    low, high = 0.4 * top, 1.1 * top
    tried = []
    for _ in range(steps):
        rate_hz = (low + high) / 2
        held, outcomes = holds(rate_hz, workers, seconds, trials, needed)
        tried.append({"rate_hz": rate_hz, "held": held, "trials": outcomes})
        low, high = (rate_hz, high) if held else (low, rate_hz)
    held_rates = [each["rate_hz"] for each in tried if each["held"]]
    return {
        "workers": workers, "seconds": seconds, "as_fast_as_possible_hz": top,
        # None: not even the lowest rate tried held.
        "critical_rate_hz": max(held_rates, default=None),
        "resolution_hz": high - low,
        "tried": tried,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each run (30)")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--needed", type=int, default=2, help="runs that must lose nothing (2)")
    parser.add_argument("--steps", type=int, default=6, help="halvings of the range (6)")
    given = parser.parse_args()
    found = [search(workers, given.seconds, given.trials, given.needed, given.steps)
             for workers in given.workers]
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
