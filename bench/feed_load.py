#!/usr/bin/env python3
"""What subscribers cost the data path: 128 channels in real time, alternately with no subscriber, with
1 and 10 that read every spectrum, and with one that never reads.

Each run is a coordinator of its own; subscribers are processes of their own, connected over ipc once
frames are being worked on, and stay until the end. They have a nice value of 19 (--nice), since on
the coordinator's own cores they would otherwise measure the kernel's scheduler: elsewhere they would
take no core time from workers at all.

With --minutes M: one run of that length with 10 subscribers and one that never reads; the
coordinator's memory, looked at once a second, tells whether it grows.

Prints a table, then one JSON object.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import struct
import sys
import time
from typing import NamedTuple

import process_times
from programs import ENVIRONMENT, Cluster, median, remove_runtime_folder, simulated

CHANNELS = 128
WORKERS = 2
SETTLING_S = 2  # after the subscribers' start: what they cost once is not what is measured
CASES = {"none": (0, 0), "1 reads": (1, 0), "10 read": (10, 0), "1 never reads": (0, 1)}
SEQUENCE_BEHIND_END = 112 - 8  # docs/packet.md: a u64 in the trailer of a 1.1 packet


def subscribe(endpoint, reads, nice, ended, counts):
    """A subscriber's process. Puts (received, missed) when it was told to end."""
    os.nice(nice)  # before the import, which is work as well
    import zmq

    feed = zmq.Context.instance().socket(zmq.SUB)
    feed.set(zmq.LINGER, 0)
    feed.set(zmq.RCVTIMEO, 100)
    feed.connect(endpoint)
    feed.subscribe(b"psd/")
    received = missed = 0
    following = {}
    parent = os.getppid()
    while not ended.is_set() and os.getppid() == parent:  # none outlives a bench that was killed
        if not reads:
            ended.wait(0.1)
            continue
        try:
            topic, packet = feed.recv_multipart()
        except zmq.Again:
            continue
        (sequence,) = struct.unpack_from(">Q", packet, len(packet) - SEQUENCE_BEHIND_END)
        missed += sequence - following.get(topic, sequence)
        following[topic] = sequence + 1
        received += 1
    counts.put((received, missed))


class Subscribers:
    def __init__(self, reading, idle, nice):
        endpoint = f"ipc://{ENVIRONMENT['XDG_RUNTIME_DIR']}/echelle/echelle/feed"
        context = multiprocessing.get_context("spawn")  # a forked ZeroMQ context is none
        self.ended, self.counts = context.Event(), context.Queue()
        self.processes = [
            context.Process(
                target=subscribe, args=(endpoint, is_reader, nice, self.ended, self.counts)
            )
            for is_reader in [True] * reading + [False] * idle
        ]
        for process in self.processes:
            process.start()

    def end(self):
        """(spectra received, spectra missed), of all together."""
        self.ended.set()
        found = [self.counts.get(timeout=60) for _ in self.processes]
        for process in self.processes:
            process.join(60)
        return tuple(sum(column) for column in zip(*found)) if found else (0, 0)


def memory_of_coordinator(session):
    return process_times.memory_bytes(session)["coordinator"]["private"]


class Load(NamedTuple):
    """What the coordinator does, and how its subscribers are run."""

    rate: float = 10e6  # samples/s of a channel
    average: int = 16  # frames of a spectrum
    notify: str = "zmq"
    nice: int = 19  # of the subscribers


def run_chain(reading, idle, seconds, load):
    arguments = ["--source", simulated("realtime", channels=CHANNELS, rate=int(load.rate)),
                 "--workers", WORKERS, "--average", load.average, "--notify", load.notify]
    with Cluster(*arguments, duration_s=seconds + 60) as cluster:
        cluster.wait_until_at_work()
        subscribers = Subscribers(reading, idle, load.nice)
        while cluster.steady_status()["feed"]["subscribers"] < reading + idle:
            time.sleep(0.1)
        time.sleep(SETTLING_S)
        before = cluster.steady_status()
        memory, began = [], time.monotonic()
        while time.monotonic() - began < seconds:
            memory.append(memory_of_coordinator(cluster.session))
            time.sleep(min(1.0, seconds / 4))
        after = cluster.steady_status()
        received, missed = subscribers.end()
        report = cluster.stop()
    return figures_of(before, after, report, memory) | {
        "received": received, "missed": missed, "memory": memory,
    }


