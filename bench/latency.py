#!/usr/bin/env python3
"""Latency of 16-channel frames in real time, for both kinds of wake-up, beside what two processes
need to wake each other at the same pace and nothing more.

Latency is the coordinator's own: frame complete in the ring -> its spectra collected. Every frame
gives a spectrum (--average 1), so a frame waits for no other.
"""

import argparse
import json

from programs import Cluster, median, remove_runtime_folder, run_bench, simulated

CHANNELS = 16
WORKERS = 2
PERIOD_US = 204.8
KINDS = ("zmq", "futex")


def run_chain(kind, seconds):
    arguments = ("--source", simulated("realtime", channels=CHANNELS), "--workers", WORKERS,
                 "--average", 1, "--notify", kind)
    with Cluster(*arguments, duration_s=seconds) as cluster:
        return cluster.finish()


def hops_of(report):
    """The histograms of the single hops, where the report has them."""
    return report.get("hops_us")


def measure_round(kind, seconds):
    trips = int(seconds * 1e6 / PERIOD_US)
    paced = run_bench("round_trip", "--kind", kind, "--trips", trips, "--period-us", PERIOD_US)
    unpaced = run_bench("round_trip", "--kind", kind, "--trips", trips, "--period-us", 0)
    report = run_chain(kind, seconds)
    return {
        "latency": report["frame_us"]["latency"],
        "compute_us": report["frame_us"]["core"] / WORKERS,
        "dropped": sum(report["frames"]["dropped"].values()),
        "round_trip": paced,
        "round_trip_unpaced": unpaced,
        "hops": hops_of(report),
    }


def summary(rounds):
    def over_rounds(figure):
        return median(figure(each) for each in rounds)

    chain = {p: over_rounds(lambda r, p=p: r["latency"][p]) for p in ("p50", "p90", "p99")}
    trip = {p: over_rounds(lambda r, p=p: r["round_trip"][f"{p}_us"])
            for p in ("p50", "p90", "p99")}
    begun_us = over_rounds(lambda r: r["round_trip"]["p99_since_begun_us"])
    unpaced = {p: over_rounds(lambda r, p=p: r["round_trip_unpaced"][f"{p}_us"])
               for p in ("p50", "p99")}
    compute_us = over_rounds(lambda r: r["compute_us"])
    return {
        "chain_us": chain, "round_trip_us": trip, "round_trip_unpaced_us": unpaced,
        "compute_us": compute_us, "round_trip_p99_since_begun_us": begun_us,
        "p99_over_allowed": chain["p99"] / (2 * (trip["p99"] + compute_us)),
        "dropped": sum(each["dropped"] for each in rounds),
        "hops": rounds[-1]["hops"],
    }


def measure(repeats, seconds):
    rounds = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind in KINDS:
            rounds[kind].append(measure_round(kind, seconds))
    return {kind: summary(rounds[kind]) for kind in KINDS}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each run (5)")
    given = parser.parse_args()
    print(json.dumps(measure(given.repeats, given.seconds), indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
