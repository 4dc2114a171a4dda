"""Fault classes of messaging libraries seen in public, which no unit shows: docs/fault_classes.md
names each with its source and the tests that hold it."""

import os
import signal
import subprocess
import time

import pytest

from cluster import CONTROL, COORDINATOR, check_books, read_report, wait_until
from control_group import control_group
from recordings import masked
from zmtp import Dealer

LIVE = "sim:?channels=4&samples=256&rate=1e5"
WELCH = ["--nperseg", 256, "--average", 100]
# A hop of 8 samples: work for milliseconds in each block, so that a worker nearly always holds one.
LONG_BLOCKS = ["--nperseg", 1024, "--noverlap", 1016, "--average", 100]


def lossless(frames):
    return f"sim:?channels=8&samples=512&pace=asap&generate=each&seed=8&frames={frames}"


def workers_of(place):
    return [pid for pid, comm in place.processes().items() if comm == "echelle-worker"]


calm_recordings = {}  # of runs that the tests have made so far


def undisturbed(place, frames, welch):
    key = (frames, *welch)
    if key not in calm_recordings:
        calm = place.output / "calm"
        place.run("--source", lossless(frames), "--workers", 2, *welch, "--record", calm)
        calm_recordings[key] = masked(calm)
    return calm_recordings[key]


def start_recording(place, frames, *options, workers=2, welch=WELCH):
    return place.coordinator("--source", lossless(frames), "--workers", workers, *welch, *options,
                             "--record", place.output / "spectra",
                             "--report", place.output / "report.json")


def check_complete(place, run, frames, expected=None):
    """It has ended well, every frame is done once, and the recording is that of a calm run."""
    finished = run.finish()
    assert finished.code == 0, finished.err
    report = read_report(place.output / "report.json")
    check_books(report)
    assert report["frames"]["done"] == frames and report["frames"]["dropped"] == {}
    assert report["blocks"]["failed"] == 0
    if expected is not None:
        assert masked(place.output / "spectra") == expected
    return report


# ---- ZeroMQ-Perl #10, netmq #946: one worker is a hundred times slower

def cpu_s(pid):
    """CPU time of a process's first thread."""
    with open(f"/proc/{pid}/task/{pid}/schedstat") as opened:
        return int(opened.read().split()[0]) / 1e9


def test_a_slow_worker_gets_the_share_of_its_speed(place, report_figure):
    """It is held by SIGSTOP for all but some hundredths of the time, never for as long as a lease."""
    run = place.coordinator(
        "--source", "sim:?channels=16&samples=512&pace=asap&generate=once", "--workers", 2, *WELCH,
        "--report", place.output / "report.json")
    slow = place.running_status()["workers"][0]["pid"]
    before = place.status()
    began, ran_s = time.monotonic(), 0
    while time.monotonic() < began + 2:
        os.kill(slow, signal.SIGSTOP)
        stopped_at = cpu_s(slow)
        time.sleep(0.05)
        os.kill(slow, signal.SIGCONT)
        # A machine that is busy lets it run later, and us notice later.
        wait_until(lambda: cpu_s(slow) > stopped_at + 0.0005, 0.2, pause_s=0.0005)
        ran_s += cpu_s(slow) - stopped_at
    running = ran_s / (time.monotonic() - began)
    after = place.status()
    run.send(signal.SIGINT)
    assert run.finish().code == 0
    check_books(read_report(place.output / "report.json"))
    done = [now["blocks"] - then["blocks"]
            for now, then in zip(after["workers"], before["workers"])]
    share = done[0] / sum(done)
    report_figure(f"a worker that ran {100 * running:.1f} % of the time did {100 * share:.1f} % of "
                  f"{sum(done)} blocks")
    assert after["recoveries"] == [], "it is slow, not hung"
    assert 0 < done[0] and share < 0.15 + 2 * running, "an equal share would be a half"
    assert after["frames"]["dropped"] == {}


def test_a_worker_without_cpu_is_starved_and_not_hung(place):
    """A control group gives it a millisecond in each second: it is late by every clock but its own,
    and killing it would help nobody."""
    with control_group("cpu", "1000", "1000 1000000", cpu_cfs_period_us="1000000") as group:
        run = place.coordinator("--source", "sim:?channels=16&samples=512&pace=asap&generate=once",
                                "--workers", 1, *LONG_BLOCKS)
        worker = place.running_status()["workers"][0]["pid"]
        (group / "cgroup.procs").write_text(str(worker))
        used = cpu_s(worker)
        time.sleep(2)
        status = place.status()
        used = cpu_s(worker) - used
        (group.parent / "cgroup.procs").write_text(str(worker))
        assert used < 0.1, "it was starved"
        assert status["recoveries"] == [] and status["workers"][0]["pid"] == worker
        assert wait_until(lambda: place.status()["frames"]["done"] > status["frames"]["done"])
        run.send(signal.SIGINT)
        assert run.finish().code == 0


