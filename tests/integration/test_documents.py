"""What the documents name is there."""

import re

import pytest
from cluster import REPOSITORY

PAGE = REPOSITORY / "docs/fault_classes.md"
# Failures of cards, converters, links and recordings that were reported in public.
REPORTED = """dma_ip_drivers #353, dma_ip_drivers #189, dma_ip_drivers #133, dma_ip_drivers #38,
litepcie #73, adi hdl #441, libiio PR#1010, libiio PR#198, libiio #981, libiio #1359, libiio #888,
iperf #457, gr-grnet #6, gnuradio #6485, SigMF #205, sdrangel #2325, libsndfile #300,
RedPitaya #289, digital_rf #4, #60, digital_rf #85, libpcap #1710, scipy #25608, scipy #3655,
mne #7024, #10996"""


def rows():
    """The cells of each row of each table."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[-1].strip() not in ("tests", "---")]


def named_in(cell):
    """(file, names) of a cell like "`a.py`: `x`, `y`; `b.cpp`"."""
    for part in cell.split("; "):
        files, _, names = part.partition(": ")
        yield from ((file, re.findall("`([^`]+)`", names)) for file in re.findall("`([^`]+)`", files))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_every_fault_class_has_its_tests(row):
    found = list(named_in(row[-1]))
    assert found, row
    for file, names in found:
        path = REPOSITORY / "tests" / file
        assert path.exists(), file
        text = path.read_text()
        for name in names:
            python, cpp = rf"^def test_{name}\(", rf"^TEST(_F|_P)?\(\w+, {name}\)"
            pattern = python if path.suffix == ".py" else cpp
            assert re.search(pattern, text, re.MULTILINE), f"{file} has no {name}"


@pytest.mark.parametrize("issue", re.split(r",\s+(?!#)", REPORTED))
def test_every_reported_failure_has_a_row(issue):
    assert any(row[0].startswith(issue) for row in rows()), issue