def figures_of(before, after, report, memory):
    frames = after["frames"]["in"] - before["frames"]["in"]
    lost = sum(after["frames"]["dropped"].values()) - sum(before["frames"]["dropped"].values())
    return {
        "frames": frames,
        "lost": lost,
        "lost_before": sum(before["frames"]["dropped"].values()),
        # Of the whole run, as what subscribers tell of themselves.
        "published": report["feed"]["published"],
        "feed_missed": after["feed"]["missed"] - before["feed"]["missed"],
        "queue_full": after["feed"]["queue_full"] - before["feed"]["queue_full"],
        "latency": report["frame_us"]["latency"],
        "worker_core_us": report["frame_us"]["core"],
        "memory_first_mib": memory[0] / 2**20,
        "memory_last_mib": memory[-1] / 2**20,
    }


def summary(rounds):
    return {
        "frames": sum(each["frames"] for each in rounds),
        "lost": sum(each["lost"] for each in rounds),
        "published": sum(each["published"] for each in rounds),
        "received": sum(each["received"] for each in rounds),
        "missed": sum(each["missed"] for each in rounds),
        "p50_us": median(each["latency"]["p50"] for each in rounds),
        "p99_us": median(each["latency"]["p99"] for each in rounds),
        "worker_core_us": median(each["worker_core_us"] for each in rounds),
        "memory_mib": max(each["memory_last_mib"] for each in rounds),
        "rounds": rounds,
    }


def measure_cases(repeats, seconds, load=Load()):
    rounds = {name: [] for name in CASES}
    for number in range(repeats):
        for name, (reading, idle) in CASES.items():
            print(f"round {number + 1}: {name} ...", file=sys.stderr)
            rounds[name].append(run_chain(reading, idle, seconds, load))
    return {name: summary(each) for name, each in rounds.items()}


def measure_memory(minutes, load):
    print(f"{minutes:g} minutes, 10 read and 1 never reads ...", file=sys.stderr)
    run = run_chain(10, 1, minutes * 60, load)
    tenth = max(1, len(run["memory"]) // 10)
    mib = [each / 2**20 for each in run["memory"]]
    first, last = statistics.mean(mib[:tenth]), statistics.mean(mib[-tenth:])
    return run | {"first_tenth_mib": first, "last_tenth_mib": last, "most_mib": max(mib)}


def table_of(cases):
    lines = ["| subscribers | frames | lost | P50 us | P99 us | core us | spectra published | "
             "received | missed | coordinator MiB |", "|" + " ---: |" * 10]
    for name, of in cases.items():
        lines.append(
            f"| {name} | {of['frames']} | {of['lost']} | {of['p50_us']:.0f} | {of['p99_us']:.0f} | "
            f"{of['worker_core_us']:.1f} | {of['published']} | {of['received']} | {of['missed']} | "
            f"{of['memory_mib']:.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each run (10)")
    parser.add_argument("--minutes", type=float, help="one long run instead, for memory")
    parser.add_argument("--rate", type=float, default=10e6, help="samples/s of a channel (10e6)")
    parser.add_argument("--average", type=int, default=16, help="frames of a spectrum (16)")
    parser.add_argument("--notify", choices=("zmq", "futex"), default="zmq")
    parser.add_argument("--nice", type=int, default=19, help="of the subscribers (19)")
    given = parser.parse_args()
    load = Load(given.rate, given.average, given.notify, given.nice)
    settings = {"channels": CHANNELS, "workers": WORKERS, **vars(given)}
    if given.minutes:
        run = measure_memory(given.minutes, load)
        print(f"coordinator's private memory over {given.minutes:g} minutes: first tenth "
              f"{run['first_tenth_mib']:.2f} MiB, last tenth {run['last_tenth_mib']:.2f} MiB, most "
              f"{run['most_mib']:.2f} MiB; {run['lost']} of {run['frames']} frames lost")
        print(json.dumps({"settings": settings, "memory": run}, indent=2))
        return
    cases = measure_cases(given.repeats, given.seconds, load)
    print(table_of(cases))
    print(json.dumps({"settings": settings, "cases": cases}, indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
