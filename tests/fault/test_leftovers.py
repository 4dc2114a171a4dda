"""However a run ends, no process, socket, file or shared memory of it is left.

The fixture `place` checks that after every test; what is checked here is that it happens soon, and
what the run has still delivered.
"""

import os
import signal
import struct

import pytest
from cluster import SIMULATOR, check_books, read_report, wait_until
from recordings import masked

from echelle import read_recording

LIVE = "sim:?channels=4&samples=256&rate=1e5"
SOON_S = 5  # it takes well under a second on a machine that is not busy


def lossless(frames):
    return f"sim:?channels=8&samples=512&pace=asap&generate=each&seed=6&frames={frames}"


WELCH = ["--nperseg", 256, "--average", 100]


@pytest.fixture(params=["zmq", "futex"])
def notify(request):
    return ["--notify", request.param]


def start_live(place, *options):
    """A coordinator at work, with outputs, that runs until it is stopped."""
    run = place.coordinator(
        *["--source", LIVE, "--workers", 3, "--nperseg", 256, "--average", 10],
        *["--record", place.output / "spectra", "--report", place.output / "report.json"],
        *options,
    )
    place.running_status()
    names = sorted(place.processes().values())
    assert names == ["echelle-coordin", "echelle-nursery"] + 3 * ["echelle-worker"], names
    return run


def check_outputs(place):
    """Both are there, whole, and agree."""
    report = read_report(place.output / "report.json")
    check_books(report)
    assert report["frames"]["done"] == report["frames"]["in"] > 0
    assert report["frames"]["in_flight"] == 0 and report["failure"] is None
    packets = list(read_recording(place.output / "spectra"))
    assert len(packets) == report["spectra"]["out"] > 0
    assert sorted(os.listdir(place.output)) == ["report.json", "spectra"]


