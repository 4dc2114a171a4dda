"""The reference gateware (fpga_sim/gateware): linted, simulated, and what it sends read by the real
source. gateware_bench.cpp drives it, with random back-pressure, and checks AXI4-Stream's rules."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from cluster import BINARIES, REPOSITORY, check_books
from recordings import check_against_scipy, settings_for, spectra_of

GATEWARE = REPOSITORY / "fpga_sim/gateware"
BENCH = BINARIES / "gateware_bench"
CHANNELS, SAMPLES = 4, 64
pytestmark = pytest.mark.skipif(
    shutil.which("verilator") is None, reason="needs Debian's verilator"
)


def samples_of(frames):
    """[channel][sample] as gateware_bench's converters give them."""
    count = frames * SAMPLES * CHANNELS
    mixed = (np.arange(1, count + 1, dtype=np.uint64) * 2654435761) & 0xFFFFFFFF
    return (mixed >> 16).astype(np.uint16).view(np.int16).reshape(-1, CHANNELS).T


def simulate(path, frames, busy, stalls, seed=1):
    run = subprocess.run(
        [BENCH, path, *map(str, (frames, busy, stalls, seed))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("data_bytes", [8, 16, 32, 64])
def test_lint(data_bytes):
    run = subprocess.run(
        ["verilator", "--lint-only", "-Wall", f"-GDATA_BYTES={data_bytes}"]
        + [f"-GDEPTH={2**20 // data_bytes}"]
        + ["--top-module", "echelle_capture", *sorted(map(str, GATEWARE.glob("*.sv")))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0 and run.stderr == "", run.stderr


def test_every_frame_arrives_and_its_spectrum_is_the_samples(place):
    """Random back-pressure that the gate's memory bridges: nothing is lost."""
    frames = 800
    path = place.output / "card.bin"
    bench = simulate(path, frames, busy=50, stalls=0)
    assert bench["packets"] == frames
    report, packets = spectra_of(place, f"xdma:{path}", "--nperseg", 256)
    check_books(report)
    source = report["source"]
    assert source["frames"] == frames and source["lost"] == {}
    assert source["framing"]["resynchronised"] == 0 and source["framing"]["skipped_bytes"] == 0
    assert source["flags"] == {"overflow": 0, "over_range": 1}
    check_against_scipy(packets, samples_of(frames).astype(np.float64), settings_for(10e6))


def test_frames_that_find_no_room_are_lost_whole_and_counted(place):
    """The receiver stops now and then for longer than the memory bridges."""
    frames = 600
    path = place.output / "card.bin"
    bench = simulate(path, frames, busy=40, stalls=7, seed=3)
    report = place.run_with_report("--source", f"xdma:{path}", "--nperseg", 64)
    check_books(report)
    source = report["source"]
    assert source["frames"] == bench["packets"] < frames
    assert source["framing"]["resynchronised"] == 0 and source["framing"]["skipped_bytes"] == 0
    assert set(source["lost"]) == {"overflow"}
    # Those lost after the last one sent, if any, have no successor to tell of them.
    assert frames - bench["packets"] - 2 <= source["lost"]["overflow"] <= frames - bench["packets"]
    assert source["flags"]["overflow"] == 7
    assert report["frames"]["dropped"] == {"lost_by_source": source["lost"]["overflow"]}
