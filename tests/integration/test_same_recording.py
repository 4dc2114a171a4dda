"""A recording depends on input and Welch parameters alone: not on workers, notices or blocks."""

import pytest
from packet_bytes import without_worker, workers_named

SIGNAL = "0-4: tone(f=1MHz, a=8000, df=10kHz) + noise(30); *: noise(3) + dc(-12)"
SOURCE = f"sim:?channels=13&samples=512&frames=203&pace=asap&seed=7&signal={SIGNAL}"
WELCH = {
    "mean of all": ["--average", "all"],
    "mean of 16": ["--average", 16, "--noverlap", 700],
    "median of 10": ["--average", 10, "--nperseg", 600, "--average-mode", "median"],
    "maximum of 7, complex": ["--average", 7, "--average-mode", "max", "--format", "ci16"],
}
WAYS = [
    ["--workers", 2],
    ["--workers", 5],
    ["--workers", 1, "--notify", "futex"],
    ["--workers", 2, "--notify", "futex", "--block-channels", 2],
    ["--workers", 5, "--notify", "futex", "--block-channels", 6, "--pin", "none"],
    ["--workers", 2, "--block-channels", 4, "--ring-frames", 60],
]


@pytest.mark.parametrize("welch", WELCH)
def test_byte_for_byte(place, welch):
    def record(name, *way):
        path = place.output / name
        place.run("--source", SOURCE, "--record", path, *WELCH[welch], *way)
        return path

    reference = record("reference", "--workers", 1)
    expected = without_worker(reference)
    assert expected
    # What is masked is no more than it should be: one worker is named by its number.
    assert workers_named(reference) == {0}
    for number, way in enumerate(WAYS):
        assert without_worker(record(f"way{number}", *way)) == expected, way