def test_a_run_that_ends_by_itself(place, notify):
    place.run(
        *["--source", lossless(500), "--workers", 3, *WELCH, *notify],
        *["--record", place.output / "spectra", "--report", place.output / "report.json"],
    )
    assert place.leftovers() == []
    check_outputs(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_in_flight(place, notify, number):
    run = start_live(place, *notify)
    run.send(number)
    finished = run.finish()
    assert (finished.code, finished.err) == (0, "")
    assert place.leftovers() == []
    check_outputs(place)


def test_a_signal_to_the_whole_group(place):
    """As Ctrl-C on a terminal: nursery and workers get it as well."""
    run = start_live(place, "--name", "echelle")
    for pid in place.processes():
        os.kill(pid, signal.SIGINT)
    assert run.finish().code == 0
    assert place.leftovers() == []
    check_outputs(place)


def test_a_second_signal_stops_at_once(place, notify):
    # One that cannot end soon: each frame takes long to make and the ring is long.
    record, report = place.output / "spectra", place.output / "report.json"
    run = place.coordinator(
        *["--source", "sim:?channels=64&samples=2048&pace=asap", "--workers", 1, *notify],
        *["--nperseg", 2048, "--noverlap", 2040, "--record", record, "--report", report],
    )
    place.running_status()
    run.send(signal.SIGINT)
    run.send(signal.SIGTERM)
    finished = run.finish(SOON_S + 5)
    assert finished.code == 1
    assert "second signal" in finished.err and len(finished.error_lines) == 1
    assert place.leftovers() == []
    assert not record.exists()
    check_books(read_report(report))
    assert read_report(report)["frames"]["dropped"]["stopped"] > 0


def test_the_coordinator_is_killed(place, notify):
    run = start_live(place, *notify)
    run.send(signal.SIGKILL)
    run.finish()
    place.nothing_is_left(SOON_S)
    assert os.listdir(place.output) == []
    # Its name is free again.
    place.run("--source", lossless(50), "--name", "echelle", "--workers", 2)


def test_coordinator_and_nursery_are_killed_together(place, notify):
    run = start_live(place, *notify)
    for pid in (place.pid_of("echelle-nursery"), run.pid):
        os.kill(pid, signal.SIGKILL)
    run.finish()
    # Nobody is left to remove the instance's files: the next one of that name does.
    assert wait_until(lambda: not place.processes(), SOON_S)
    assert os.listdir(place.output) == []
    place.run("--source", lossless(50), "--name", "echelle", "--workers", 2)
    assert place.leftovers() == []


def test_the_nursery_is_killed(place, notify):
    run = start_live(place, *notify)
    nursery = place.pid_of("echelle-nursery")
    os.kill(nursery, signal.SIGKILL)
    assert wait_until(lambda: nursery not in place.processes())
    before = place.status()["frames"]["done"]
    assert wait_until(lambda: place.status()["frames"]["done"] > before)
    run.send(signal.SIGINT)
    assert run.finish().code == 0
    assert place.leftovers() == []
    check_outputs(place)


def test_a_worker_is_killed(place, notify):
    frames = 20_000
    calm, record = place.output / "calm", place.output / "spectra"
    report_path = place.output / "report.json"
    place.run("--source", lossless(frames), "--workers", 2, *WELCH, "--record", calm)
    run = place.coordinator(
        *["--source", lossless(frames), "--workers", 2, *WELCH, *notify],
        *["--record", record, "--report", report_path],
    )
    status = place.running_status()
    killed = status["workers"][1]["pid"]
    os.kill(killed, signal.SIGKILL)
    finished = run.finish()
    assert finished.code == 0
    assert place.leftovers() == []
    report = read_report(report_path)
    check_books(report)
    assert report["frames"]["done"] == frames and report["frames"]["dropped"] == {}
    assert masked(record) == masked(calm)
    # On a machine that is very busy one may be taken for hung besides, or killed for it first.
    ours = [recovery for recovery in report["recoveries"] if recovery["worker"] == 1]
    assert ours and all(
        "SIGKILL" in recovery["cause"] or recovery["cause"].startswith("hung")
        for recovery in report["recoveries"]
    )
    assert all(recovery["respawned_us"] > 0 for recovery in report["recoveries"][:1])
    requeued = sum(recovery["blocks"] for recovery in report["recoveries"])
    assert report["blocks"]["requeued"] == requeued
    assert report["workers"][1]["incarnations"] == 1 + len(ours)
    assert f"worker 1 ended ({ours[0]['cause']})" in finished.err


def test_two_coordinators_of_one_name(place):
    first = start_live(place)
    second = place.coordinator("--source", LIVE, "--name", "echelle", "--workers", 1)
    refused = second.finish()
    assert refused.code == 2 and len(refused.error_lines) == 1
    for word in ("'echelle'", "running already", "echellectl", "--name"):
        assert word in refused.err
    before = place.status()
    assert before["config"]["workers"] == 3  # it is the first one that answers
    assert wait_until(lambda: place.status()["frames"]["done"] > before["frames"]["done"])
    first.send(signal.SIGINT)
    assert first.finish().code == 0
    assert place.leftovers() == []
    check_outputs(place)


def test_without_a_name_another_one_is_found(place):
    first = start_live(place)
    second = place.coordinator("--source", LIVE, "--workers", 1)
    other = f"echelle-{second.pid}"
    assert len(place.running_status(other)["workers"]) == 1
    for run in (second, first):
        run.send(signal.SIGTERM)
        assert run.finish().code == 0
    assert place.leftovers() == []


def ring_of(place):
    ring = place.path.name
    simulator = place.start(
        *[SIMULATOR, "--ring", ring, "--channels", 4, "--samples", 256, "--rate", "1e5"],
        *["--ring-frames", 64],
    )
    assert wait_until(lambda: producer_of(ring) == simulator.pid)
    return ring, simulator


def producer_of(ring):
    """The pid in the header of a ring that runs, by docs/ring.md; None where there is none."""
    try:
        with open(f"/dev/shm/echelle-{ring}", "rb") as region:
            header = region.read(256)
    except FileNotFoundError:
        return None
    running = len(header) == 256 and struct.unpack_from("<I", header, 140) == (1,)
    return struct.unpack_from("<I", header, 96)[0] if running else None


def test_the_producer_of_a_ring_is_killed(place):
    ring, simulator = ring_of(place)
    report = place.output / "report.json"
    run = place.coordinator("--source", f"ring:{ring}", "--workers", 2, "--report", report)
    place.running_status()
    simulator.send(signal.SIGKILL)
    simulator.finish()
    finished = run.finish()
    assert finished.code == 1 and str(simulator.pid) in finished.err
    assert "vanished" in finished.err and len(finished.error_lines) == 1
    check_books(read_report(report))
    assert read_report(report)["frames"]["done"] > 0
    # The region outlives its producer; the next one of that name replaces it.
    again, simulator = ring_of(place)
    assert again == ring
    simulator.send(signal.SIGINT)
    assert simulator.finish().code == 0


def test_the_reader_of_a_ring_is_killed(place):
    ring, simulator = ring_of(place)
    run = place.coordinator("--source", f"ring:{ring}", "--workers", 2)
    place.running_status()
    run.send(signal.SIGKILL)
    run.finish()
    # The ring is free for the next one at once.
    report = place.run_with_report("--source", f"ring:{ring}", "--frames", 20, "--name", "next")
    check_books(report)
    assert report["frames"]["done"] == 20
    simulator.send(signal.SIGTERM)
    assert simulator.finish().code == 0
    place.nothing_is_left(SOON_S)
