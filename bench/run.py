#!/usr/bin/env python3
"""Runs the whole bench and keeps what it found: build/bench/results.json, the tables on the screen
and, when asked, those of docs/performance.md. bench/run.sh builds everything first.

What is compared is measured in turns inside one run, and figures are medians over the turns.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]
import chain  # noqa: E402
import critical_rate  # noqa: E402
import feed_load  # noqa: E402
import latency  # noqa: E402
import measure as peers  # noqa: E402
import mqtt_rates  # noqa: E402
import packet_parse  # noqa: E402
import real_time  # noqa: E402
import scaling  # noqa: E402
import tables  # noqa: E402
from programs import (  # noqa: E402
    BUILD, cpus, median, remove_runtime_folder, run_bench, run_google_benchmark,
)

# Lengths in seconds and numbers of turns: enough to see that it works, or to be believed.
QUICK = {
    "kernels": (3, 0.02), "packet": (5, 0.02), "ledger": (3, 0.02),
    "hand_out": (1, 1.0), "chain": (1, 0.8), "latency": (1, 1.5), "real_time": 5.0, "scaling": 1.0,
    "peers": (1, 0.8, 16), "critical_rate": {"seconds": 2.0, "trials": 1, "needed": 1, "steps": 3},
    "mqtt": (1, 10_000), "feed_load": (1, 2.0), "feed_paths": 200,
}
FULL = {
    "kernels": (15, 0.1), "packet": (15, 0.1), "ledger": (9, 0.1),
    "hand_out": (5, 2.0), "chain": (5, 3.0), "latency": (5, 6.0), "real_time": 60.0, "scaling": 5.0,
    "peers": (5, 2.0, 64), "critical_rate": {"seconds": 30.0, "trials": 3, "needed": 2, "steps": 5},
    "mqtt": (5, 40_000), "feed_load": (3, 8.0), "feed_paths": 2000,
}
HAND_OUT_RATE = 132_700  # per second, published for a design of this kind


def machine():
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")), platform.machine())
    commit = subprocess.run(
        ["git", "-C", str(HERE), "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    return {"cpu": model, "cpus": len(cpus()), "kernel": platform.release(),
            "load_before": os.getloadavg()[0], "commit": commit}


def measure_hand_out(repeats, seconds):
    figures = {}
    for kind in latency.KINDS:
        figures[kind] = {"fastest": [], "paced": []}
    for _ in range(repeats):
        for kind in latency.KINDS:
            common = ("--notify", kind, "--seconds", seconds)
            figures[kind]["fastest"].append(run_bench("hand_out", *common))
            figures[kind]["paced"].append(run_bench("hand_out", *common, "--rate", HAND_OUT_RATE))
    return {
        kind: {
            "blocks_per_s": median(run["blocks_per_s"] for run in runs["fastest"]),
            "paced_blocks_per_s": median(run["blocks_per_s"] for run in runs["paced"]),
            "paced_p50_us": median(run["p50_us"] for run in runs["paced"]),
            "paced_p99_us": median(run["p99_us"] for run in runs["paced"]),
        }
        for kind, runs in figures.items()
    }


def measure_critical_rate(options):
    return [critical_rate.search(workers, **options) for workers in (1, 2)]


def sections(lengths):
    """name -> what measures it, in the order in which they run."""
    return {
        "kernels": lambda: run_google_benchmark("kernels", *lengths["kernels"]),
        "chain": lambda: chain.measure(*lengths["chain"]),
        "real_time": lambda: real_time.measure(lengths["real_time"]),
        "scaling": lambda: scaling.measure(lengths["scaling"]),
        "latency": lambda: latency.measure(*lengths["latency"]),
        "hand_out": lambda: measure_hand_out(*lengths["hand_out"]),
        "ledger": lambda: run_google_benchmark("ledger", *lengths["ledger"]),
        "packet": lambda: run_google_benchmark("packet", *lengths["packet"]),
        "packet_parse": packet_parse.measure,
        "feed_load": lambda: feed_load.measure_cases(*lengths["feed_load"]),
        "feed_paths": lambda: run_bench("feed_paths", "--spectra", lengths["feed_paths"]),
        "mqtt": lambda: mqtt_rates.measure(*lengths["mqtt"]),
        "peers": lambda: peers.measure(*lengths["peers"]),
        "critical_rate": lambda: measure_critical_rate(lengths["critical_rate"]),
    }


def run(mode, wanted):
    results = {"mode": mode, "date": datetime.date.today().isoformat(), "machine": machine(),
               "failed": {}}
    for name, measure in sections(QUICK if mode == "quick" else FULL).items():
        if wanted and name not in wanted:
            continue
        began = time.monotonic()
        print(f"{name} ...", file=sys.stderr, end=" ", flush=True)
        try:
            results[name] = measure()
            print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
        except (RuntimeError, subprocess.SubprocessError) as error:
            # The other sections' figures are as good as before.
            results["failed"][name] = str(error)
            print(f"failed: {error}", file=sys.stderr)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes, figures only roughly")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="these sections: "
                        + ", ".join(sections(QUICK)))
    parser.add_argument("--results", type=Path, default=BUILD / "results.json")
    parser.add_argument("--write-docs", action="store_true",
                        help="put the tables into docs/performance.md")
    parser.add_argument("--tables-only", action="store_true",
                        help="measure nothing: tables of the results that are there")
    given = parser.parse_args()
    if not given.tables_only:
        results = run("quick" if given.quick else "full", given.only)
        given.results.write_text(json.dumps(results, indent=2) + "\n")
        print(f"results: {given.results}", file=sys.stderr)
    results = json.loads(given.results.read_text())
    print(tables.all_tables(results))
    if given.write_docs:
        tables.write_into(HERE.parent / "docs/performance.md", results)
    if failed := results.get("failed"):
        sys.exit(f"bench: no figures for {', '.join(failed)}; see above")


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
