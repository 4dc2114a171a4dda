"""--capture: what is kept of a live stream is the stream, and replays to the same spectra."""

import hashlib
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from cluster import BINARIES, check_books, read_report, wait_until
from packet_bytes import without_worker

from echelle import read_recording

# At a pace that leaves a busy machine time; each frame is another.
STREAM = {"channels": 4, "samples": 256, "rate": "1e5", "generate": "each", "seed": 3}


def live(**changes):
    keys = {**STREAM, **changes}
    return "sim:?" + "&".join(f"{key.replace('_', '-')}={value}" for key, value in keys.items())


def metadata(folder):
    """The metadata of each recording in a folder, in the order of their names."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.sigmf-meta"))]


def check_capture(capture):
    frames = capture["frames"]
    assert frames["in"] == frames["written"] + sum(frames["lost"].values()) + frames["in_flight"]
    assert capture["state"] == "idle" and frames["in_flight"] == 0 and capture["problem"] is None


@pytest.mark.parametrize(
    "keys, options",
    [
        ({"frames": 400}, ["--average", 7]),
        (
            {"frames": 401, "layout": "sample-major", "format": "ci16"},
            ["--average", 16, "--average-mode", "max"],
        ),
        (
            {"frames": 300, "rate": "200000/3", "channels": 1},
            ["--average", "all", "--nperseg", 600],
        ),
    ],
    ids=["rows", "interleaved, complex", "one channel at a rate that is no whole number"],
)
def test_a_live_run_and_its_replay_give_the_same_bytes(place, keys, options):
    original, replayed = place.output / "original", place.output / "replayed"
    options = ["--nperseg", 256, *options] if "--nperseg" not in options else options
    folder = place.output / "captures"
    report = place.run_with_report(
        *["--source", live(**keys), "--workers", 2, "--on-overrun", "block"],
        *["--capture", folder, "--record", original, *options],
    )
    check_books(report)
    assert report["frames"]["dropped"] == {}
    check_capture(report["capture"])
    assert report["capture"]["frames"]["written"] == report["frames"]["in"]
    (meta,) = folder.glob("*.sigmf-meta")
    place.run("--source", f"{meta}?verify=sha512", "--record", replayed, "--workers", 1, *options)
    assert without_worker(replayed) == without_worker(original) != b""
    # The time of the stream is the simulator's clock, to the nanosecond.
    (about,) = metadata(folder)
    first = next(read_recording(original))
    assert first.trailer.timestamp_ns > 1.5e18
    assert about["captures"][0]["core:datetime"].endswith(f"{first.timestamp_ns % 10**9:09d}Z")


def test_files_hold_what_the_simulator_wrote(place):
    """Rolling by size: SHA-512 by hashlib, samples by the simulator's own file."""
    raw, folder = place.output / "raw", place.output / "captures"
    frame_bytes = 4 * 256 * 2
    report = place.run_with_report(
        *["--source", live(frames=100, pace="asap", write_raw=raw), "--workers", 1],
        *["--capture", f"{folder}?size={30 * frame_bytes}", "--nperseg", 256],
    )
    check_capture(report["capture"])
    assert report["capture"]["frames"]["written"] == 100 and report["capture"]["files"] == 4
    parts = sorted(folder.glob("*.sigmf-data"))
    assert [part.stat().st_size for part in parts] == [30 * frame_bytes] * 3 + [10 * frame_bytes]
    for part, about in zip(parts, metadata(folder), strict=True):
        digest = hashlib.sha512(part.read_bytes()).hexdigest()
        assert about["global"]["core:sha512"] == digest
    rows = np.fromfile(raw, "<i2").reshape(100, 4, 256)
    captured = np.concatenate([np.fromfile(part, "<i2") for part in parts]).reshape(-1, 4)
    assert np.array_equal(captured, rows.transpose(0, 2, 1).reshape(-1, 4))
    starts = [about["captures"][0]["core:global_index"] for about in metadata(folder)]
    assert starts == [0, 30 * 256, 60 * 256, 90 * 256]
    assert "core:datetime" not in metadata(folder)[0]["captures"][0]  # asap has no clock


def test_gaps_of_the_stream_are_segments_of_the_capture(place):
    original, replayed = place.output / "original", place.output / "replayed"
    folder = place.output / "captures"
    options = ["--nperseg", 256, "--average", "all"]
    report = place.run_with_report(
        *["--source", live(frames=200, pace="asap", drop_every=50), "--workers", 2],
        *["--capture", folder, "--record", original, *options],
    )
    check_capture(report["capture"])
    assert report["capture"]["segments"] == 4
    (about,) = metadata(folder)
    assert [
        (part["core:sample_start"], part["core:global_index"]) for part in about["captures"]
    ] == [(49 * 256 * n, 50 * 256 * n) for n in range(4)]
    (meta,) = folder.glob("*.sigmf-meta")
    replay = place.run_with_report("--source", meta, "--record", replayed, *options)
    assert replay["recording"]["gaps"]["samples_missing"] == 3 * 256
    for before, after in zip(read_recording(original), read_recording(replayed), strict=True):
        assert np.array_equal(before.values(), after.values())
        assert before.segments_averaged == after.segments_averaged