# ---- rzmq #33: one worker connects late

@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_a_late_worker_finds_its_share_and_not_a_burst_gone_to_the_first(place, notify):
    frames = 4000
    run = start_recording(place, frames, "--notify", notify, workers=1, welch=LONG_BLOCKS)
    place.running_status()
    assert place.control("pause").code == 0  # the ring fills, and tokens for it have gone out
    assert wait_until(lambda: place.status()["ring_fill"] > 0.9)
    assert place.control("scale", 2).code == 0
    assert wait_until(lambda: [w["state"] for w in place.status()["workers"]] == ["running"] * 2)
    first = place.status()["workers"][0]["blocks"]
    assert place.control("resume").code == 0
    report = check_complete(place, run, frames)
    blocks = [worker["blocks"] for worker in report["workers"]]
    share = blocks[1] / (sum(blocks) - first)
    assert 0.25 < share < 0.75, blocks


# ---- libzmq #160: kill -9 of a worker that holds none, one, many

def test_workers_that_hold_nothing_are_killed(place):
    frames = 5000
    expected = undisturbed(place, frames, WELCH)
    run = start_recording(place, frames)
    place.running_status()
    assert place.control("pause").code == 0
    assert wait_until(lambda: place.status()["ring_fill"] > 0.9 and not holding(place))
    for victim in workers_of(place):
        os.kill(victim, signal.SIGKILL)
    assert wait_until(lambda: len(place.status()["recoveries"]) == 2)
    assert place.control("resume").code == 0
    report = check_complete(place, run, frames, expected)
    assert [recovery["blocks"] for recovery in report["recoveries"]] == [0, 0]
    assert report["blocks"]["requeued"] == 0


def holding(place):
    """Whether frames are still being finished: the counts move."""
    before = place.status()["frames"]["done"]
    time.sleep(0.05)
    return place.status()["frames"]["done"] != before


