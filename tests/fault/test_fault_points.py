"""A test build's processes die or stop at every transition of the ledger (common/fault_point.hpp):
the recording must come out the same, and nothing may be left behind."""

import struct

import pytest

from cluster import check_books, read_report
from recordings import masked

FRAMES = 2000
OPTIONS = ["--source", f"sim:?channels=4&samples=256&pace=asap&seed=3&frames={FRAMES}",
           "--nperseg", "128", "--average", "20", "--workers", 2]
WORKER_POINTS = ["worker.claimed", "worker.computing", "worker.result_written", "worker.done",
                 "worker.noticed"]
NURSERY_POINTS = ["nursery.asked", "nursery.forked", "nursery.answered"]
COORDINATOR_POINTS = ["ingest.opened", "collector.collected", "collector.retired"]


@pytest.fixture(scope="session")
def undisturbed(cache):
    import cluster
    place = cluster.Workplace(cache)
    try:
        record = place.output / "calm.spectra"
        place.run("--record", record, *OPTIONS)
        return masked(record)
    finally:
        place.leave()


def run_with(place, fault, *more):
    """Runs with a fault; answers the recording's path, the report and the standard error."""
    record, report = place.output / "a.spectra", place.output / "a.json"
    environment = dict(place.environment, ECHELLE_FAULT=fault)
    place.environment = environment
    finished = place.run("--record", record, "--report", report, *OPTIONS, *more)
    return record, read_report(report), finished.err


@pytest.mark.parametrize("notify", ["zmq", "futex"])
@pytest.mark.parametrize("action", ["kill", "stop"])
@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_worker_may_die_or_stop_anywhere(place, undisturbed, point, action, notify):
    record, report, _ = run_with(place, f"{point}={action}@20", "--notify", notify)
    check_books(report)
    assert report["frames"]["done"] == FRAMES
    assert report["blocks"]["failed"] == 0
    assert masked(record) == undisturbed
    if action == "kill":
        assert len(report["recoveries"]) >= 1
    requeued = report["blocks"]["requeued"]
    if point in ("worker.claimed", "worker.computing", "worker.result_written"):
        assert requeued >= 1, "the claimed block went back"
    else:
        assert requeued == 0, "a finished block is not done twice"


@pytest.mark.parametrize("point", NURSERY_POINTS)
def test_the_nursery_may_die_anywhere(place, undisturbed, point):
    record, report, _ = run_with(place, f"{point}=kill@2")
    check_books(report)
    assert report["nursery"]["restarts"] == 1
    assert report["frames"]["done"] == FRAMES
    assert masked(record) == undisturbed


@pytest.mark.parametrize("point", COORDINATOR_POINTS)
def test_the_coordinator_may_die_anywhere_and_nothing_is_left(place, point):
    record = place.output / "a.spectra"
    place.environment = dict(place.environment, ECHELLE_FAULT=f"{point}=kill@20")
    run = place.coordinator("--record", record, *OPTIONS)
    assert run.finish().code == -9
    place.nothing_is_left(10)
    assert list(place.output.iterdir()) == []


def test_the_coordinator_may_die_while_it_recovers(place):
    # Two faults at once: the worker is killed from outside by its own fault's sibling.
    place.environment = dict(place.environment, ECHELLE_FAULT="supervisor.reclaimed=kill@1")
    run = place.coordinator("--source", "sim:?channels=2", "--workers", 2, "--name", "dying")
    place.running_status("dying")
    import os
    import signal
    victim = next(pid for pid, comm in place.processes().items() if comm == "echelle-worker")
    os.kill(victim, signal.SIGKILL)
    assert run.finish().code == -9
    place.nothing_is_left(10)


def test_workers_that_never_start_end_the_run_in_words(place):
    report_path = place.output / "report.json"
    place.environment = dict(place.environment, ECHELLE_FAULT="worker.starting=kill-always")
    run = place.coordinator("--workers", 1, "--report", report_path, *OPTIONS[:-2])
    finished = run.finish(30)
    assert finished.code == 1
    assert finished.err.splitlines()[-1] == (
        "echelle-coordinator: failed: the workers did not start in time; see the messages above")
    assert "worker 0 ended (killed by signal 9 (SIGKILL))" in finished.err
    report = read_report(report_path)
    check_books(report)
    deaths = len(report["recoveries"])
    assert 5 <= deaths <= 20, f"{deaths} deaths in ten seconds: the pause between them grows"
    place.nothing_is_left(10)


def test_a_worker_that_is_stopped_while_it_starts_is_replaced(place, undisturbed):
    record, report, errors = run_with(place, "worker.starting=stop@1")
    check_books(report)
    assert "has not started for" in errors
    assert sorted(recovery["worker"] for recovery in report["recoveries"]) == [0, 1]
    assert masked(record) == undisturbed


def packets(data):
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield data[position + 4:position + 4 + length]
        position += 4 + length


def test_a_poison_block_costs_three_lives_and_only_its_own_spectra(place, undisturbed):
    """The block number 30 kills whoever computes it: the stream goes on without it."""
    record, report, errors = run_with(place, "worker.block=30")
    check_books(report)
    assert len(report["recoveries"]) == 3
    assert report["blocks"]["failed"] == 1
    assert report["blocks"]["requeued"] == 2
    assert list(report["frames"]["dropped"]) == ["worker_failures"]
    assert "is given up" in errors
    ours, calm = list(packets(masked(record))), list(packets(undisturbed))
    assert len(ours) == len(calm)
    different = [index for index, pair in enumerate(zip(ours, calm)) if pair[0] != pair[1]]
    assert different, "a spectrum without all of its segments cannot be the same"
    for index in different:
        (values,) = struct.unpack_from(">I", ours[index], 12)
        (flags,) = struct.unpack_from(">H", ours[index], 20 + 4 * values + 6)
        assert flags & 0b11, "it says that it is incomplete, or comes after a gap"
