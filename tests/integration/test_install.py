"""What `cmake --install` puts somewhere works there."""

import os
import subprocess
from pathlib import Path

import pytest
from cluster import check_books, read_report

BUILD = os.environ.get("ECHELLE_BUILD_DIR")

pytestmark = pytest.mark.skipif(not BUILD, reason="skipped: ECHELLE_BUILD_DIR is not given")


@pytest.fixture
def prefix(place):
    path = place.path / "prefix"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", path], check=True, capture_output=True, text=True
    )
    return path


def test_programs(place, prefix):
    for name in ("echelle-coordinator", "echelle-fpga-sim", "echelle-info", "echellectl"):
        finished = place.start(prefix / "bin" / name, "--version").finish()
        assert finished.code == 0 and finished.out.strip(), finished.err
        finished = place.start(prefix / "bin" / name, "--help").finish()
        assert finished.code == 0 and f"Usage: {name}" in finished.out
    report = place.output / "report.json"
    finished = place.start(
        *[prefix / "bin/echelle-coordinator", "--fft-effort", "estimate", "--workers", 2],
        *["--source", "sim:?channels=4&frames=50&pace=asap", "--report", report],
    ).finish()
    assert finished.code == 0, finished.err
    check_books(read_report(report))
    assert read_report(report)["frames"]["done"] == 50
    assert "frames done" in finished.out


def test_documents(prefix):
    installed = {path.name for path in prefix.rglob("*.md")}
    docs = {path.name for path in (Path(__file__).parents[2] / "docs").glob("*.md")}
    assert docs <= installed and "README.md" in installed
    assert any(path.name == "LICENSE" for path in prefix.rglob("LICENSE"))
