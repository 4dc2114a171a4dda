"""The Python client's plotting example, against a live coordinator."""

import subprocess
import sys

import pytest
from cluster import REPOSITORY, Workplace

CLIENT = REPOSITORY / "clients/python"
EXAMPLE = CLIENT / "examples/plot_spectra.py"


def run(place, *arguments):
    environment = dict(place.environment, PYTHONPATH=str(CLIENT / "src"), MPLCONFIGDIR=str(place.path))
    return subprocess.run([sys.executable, EXAMPLE, *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=60)  # fmt: skip


def test_a_picture_of_a_live_channel(place: Workplace):
    image = pytest.importorskip("matplotlib.image", reason="python3-matplotlib is not installed")
    coordinator = place.coordinator(
        "--source", "sim:?channels=2&samples=256&rate=1e5&signal=tone(f=25000,a=8000)",
        "--workers", 1, "--nperseg", 256, "--average", 4)  # fmt: skip
    assert place.running_status()
    picture = place.output / "spectra.png"
    finished = run(place, "--channel", 1, "--spectra", 20, "echelle", picture)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "20 spectra of channel 1, 0 missed\n"
    assert place.control("stop").code == 0
    assert coordinator.finish().code == 0
    pixels = image.imread(picture)
    assert picture.read_bytes().startswith(b"\x89PNG") and pixels.shape[2] >= 3
    # More than paper and ink: the waterfall has many colours.
    assert len({tuple(pixel) for row in pixels[::4, ::4] for pixel in row}) > 20


def test_nobody_there_is_one_line(place):
    pytest.importorskip("matplotlib", reason="python3-matplotlib is not installed")
    finished = run(place, "--timeout", 0.2, "none", place.output / "x.png")
    assert finished.returncode == 1
    assert len(finished.stderr.splitlines()) == 1
    assert finished.stderr.startswith("plot_spectra: nothing came from")
