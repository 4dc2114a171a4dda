"""Workers are killed, stopped and continued, added and taken away at random, and the nursery is
killed, while a lossless source runs: the recording must be that of an undisturbed run.

ECHELLE_LONG_TESTS=1 does so for 30 minutes instead of some seconds."""

import os
import random
import signal
import time

import pytest

from cluster import check_books, read_report, wait_until
from recordings import masked

LONG = os.environ.get("ECHELLE_LONG_TESTS") == "1"
SECONDS = 1800 if LONG else 15
# Each frame is generated anew, about a quarter of a millisecond for 16 channels: frames for as long
# as the disturbance lasts, and as many again since a disturbed run is slower.
FRAMES = 3_000_000 if LONG else 24_000


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


@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_a_disturbed_run_records_the_same_bytes(place, report_figure, notify):
    if LONG and notify == "futex":
        pytest.skip("the long run is done with zmq")
    calm, wild = place.output / "calm.spectra", place.output / "wild.spectra"
    report_path = place.output / "wild.json"
    options = ["--nperseg", "256", "--average", "40", "--notify", notify]
    # A poison block is three deaths on one block: at random they are not told from it, so blocks
    # are short and many, and a death seldom meets the same one again.
    place.run("--source", source(FRAMES), "--workers", 2, "--record", calm, *options)

    run = place.coordinator("--source", source(FRAMES), "--workers", 3, "--name", "chaos",
                            "--record", wild, "--report", report_path, *options)
    place.running_status("chaos")
    disturber = Disturber(place, "chaos", seed=11)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and not run.has_ended():
        disturber.disturb()
        time.sleep(disturber.random.uniform(0.005, 0.06))
    for pid in disturber.stopped:
        disturber.send(pid, signal.SIGCONT)
    finished = run.finish(SECONDS + 300)
    assert finished.code == 0, finished.err[-2000:]

    report = read_report(report_path)
    check_books(report)
    assert report["frames"]["dropped"] == {}
    assert report["frames"]["done"] == FRAMES
    assert report["blocks"]["failed"] == 0
    assert len(report["recoveries"]) > 20
    report_figure(f"chaos ({notify}): {disturber.done}, {len(report['recoveries'])} recoveries, "
                  f"{report['blocks']['requeued']} blocks requeued, "
                  f"{report['nursery']['restarts']} new nurseries")
    assert masked(wild) == masked(calm)


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
    run = place.coordinator("--source", source(20_000), "--workers", 1, "--name", "lease",
                            "--report", report_path)
    place.running_status("lease")

    def has_hung():
        """Stops the one worker at some moment; when it held a block then, its lease ends."""
        before = len(place.status("lease")["recoveries"])
        worker = place.pid_of("echelle-worker")
        os.kill(worker, signal.SIGSTOP)
        killed = wait_until(lambda: len(place.status("lease")["recoveries"]) > before, 3)
        if not killed:
            os.kill(worker, signal.SIGCONT)
        return killed
    assert wait_until(has_hung)
    assert run.finish().code == 0
    report = read_report(report_path)
    check_books(report)
    assert report["recoveries"][0]["cause"].startswith("hung: held block")
    assert report["frames"]["done"] == 20_000
    assert report["blocks"]["failed"] == 0
