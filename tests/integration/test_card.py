"""Cards: whole runs on what a card's node gives. What goes wrong on the way is in
tests/fault/card_faults_test.cpp; here it is what the user sees of it."""

import json
import os
import shutil
import subprocess
import threading

import numpy as np
import pytest
from cluster import BINARIES, REPOSITORY, SIMULATOR, check_books, wait_until
from recordings import check_against_scipy, settings_for, spectra_of

from echelle import PacketFlag, read_recording

SIGNAL = "0: tone(f=1MHz, a=8000) + noise(30); *: noise(100)"
FUSE = os.path.exists("/dev/fuse") and os.geteuid() == 0 and (BINARIES / "faulty_card").exists()
needs_fuse = pytest.mark.skipif(not FUSE, reason="needs /dev/fuse, root and libfuse3")


def simulate(place, *arguments):
    return place.start(
        SIMULATOR, "--channels", 4, "--signal", SIGNAL, "--pace", "asap", *arguments
    )


@pytest.fixture
def faulty_card(place):
    """Call it with the card's keys; answers the node's path."""
    mounted = []

    def insert(*keys):
        folder = place.path / "card"
        folder.mkdir()
        card = place.start(BINARIES / "faulty_card", folder, *keys)
        mounted.append((folder, card))
        assert wait_until((folder / "truth").exists)
        return folder / "xdma0_c2h_0"

    insert.pull = lambda: mounted[0][1].process.kill()
    yield insert
    for folder, card in mounted:
        card.process.kill()
        card.finish()
        subprocess.run(["umount", "-l", folder], check=True)


def test_frames_through_a_fifo_give_the_spectra_of_their_samples(place):
    """The simulator as a card behind a FIFO, against scipy on the raw file that it wrote as well."""
    fifo, raw = place.path / "fifo", place.output / "raw"
    os.mkfifo(fifo)
    card = simulate(place, "--frames", 300, "--write-framed", fifo, "--write-raw", raw)
    report, packets = spectra_of(place, f"xdma:{fifo}?reopen=no", "--nperseg", 256)
    assert card.finish().code == 0
    check_books(report)
    source = report["source"]
    assert source["frames"] == 300 and source["lost"] == {} and source["kind"] == "FIFO"
    assert source["framing"]["resynchronised"] == 0 and source["framing"]["skipped_bytes"] == 0
    samples = np.fromfile(raw, "<i2").reshape(300, 4, 2048).swapaxes(0, 1).reshape(4, -1)
    check_against_scipy(packets, samples.astype(np.float64), settings_for(10e6))


def test_the_cards_losses_and_repeats_are_in_the_report(place):
    path = place.output / "frames"
    faults = ["--drop-every", 10, "--repeat-every", 7]
    assert simulate(place, "--frames", 200, "--write-framed", path, *faults).finish().code == 0
    report = place.run_with_report("--source", f"xdma:{path}")
    check_books(report)
    source = report["source"]
    # The last frame is one of the lost: nothing comes after it to tell.
    assert source["lost"] == {"overflow": 19} and source["flags"]["overflow"] == 19
    assert source["frames"] == 180 and source["repeated"] == 28 - 2
    assert report["frames"]["dropped"] == {"lost_by_source": 19}