@pytest.mark.parametrize("workers, notify", [(1, "futex"), (4, "zmq")])
def test_workers_that_hold_a_block_each_are_killed_at_once(place, workers, notify, report_figure):
    """Stopped first, so that tokens pile up at them; then killed together."""
    frames = 4000
    expected = undisturbed(place, frames, LONG_BLOCKS)
    run = start_recording(place, frames, "--notify", notify, workers=workers, welch=LONG_BLOCKS)
    place.running_status()
    killed = {}
    for _ in range(2):
        victims = workers_of(place)
        for victim in victims:
            os.kill(victim, signal.SIGSTOP)
        time.sleep(0.05)
        killed |= dict.fromkeys(victims, time.monotonic())
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        assert wait_until(lambda: len(set(workers_of(place)) - set(killed)) == workers)
        done = place.status()["frames"]["done"]
        assert wait_until(lambda: place.status()["frames"]["done"] > done + 8 * workers)
    report = check_complete(place, run, frames, expected)
    ours = [recovery for recovery in report["recoveries"] if recovery["pid"] in killed]
    assert len(ours) == len(killed) == 2 * workers
    assert sum(recovery["blocks"] for recovery in ours) >= min(workers, 2), "some died holding one"
    assert report["blocks"]["requeued"] == sum(r["blocks"] for r in report["recoveries"])
    free_ms = sorted((report["started_monotonic_us"] + recovery["detected_us"]
                      + recovery["requeued_us"]) / 1000 - 1000 * killed[recovery["pid"]]
                     for recovery in ours)
    report_figure(f"{workers} workers killed at once, {notify}: blocks free again after "
                  f"{free_ms[0]:.1f} to {free_ms[-1]:.1f} ms")
    assert free_ms[len(free_ms) // 2] < 50


# ---- libzmq PR #357: nothing is parked at a worker that is not there

def test_an_absent_worker_parks_nothing(place):
    """The nursery is stopped, so that nobody takes its place: the other does all the work."""
    frames = 3000
    run = start_recording(place, frames, workers=2, welch=LONG_BLOCKS)
    victim = place.running_status()["workers"][1]["pid"]
    nursery = place.pid_of("echelle-nursery")
    os.kill(nursery, signal.SIGSTOP)
    os.kill(victim, signal.SIGKILL)
    assert wait_until(lambda: run.has_ended() or (place.status() or {"recoveries": [1]})["recoveries"])
    status = place.status()
    assert status["workers"][1]["state"] == "starting"
    assert wait_until(lambda: place.status()["frames"]["done"] > status["frames"]["done"] + 100)
    check_complete(place, run, frames)


def test_a_nursery_that_is_stopped_for_good_is_replaced(place):
    """With every worker dead, nobody would be left to do the work."""
    frames = 6000
    run = start_recording(place, frames, workers=2, welch=LONG_BLOCKS)
    place.running_status()
    nursery = place.pid_of("echelle-nursery")
    os.kill(nursery, signal.SIGSTOP)
    for pid in workers_of(place):
        os.kill(pid, signal.SIGKILL)
    report = check_complete(place, run, frames)
    assert report["nursery"]["restarts"] == 1
    assert [worker["incarnations"] for worker in report["workers"]] == [2, 2]
    assert nursery not in place.processes()


def test_a_nursery_that_is_stopped_does_not_keep_the_run_from_ending(place):
    run = start_recording(place, 500)
    os.kill(wait_until(lambda: nursery_of(place)), signal.SIGSTOP)
    check_complete(place, run, 500)


def nursery_of(place):
    """Its pid once all workers are there, so that it has nothing left to do; else None. A child has
    its name for a moment too."""
    if len(workers_of(place)) < 2:
        return None
    named = [pid for pid, comm in place.processes().items() if comm == "echelle-nursery"]
    return named[0] if len(named) == 1 else None


# ---- pyzmq #556: the end of a stream drains by count, not by poison pills

@pytest.mark.parametrize("workers, notify", [(1, "zmq"), (3, "futex"), (16, "zmq"), (16, "futex")])
def test_the_end_of_a_stream_reaches_every_worker(place, workers, notify):
    """With fewer blocks than workers, too: 4 frames are one group."""
    for frames in (4, 500):
        report = place.run_with_report("--source", lossless(frames), "--workers", workers,
                                       "--notify", notify, *WELCH)
        check_books(report)
        assert report["frames"]["done"] == frames and report["frames"]["dropped"] == {}
        assert {worker["state"] for worker in report["workers"]} == {"left"}
        assert report["recoveries"] == []


# ---- libzmq #3575: a monitor's reader dies

def test_watchers_that_die_or_stall_do_not_touch_the_data(place):
    frames = 4000
    expected = undisturbed(place, frames, LONG_BLOCKS)
    run = start_recording(place, frames, welch=LONG_BLOCKS)
    place.running_status()
    control = place.runtime / "echelle/echelle/control"
    stalled = Dealer(control)  # asks, and never reads the answers
    rounds = 0
    while not run.has_ended() and rounds < 20:
        rounds += 1
        top = subprocess.Popen([CONTROL, "--json", "status"], env=place.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            asker = Dealer(control)
            for _ in range(5):
                asker.send(b'{"command": "status"}')
                stalled.send(b'{"command": "status"}')
            asker.close()  # in the middle of its answers
        except OSError:
            break  # the run has ended
        time.sleep(0.002)
        top.kill()
        top.wait()
    stalled.close()
    check_complete(place, run, frames, expected)
    assert rounds >= 5


# ---- libzmq #4503: a worker comes back under the same identity

def test_a_worker_that_comes_back_is_served_and_its_old_results_are_not(place):
    """Worker 0 is stopped with a block in its hands and killed for it: its next life finishes blocks,
    and the block of its last one is done once, by whoever took it."""
    frames = 4000
    expected = undisturbed(place, frames, LONG_BLOCKS)
    run = start_recording(place, frames, welch=LONG_BLOCKS)
    first = place.running_status()["workers"][0]
    before = first
    for _ in range(2):
        os.kill(before["pid"], signal.SIGSTOP)
        time.sleep(0.002)
        os.kill(before["pid"], signal.SIGKILL)

        def new_life_works():
            now = place.status()["workers"][0]
            works = now["pid"] not in (0, before["pid"]) and now["blocks"] > before["blocks"] + 5
            return now if works else None
        before = wait_until(new_life_works)
        assert before
    report = check_complete(place, run, frames, expected)
    assert report["workers"][0]["id"] == first["id"] == 0
    assert report["workers"][0]["incarnations"] >= 3
    assert report["blocks"]["duplicates"] == 0


# ---- bubblewrap #692: the thread that forked ends, the parent is killed

LAUNCHER = """
import subprocess, sys, threading, time
def launch():
    subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
thread = threading.Thread(target=launch)
thread.start()
thread.join()
time.sleep(600)
"""


def test_workers_outlive_whoever_started_the_run_and_die_with_the_coordinator(place):
    """The run is started by a thread that ends, of a process that is killed."""
    launcher = place.start("/usr/bin/python3", "-c", LAUNCHER, COORDINATOR, "--quiet",
                           "--fft-effort", "estimate", "--source", LIVE, "--workers", 2)
    pids = {worker["pid"] for worker in place.running_status()["workers"]}
    launcher.process.kill()
    launcher.process.wait()
    done = place.status()["frames"]["done"]
    assert wait_until(lambda: place.status()["frames"]["done"] > done)
    assert {worker["pid"] for worker in place.status()["workers"]} == pids
    assert place.status()["recoveries"] == []
    os.kill(place.pid_of("echelle-coordin"), signal.SIGKILL)
    place.nothing_is_left(5)
    launcher.process.communicate()
