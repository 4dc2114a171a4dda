#!/usr/bin/env python3
"""The highest rate of VITA 49 packets at MTU 9000 that is received without a loss, with the sender on
the same CPUs.

As root through a veth pair between two network namespaces, else over loopback. A rate holds when
each of `--trials` runs loses no packet, by the sequence, by the kernel's count and by the sender's,
and the sender kept its pace. Two figures: with the workers paused, which is reception alone, and
with every spectrum computed, where no frame may be dropped either.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import time

from programs import BINARIES, ENVIRONMENT, PATIENCE_S, remove_runtime_folder

CHANNELS = 16
PORT = 4991


def run(*command):
    subprocess.run(list(command), check=True, capture_output=True, timeout=20)


class Link:
    """A veth pair between two namespaces, or loopback where that is not allowed."""

    def __init__(self):
        self.names = [f"echelle-{os.getpid()}-{end}" for end in ("rx", "tx")]
        self.is_veth = os.geteuid() == 0 and shutil.which("ip") is not None
        self.address = "10.49.0.1" if self.is_veth else "127.0.0.1"

    def __enter__(self):
        if not self.is_veth:
            return self
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "v0", "netns", self.names[0], "type", "veth", "peer", "v1",
            "netns", self.names[1])
        for index, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"10.49.0.{index + 1}/24", "dev", f"v{index}")
            run("ip", "-n", name, "link", "set", f"v{index}", "mtu", "9000", "up")
        return self

    def __exit__(self, *error):
        if self.is_veth:
            for name in self.names:
                subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)

    def start(self, end, program, *arguments):
        prefix = ["ip", "netns", "exec", self.names[end]] if self.is_veth else []
        return subprocess.Popen(
            [*prefix, str(BINARIES / program), *map(str, arguments)], env=ENVIRONMENT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )


def control(*arguments):
    return subprocess.run([str(BINARIES / "echellectl"), "--json", *arguments], env=ENVIRONMENT,
                          capture_output=True, timeout=20, check=False)


def one_run(link, rate_hz, seconds, paused):
    """Whether nothing was lost, and what was counted."""
    folder = ENVIRONMENT["XDG_RUNTIME_DIR"]
    report_path, sent_path = f"{folder}/report.json", f"{folder}/sent.json"
    stream = f"framing=vita49&channels={CHANNELS}&rate={int(rate_hz)}"
    receiver = link.start(0, "echelle-coordinator", "--quiet", "--report", report_path, "--source",
                          f"udp:{link.address}:{PORT}?{stream}", "--duration", PATIENCE_S)
    sender = None
    try:
        while control("status").returncode != 0:
            if receiver.poll() is not None:
                raise RuntimeError("the coordinator did not start")
            time.sleep(0.05)
        time.sleep(0.3)
        if paused:
            control("pause")
        sender = link.start(
            1, "echelle-fpga-sim", "--channels", CHANNELS, "--rate", int(rate_hz), "--layout",
            "sample-major", "--signal", "tone(f=1MHz, a=8000)", "--duration", seconds,
            "--send-report", sent_path, "--send", f"udp://{link.address}:{PORT}?mtu=9000",
        )
        sender.wait(timeout=PATIENCE_S)
        time.sleep(0.5)
        receiver.send_signal(signal.SIGINT)
        receiver.wait(timeout=PATIENCE_S)
    finally:
        for process in (sender, receiver):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    with open(report_path) as file:
        report = json.load(file)
    with open(sent_path) as file:
        sent = json.load(file)
    counted = {
        "sent": sent["sent"], "seconds": sent["seconds"],
        "delivered": report["source"]["packets"]["delivered"],
        "lost": report["source"]["packets"]["lost"],
        "overflow": report["source"]["receive_queue"]["overflow"],
        "dropped": report["frames"]["dropped"],
    }
    kept_pace = sent["seconds"] < 1.02 * seconds + 0.01
    whole = counted["delivered"] == counted["sent"] and not counted["overflow"]
    return kept_pace and whole and (paused or not counted["dropped"]), counted


def search(link, seconds, trials, steps, paused, low, high):
    """Bisection between two rates, in samples per second of each channel."""
    tried, held = [], None
    for _ in range(steps):
        rate_hz = (low + high) / 2
        runs = []
        while len(runs) < trials and all(good for good, _ in runs):
            runs.append(one_run(link, rate_hz, seconds, paused))
        good = all(each for each, _ in runs)
        tried.append({"rate_hz": rate_hz, "held": good, "last": runs[-1][1]})
        if good:
            held = tried[-1]
        low, high = (rate_hz, high) if good else (low, rate_hz)
    bits = 8 * 2 * CHANNELS
    return {
        "rate_hz": held and held["rate_hz"],
        "gbit_per_s_of_samples": held and held["rate_hz"] * bits / 1e9,
        "packets_per_s": held and held["last"]["sent"] / held["last"]["seconds"],
        "tried": tried,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each run (3)")
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6, help="halvings of the range (6)")
    parser.add_argument("--highest", type=float, default=60e6,
                        help="rate of each of 16 channels to begin from (60e6)")
    given = parser.parse_args()
    with Link() as link:
        found = {
            "link": "veth, MTU 9000" if link.is_veth else "loopback",
            "cpus": len(os.sched_getaffinity(0)), "channels": CHANNELS,
        }
        for name, paused in (("received", True), ("received_and_computed", False)):
            found[name] = search(link, given.seconds, given.trials, given.steps, paused, 0.0,
                                 given.highest)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