def test_standard_output_of_a_program_is_a_card_too(place):
    """The user tries it without a card: one pipe."""
    line = (
        f"'{SIMULATOR}' --channels 2 --samples 512 --frames 100 --pace asap --write-framed - | "
        f"'{BINARIES / 'echelle-coordinator'}' --source 'xdma:/dev/stdin?reopen=no' "
        f"--report '{place.output / 'report'}' --quiet --fft-effort estimate"
    )
    run = subprocess.run(
        line, shell=True, env=place.environment, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    report = json.loads((place.output / "report").read_text())
    assert report["frames"]["done"] == report["source"]["frames"] == 100


@pytest.mark.parametrize(
    "keys, words",
    [
        ("channels=3", ["3", "4"]),
        ("rate=5e6", ["5000000", "10000000"]),
        ("tlast=1", ["tlast=1", "yes or no"]),
    ],
)
def test_contradictions_are_refused(place, keys, words):
    path = place.output / "frames"
    assert simulate(place, "--frames", 2, "--write-framed", path).finish().code == 0
    run = place.run("--source", f"xdma:{path}?{keys}", code=2)
    assert len(run.error_lines) == 1 and all(word in run.err for word in words)


@needs_fuse
def test_a_card_that_fails_and_goes_away_is_a_gap_and_no_end(place, faulty_card):
    node = faulty_card("channels=16", "pace=500", "faults=*97:gone=30,*61:fail=5,*41:stale")
    run = place.coordinator(
        *["--source", f"xdma:{node}?timeout=5", "--workers", 1, "--average", 1],
        *["--record", place.output / "record", "--report", place.output / "report"],
    )
    place.running_status()
    assert wait_until(lambda: place.status()["source"]["frames"] >= 600)
    status = place.status()["source"]
    assert status["state"] in ("reading", "away") and status["reopened"] > 0
    assert {"device_lost", "engine_error"} == set(status["trouble"])
    assert place.control("stop").code == 0
    finished = run.finish()
    assert finished.code == 0
    # One line for each kind of trouble, not for each trouble.
    assert len(finished.error_lines) == 2 and "dmesg" in finished.err
    report = json.loads((place.output / "report").read_text())
    check_books(report)
    source = report["source"]
    assert source["lost"]["bad_data"] > 5 and source["lost"]["device"] > 10
    assert report["frames"]["dropped"] == {"lost_by_source": sum(source["lost"].values())}
    packets = [p for p in read_recording(place.output / "record") if p.channel_id == 0]
    assert sum(PacketFlag.gap_before in p.flags for p in packets) == sum(source["lost"].values())


@needs_fuse
@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_read_that_never_returns_does_not_keep_the_run_from_ending(place, faulty_card, how):
    node = faulty_card("channels=16", "faults=100:dead")
    run = place.coordinator(
        *["--source", f"xdma:{node}?timeout=0.3", "--report", place.output / "report"],
        *["--record", place.output / "record"],
    )
    place.running_status()
    assert wait_until(lambda: place.status()["source"]["state"] == "not answering")
    place.control("stop") if how == "stop" else run.send(15)
    # All results are there. The kernel ends no process in a read that FUSE has handed on, not even
    # with SIGKILL: this one goes when the card does.
    assert wait_until((place.output / "record").exists, 20)
    assert wait_until((place.output / "report").exists, 20)
    assert wait_until(lambda: not (place.runtime / "echelle/echelle/control").exists(), 20)
    faulty_card.pull()
    finished = run.finish(20)
    assert finished.code == 0, finished.err
    assert "left behind" in finished.err
    report = json.loads((place.output / "report").read_text())
    check_books(report)
    assert report["frames"]["done"] == 100 and report["source"]["trouble"] == {"no_answer": 1}


@needs_fuse
def test_without_reopening_trouble_is_exit_code_1(place, faulty_card):
    node = faulty_card("channels=16", "faults=50:fail=5")
    report = place.run_with_report("--source", f"xdma:{node}?reopen=no", code=1)
    check_books(report)
    assert report["frames"]["done"] == 50
    assert "Input/output error" in report["failure"] and "dmesg" in report["failure"]


def test_the_c_producer_of_the_ring_is_right(place):
    """fpga_sim/examples/ring_producer.c, compiled as its page says, feeds a run."""
    program = place.path / "ring_producer"
    source = REPOSITORY / "fpga_sim/examples/ring_producer.c"
    compiler = shutil.which("cc") or shutil.which("gcc")
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([compiler, *flags, source, "-o", program, "-lm"], check=True, timeout=60)
    name = place.path.name
    producer = place.start(program, name, "tone", 1000, 3000)
    assert wait_until(lambda: os.path.exists(f"/dev/shm/echelle-{name}"))
    record = place.output / "record"
    report = place.run_with_report(
        "--source", f"ring:{name}", "--average", 10, "--record", record
    )
    assert producer.finish().code == 0
    check_books(report)
    assert report["config"]["channels"] == 8
    assert report["frames"]["done"] > 1000 and set(report["frames"]["dropped"]) <= {"overrun"}
    # The tone that the program says: 16 samples to a period at 10 MS/s, each channel half as strong.
    first = {packet.channel_id: packet for packet in list(read_recording(record))[80:88]}
    axis = first[0].frequencies()
    assert axis[first[0].values().argmax()] == 625e3
    assert first[0].values().max() / first[1].values().max() == pytest.approx(4, rel=1e-3)
    assert not os.path.exists(f"/dev/shm/echelle-{name}")