def test_a_killed_run_leaves_a_capture_that_opens(place):
    folder = place.output / "captures"
    run = place.coordinator(
        *["--source", live(), "--workers", 1, "--capture", folder, "--nperseg", 256]
    )
    place.running_status()
    assert wait_until(lambda: place.status()["capture"]["frames"]["written"] > 50)
    run.send(signal.SIGKILL)
    run.finish()
    (meta,) = folder.glob("*.sigmf-meta")
    os.truncate(meta.with_suffix(".sigmf-data"), 50 * 256 * 8 + 3)  # as if killed within a write
    report = place.run_with_report("--source", meta, "--nperseg", 256)
    assert report["recording"]["samples_per_channel"] == 50 * 256
    remarks = " ".join(report["recording"]["remarks"])
    assert "killed" in remarks and "last 3 bytes" in remarks


def test_commands(place):
    folder = place.output / "captures"
    run = place.coordinator(
        *["--source", live(), "--workers", 1, "--nperseg", 256, "--ring-frames", 200],
        *["--capture", f"{folder}?start=later"],
    )
    place.running_status()
    capture = lambda *what: place.control("--json", "capture", *what)  # noqa: E731
    assert wait_until(lambda: place.status()["frames"]["in"] > 250)
    assert list(folder.iterdir()) == []
    last = capture("last", "0.2")  # 78.125 frames
    assert json.loads(last.out) == {"frames": 79}, last.err
    idle = lambda: place.status()["capture"]["state"] == "idle"  # noqa: E731
    assert wait_until(idle)
    assert json.loads(capture("start").out) == {"capturing": True}
    again = capture("start")
    assert (again.code, len(again.error_lines)) == (1, 1) and "already-capturing" in again.err
    assert wait_until(lambda: place.status()["capture"]["frames"]["written"] > 100)
    assert json.loads(capture("stop").out) == {"capturing": False}
    assert wait_until(idle)
    assert "not-capturing" in capture("stop").err
    for wrong in (["dance"], [], ["last"], ["last", "-1"], ["start", "3"]):
        answer = capture(*wrong)
        assert (answer.code, len(answer.error_lines)) == (2, 1), answer.err
    status = place.status()["capture"]
    place.control("stop")
    assert run.finish().code == 0
    first, second = metadata(folder)
    assert status["files"] == 2 and status["directory"] == str(folder)
    sizes = [path.stat().st_size for path in sorted(folder.glob("*.sigmf-data"))]
    assert sizes[0] == 79 * 256 * 8
    assert sum(sizes) == status["bytes"] == status["frames"]["written"] * 256 * 8
    gap = second["captures"][0]["core:global_index"] - first["captures"][0]["core:global_index"]
    assert gap >= 79 * 256 and gap % 256 == 0


def test_a_run_without_a_directory_refuses_to_capture(place):
    run = place.coordinator("--source", live(), "--workers", 1, "--nperseg", 256)
    place.running_status()
    answer = place.control("capture", "start")
    assert (answer.code, len(answer.error_lines)) == (1, 1)
    assert "no-capture" in answer.err and "--capture DIR" in answer.err
    place.control("stop")
    assert run.finish().code == 0


FUSE = os.path.exists("/dev/fuse") and os.geteuid() == 0 and (BINARIES / "stalling_disk").exists()


@pytest.fixture
def disk(place):
    """A disk that can be stopped, and its folder."""
    folder, backing = place.path / "disk", place.path / "backing"
    folder.mkdir()
    backing.mkdir()
    running = place.start(BINARIES / "stalling_disk", folder, backing)
    assert wait_until(lambda: os.path.ismount(folder))
    running.folder = folder
    yield running
    running.process.kill()
    running.finish()
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(not FUSE, reason="needs /dev/fuse, root and libfuse3")
@pytest.mark.parametrize("end", ["stopped", "stopped at once"])
def test_a_disk_that_hangs_costs_the_capture_and_nothing_else(place, disk, end):
    """Spectra go on, what is missing in the capture is counted, and the run ends in time."""
    report, folder = place.output / "report", disk.folder / "captures"
    run = place.coordinator(
        *["--source", live(rate="1e6"), "--workers", 1, "--nperseg", 256, "--ring-frames", 256],
        *["--capture", folder, "--report", report],
    )
    assert wait_until(lambda: (place.status() or {}).get("capture", {}).get("bytes", 0) > 100_000)
    disk.send(signal.SIGSTOP)
    begun = place.status()
    lost = lambda status: status["capture"]["frames"]["lost"].get("overwritten", 0)  # noqa: E731
    assert wait_until(lambda: lost(place.status()) > 500)
    status = place.status()
    assert status["frames"]["done"] > begun["frames"]["done"] + 300
    assert status["capture"]["bytes"] <= begun["capture"]["bytes"] + 2 * 256 * 8
    told = time.monotonic()
    run.send(signal.SIGTERM)
    if end == "stopped at once":
        time.sleep(0.3)
        run.send(signal.SIGTERM)
    assert wait_until(report.exists, 20, 0.02)
    assert time.monotonic() - told < (2.5 if end == "stopped at once" else 8)
    disk.process.kill()  # the kernel may hold the ended process until the disk answers
    finished = run.finish(20)
    assert finished.code == (1 if end == "stopped at once" else 0)
    assert "left behind" in finished.err and str(folder) in finished.err
    frames = read_report(report)["capture"]["frames"]
    check_books(read_report(report))
    assert frames["in"] == frames["written"] + sum(frames["lost"].values())
    assert frames["lost"]["overwritten"] > 500 and frames["lost"]["stopped"] > 0


@pytest.mark.parametrize(
    "keys, words", [("/proc/no", ["/proc/no", "cannot"]), ("x?size=none", ["size=none", "500M"])]
)
def test_what_cannot_be_captured_into(place, keys, words):
    finished = place.run("--source", live(), "--capture", keys, code=2)
    assert len(finished.error_lines) == 1
    for word in ["--capture", *words]:
        assert word in finished.err
