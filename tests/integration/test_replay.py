"""The replay keys of recordings, and frames that are missing, against scipy on what is there."""

import json
import time

import numpy as np
import pytest
from cluster import SIMULATOR, check_books
from recordings import check_against_scipy, errors, settings_for, spectra_of
from signals import (
    Setting,
    as_signal,
    expected_spectra,
    make_samples,
    periodograms,
    segment_count,
)
from test_integrations import combined

from echelle import PacketFlag, read_recording

RATE = 48000


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("replays against scipy.signal.welch"))


def write_raw_file(place, samples):
    """An interleaved file of 16-bit samples, and the URI that reads it."""
    path = place.output / "samples.raw"
    path.write_bytes(samples.swapaxes(0, 1).astype("<i2").tobytes())
    kind = "ci16" if samples.shape[2] == 2 else "i16"
    return f"raw:{path}?channels={len(samples)}&rate={RATE}&format={kind}"


def write_sigmf(place, samples, missing):
    """A SigMF recording of [channel][sample], without the samples of the ranges in `missing`."""
    kept = np.ones(samples.shape[1], bool)
    for first, end in missing:
        kept[first:end] = False
    starts = [0, *[end for _, end in missing]]
    captures = [
        {"core:sample_start": int(kept[:start].sum()), "core:global_index": start}
        for start in starts
    ]
    about = {"core:version": "1.2.0", "core:datatype": "ri16_le", "core:sample_rate": RATE}
    about["core:num_channels"] = len(samples)
    meta = {"global": about, "captures": captures, "annotations": []}
    (place.output / "x.sigmf-meta").write_text(json.dumps(meta))
    (place.output / "x.sigmf-data").write_bytes(samples[:, kept].T.astype("<i2").tobytes())
    return f"sigmf:{place.output}/x.sigmf-meta"


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_a_part_of_a_recording(place, is_complex):
    samples = make_samples(3, 30_011, is_complex)
    uri = write_raw_file(place, samples)
    cases = [("start=7001&count=9999", 7001, 9999), ("start=0.25s&count=0.125s", 12_000, 6000)]
    for keys, first, count in cases[is_complex:]:
        report, packets = spectra_of(place, f"{uri}&{keys}", "--nperseg", 256)
        part = as_signal(samples[:, first : first + count])
        check_against_scipy(packets, part, settings_for(RATE))
        assert {packet.trailer.first_sample for packet in packets} == {first}
        # Without a clock of its own, a recording counts from the epoch.
        assert {packet.timestamp_ns for packet in packets} == {round(first * 1e9 / RATE)}
        assert report["recording"]["replay"]["samples_per_channel"] == count


def test_a_loop_averages_each_pass_and_nothing_across_the_restart(place):
    samples = make_samples(2, 5000, False)
    report, packets = spectra_of(place, f"{write_raw_file(place, samples)}&loop=4")
    _, once = expected_spectra(as_signal(samples), Setting(rate=float(RATE)))
    segments = segment_count(5000, Setting())
    for packet, spectrum in zip(packets, once, strict=True):
        errors.check(packet.values(), spectrum, once.max(), segments)
        assert packet.segments_averaged == 4 * segments
        assert packet.trailer.flags & PacketFlag.gap_before
    assert report["recording"]["replay"]["passes_done"] == 4


def test_a_recording_in_real_time(place):
    samples = make_samples(1, RATE, False)
    began = time.monotonic()
    source = f"{write_raw_file(place, samples)}&samples=480&pace=2x"
    report = place.run_with_report("--source", source, "--workers", 1)
    assert time.monotonic() - began >= 0.5  # one second of signal
    check_books(report)
    assert report["config"]["on_overrun"] == "drop"
    assert report["frames"]["in"] == 100 and report["realtime_factor"] < 2.2
    assert report["recording"]["replay"]["speed"] == 2


# mne #7024 and #10996: one bad frame in eight. What touches it is dropped, the number of segments
# used is reported, and a median is corrected for that number.
@pytest.mark.parametrize("mode", ["mean", "median"])
def test_one_bad_frame_in_eight_of_a_recording(place, mode):
    samples = make_samples(2, 8 * 2048, False)[..., 0]
    uri = write_sigmf(place, samples, [(3 * 2048, 4 * 2048)])
    report, packets = spectra_of(place, uri, "--average-mode", mode)
    setting = Setting(rate=float(RATE), average=mode)
    parts = [samples[:, : 3 * 2048], samples[:, 4 * 2048 :]]
    rows = np.concatenate([periodograms(part.astype(float), setting)[0] for part in parts])
    expected = combined(rows, mode)
    for packet, spectrum in zip(packets, expected, strict=True):
        errors.check(packet.values(), spectrum, expected.max(), len(rows) if mode == "mean" else 1)
        assert packet.segments_averaged == len(rows) == 11 + 15
    assert report["recording"]["gaps"]["samples_missing"] == 2048


@pytest.mark.parametrize("mode", ["mean", "median"])
def test_one_lost_frame_in_eight_of_a_live_source(place, mode):
    stream = ["channels=2", "rate=48000", "seed=5", "frames=32"]
    signal = "signal=tone(f=5000, a=3000) + noise(200)"
    # The same stream without losses, as a file.
    reference = place.output / "reference.raw"
    options = [part for key in [*stream, signal] for part in ("--" + key).split("=", 1)]
    written = place.start(SIMULATOR, *options, "--write-raw", reference).finish()
    assert written.code == 0, written.err
    frames = np.fromfile(reference, np.int16).reshape(32, 2, 2048).astype(float)
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", "sim:?" + "&".join([*stream, signal, "pace=asap", "drop-every=8"])],
        *["--average", 8, "--average-mode", mode, "--record", recording],
    )
    check_books(report)
    assert report["frames"]["dropped"] == {"lost_by_source": 3}  # the last one leaves no trace
    packets = list(read_recording(recording))
    setting = Setting(rate=float(RATE), average=mode)
    for number in range(4):
        sound = np.concatenate(frames[8 * number : 8 * number + 7], axis=1)
        rows = periodograms(sound, setting)[0]
        expected = combined(rows, mode)
        for channel in range(2):
            packet = packets[2 * number + channel]
            averaged = len(rows) if mode == "mean" else 1
            errors.check(packet.values(), expected[channel], expected.max(), averaged)
            assert packet.segments_averaged == len(rows) == segment_count(7 * 2048, setting)
            if number < 3:
                assert packet.trailer.segments_expected == segment_count(8 * 2048, setting)
                assert packet.trailer.flags & PacketFlag.incomplete
