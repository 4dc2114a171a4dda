"""Workers are killed, stopped and continued, added and taken away at random, and the nursery is
killed, while a lossless source runs: the recording must be that of an undisturbed run.

ECHELLE_LONG_TESTS=1 does so again and again for 30 minutes instead of once."""

import os
import random
import signal
import time

import pytest

from cluster import check_books, read_report, wait_until
from recordings import masked

LONG = os.environ.get("ECHELLE_LONG_TESTS") == "1"
SECONDS = 1800 if LONG else 0  # the disturbed run is repeated until this time is over
FRAMES = 60_000 if LONG else 30_000  # each is generated anew: some ten thousand a second


class Disturber:
    """Does something to a running coordinator's processes, at random."""

    def __init__(self, place, name, seed):
        self.place, self.name = place, name
        self.random = random.Random(seed)
        self.stopped = []
        self.done = {"kill": 0, "stop": 0, "continue": 0, "scale": 0, "nursery": 0}

    def workers(self):
        return [pid for pid, comm in self.place.processes().items() if comm == "echelle-worker"]

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # somebody was quicker

    def disturb(self):
        choice = self.random.choices(
            ["kill", "stop", "continue", "scale", "nursery"], [60, 12, 18, 9, 1])[0]
        if choice == "kill" and (workers := self.workers()):
            self.send(self.random.choice(workers), signal.SIGKILL)
        elif choice == "stop" and (workers := self.workers()):
            self.stopped.append(self.random.choice(workers))
            self.send(self.stopped[-1], signal.SIGSTOP)
        elif choice == "continue" and self.stopped:
            self.send(self.stopped.pop(0), signal.SIGCONT)
        elif choice == "scale":
            answer = self.place.control("--name", self.name, "scale", self.random.randint(1, 6))
            if answer.code != 0:
                return
        elif choice == "nursery":
            for pid, comm in self.place.processes().items():
                if comm == "echelle-nursery":
                    self.send(pid, signal.SIGKILL)
        else:
            return
        self.done[choice] += 1


def source(frames):
    return f"sim:?channels=16&samples=512&pace=asap&generate=each&seed=5&frames={frames}"


def disturbed_run(place, seed, options):
    """Runs to the end under disturbances; returns the recording's path, the report and what was done."""
    record, report_path = place.output / "wild.spectra", place.output / "wild.json"
    run = place.coordinator("--source", source(FRAMES), "--workers", 3, "--name", "chaos",
                            "--record", record, "--report", report_path, *options)
    place.running_status("chaos")
    disturber = Disturber(place, "chaos", seed)
    while not run.has_ended():
        disturber.disturb()
        time.sleep(disturber.random.uniform(0.002, 0.03))
    finished = run.finish()
    assert finished.code == 0, finished.err[-2000:]
    return record, read_report(report_path), disturber.done


@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_a_disturbed_run_records_the_same_bytes(place, report_figure, notify):
    options = ["--nperseg", "256", "--average", "40", "--notify", notify]
    calm = place.output / "calm.spectra"
    run = place.coordinator("--source", source(FRAMES), "--workers", 2, "--record", calm, *options)
    assert run.finish(300).code == 0
    undisturbed = masked(calm)

    totals, recoveries, runs = {}, [], 0
    deadline = time.monotonic() + SECONDS / 2  # half of it for each kind of wake-up
    while runs == 0 or time.monotonic() < deadline:
        record, report, done = disturbed_run(place, seed=runs, options=options)
        runs += 1
        check_books(report)
        assert report["frames"]["dropped"] == {}
        assert report["frames"]["done"] == FRAMES
        assert report["blocks"]["failed"] == 0
        assert masked(record) == undisturbed, f"run {runs} differs"
        recoveries += report["recoveries"]
        for kind, count in [*done.items(), ("requeued", report["blocks"]["requeued"])]:
            totals[kind] = totals.get(kind, 0) + count
    assert len(recoveries) > 20
    report_figure(f"chaos ({notify}): {runs} runs, {totals}, {len(recoveries)} recoveries")
    report_figure(f"  {percentiles('requeue', recoveries, 'requeued_us')}, "
                  f"{percentiles('respawn', recoveries, 'respawned_us')}")


def percentiles(name, recoveries, key):
    values = sorted(r[key] for r in recoveries if r[key] > 0)
    return (f"{name} P50 {values[len(values) // 2]:.0f} us, "
            f"P99 {values[int(0.99 * (len(values) - 1))]:.0f} us, max {values[-1]:.0f} us")


def test_the_nursery_is_replaced_and_makes_workers_again(place):
    report_path = place.output / "report.json"
    run = place.coordinator("--source", "sim:?channels=4", "--workers", 2, "--name", "nursery",
                            "--report", report_path)
    place.running_status("nursery")
    os.kill(place.pid_of("echelle-nursery"), signal.SIGKILL)
    assert wait_until(lambda: place.status("nursery")["nursery"] == {"alive": True, "restarts": 1})
    for worker in [pid for pid, comm in place.processes().items() if comm == "echelle-worker"]:
        os.kill(worker, signal.SIGKILL)

    def replaced():
        workers = place.status("nursery")["workers"]
        return all(w["state"] == "running" and w["incarnations"] == 2 for w in workers)
    assert wait_until(replaced)
    run.send(signal.SIGINT)
    assert run.finish().code == 0
    check_books(read_report(report_path))


def test_a_stopped_worker_is_killed_after_its_lease_and_loses_nothing(place):
    report_path = place.output / "report.json"
    run = place.coordinator("--source", source(40_000), "--workers", 1, "--name", "lease",
                            "--report", report_path)
    place.running_status("lease")

    def hung_with_a_block():
        """Stops the one worker at some moment: nearly always, but not always, it holds a block."""
        before = len(place.status("lease")["recoveries"])
        worker = place.pid_of("echelle-worker")
        os.kill(worker, signal.SIGSTOP)
        killed = wait_until(lambda: len(place.status("lease")["recoveries"]) > before, 3)
        if not killed:
            os.kill(worker, signal.SIGCONT)
        return any(r["cause"].startswith("hung: held block")
                   for r in place.status("lease")["recoveries"])
    assert wait_until(hung_with_a_block)
    assert run.finish().code == 0
    report = read_report(report_path)
    check_books(report)
    assert report["frames"]["done"] == 40_000
    assert report["blocks"]["failed"] == 0
