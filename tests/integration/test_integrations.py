"""Finite integrations: each spectrum is made of the segments whose last sample lies in its frames.

The reference is the definition itself in numpy; that it is Welch's method as scipy has it is
checked here too.
"""

import numpy as np
import pytest
import scipy.signal
from signals import (
    Errors,
    Setting,
    as_signal,
    expected_spectra,
    make_samples,
    periodograms,
    write_raw,
)

from echelle import PacketFlag, read_recording

RATE = 48000
errors = Errors()


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("finite integrations against their definition"))


def replay(place, samples, frame, setting, average):
    raw, recording = place.output / "samples.raw", place.output / "spectra"
    write_raw(raw, samples, "sample-major", frame)
    kind = "ci16" if samples.shape[2] == 2 else "i16"
    keys = f"channels={len(samples)}&rate={RATE}&samples={frame}&format={kind}"
    overlap = [] if setting.noverlap is None else ["--noverlap", setting.noverlap]
    report = place.run_with_report(
        *["--source", f"raw:{raw}?{keys}", "--workers", 2, "--record", recording],
        *["--average", average, "--nperseg", setting.nperseg, "--window", setting.window, *overlap],
        *["--average-mode", setting.average],
    )
    return list(read_recording(recording)), report


def combined(rows, average):
    """What the segments of one integration give: [channel][bin]."""
    if average == "max":
        return rows.max(axis=0)
    if average == "mean":
        return rows.mean(axis=0)
    # scipy's correction of the median's bias is private there; its value, from the definition:
    odd = len(rows) if len(rows) % 2 else len(rows) - 1
    bias = 1 + sum(1 / (2 * i + 1) - 1 / (2 * i) for i in range(1, odd // 2 + 1))
    return np.median(rows, axis=0) / bias


def check(packets, samples, frame, setting, frames_averaged):
    signal = as_signal(samples)
    rows, last_samples = periodograms(signal, setting)
    length = frame * frames_averaged
    at_limits = ((samples <= -32768) | (samples >= 32767)).any(axis=2)
    packets = iter(packets)
    sequence = 0
    for start in range(0, signal.shape[1], length):
        end = min(start + length, signal.shape[1])
        own = rows[(last_samples >= start) & (last_samples < end)]
        if len(own) == 0:
            continue  # no segment has ended yet: no spectrum
        expected = combined(own, setting.average)
        for channel, spectrum in enumerate(expected):
            packet = next(packets)
            trailer = packet.trailer
            assert (packet.channel_id, trailer.sequence) == (channel, sequence)
            averaged = len(own) if setting.average == "mean" else 1
            errors.check(packet.values(), spectrum, expected.max(), averaged)
            assert trailer.segments_averaged == trailer.segments_expected == len(own)
            assert trailer.first_sample == start
            assert trailer.timestamp_ns == round(start * 1e9 / RATE)
            assert packet.timestamp_us == trailer.timestamp_ns // 1000 % 2**32
            part = signal[channel, start:end]
            mean = abs(part.mean()) if np.iscomplexobj(part) else part.mean()
            assert trailer.mean == pytest.approx(mean, rel=1e-6, abs=1e-9)
            assert trailer.rms == pytest.approx(np.sqrt(np.mean(np.abs(part) ** 2)), rel=1e-6)
            over = at_limits[channel, start:end].sum()
            assert trailer.over_range_count == over
            assert bool(trailer.flags & PacketFlag.over_range) == (over > 0)
            assert bool(trailer.flags & PacketFlag.partial) == (end - start < length)
            assert not trailer.flags & (PacketFlag.gap_before | PacketFlag.incomplete)
        sequence += 1
    assert next(packets, None) is None
    return sequence


def test_the_definition_is_welchs_method():
    signal = as_signal(make_samples(2, 9000, False))
    for setting in [Setting(), Setting(nperseg=333, noverlap=100, average="median")]:
        rows, _ = periodograms(signal, setting)
        _, expected = expected_spectra(signal, setting)
        assert np.allclose(combined(rows, setting.average), expected, rtol=1e-9)
    _, _, columns = scipy.signal.spectrogram(
        signal, RATE, "hann", 1024, 512, detrend="constant", mode="psd"
    )
    assert np.allclose(periodograms(signal, Setting())[0].transpose(1, 2, 0), columns, rtol=1e-9)


CASES = {
    "16 frames": (16, 2048, Setting()),
    "one frame": (1, 2048, Setting()),
    "segments reach back": (3, 512, Setting(noverlap=700)),
    "some frames end no segment": (1, 512, Setting()),
    "a segment over many frames": (5, 300, Setting(nperseg=1501, window="hamming")),
    "the last one is cut short": (7, 1000, Setting(nperseg=256)),
    "median": (8, 1024, Setting(nperseg=500, average="median")),
    "median over blocks": (70, 100, Setting(nperseg=200, average="median")),
    "maximum": (6, 1024, Setting(nperseg=500, average="max")),
}


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("case", CASES)
def test_integrations(place, case, is_complex):
    averaged, frame, setting = CASES[case]
    samples = make_samples(3, 40 * 1024 + 123, is_complex, seed=7)
    packets, report = replay(place, samples, frame, setting, averaged)
    spectra = check(packets, samples, frame, setting, averaged)
    assert spectra > 1
    assert report["spectra"]["out"] == 3 * spectra == len(packets)
    integrations = -(-samples.shape[1] // (frame * averaged))
    assert report["spectra"]["empty"] == 3 * (integrations - spectra)
    assert report["spectra"]["incomplete"] == 0


def test_an_integration_in_seconds(place):
    samples = make_samples(2, 30000, False, seed=7)
    packets, report = replay(place, samples, 1000, Setting(), "0.1s")
    # 0.1 s at 48 kS/s are 4.8 frames of 1000: rounded to 5.
    assert report["config"]["average_frames"] == 5
    assert check(packets, samples, 1000, Setting(), 5) == 6


def test_times_at_a_rate_that_is_no_whole_number(place):
    samples = make_samples(1, 4000, False, seed=7)
    raw, recording = place.output / "samples.raw", place.output / "spectra"
    write_raw(raw, samples, "sample-major", 100)
    source = f"raw:{raw}?channels=1&rate=200/3&samples=100"
    place.run("--source", source, "--average", 8, "--nperseg", 100, "--record", recording)
    times = [packet.timestamp_ns for packet in read_recording(recording)]
    # 800 samples at 200/3 Hz last exactly 12 s.
    assert times == [0, 12 * 10**9, 24 * 10**9, 36 * 10**9, 48 * 10**9]
    (first, *_) = read_recording(recording)
    assert tuple(first.rate) == (200, 3)
    assert [p.timestamp_us for p in read_recording(recording)][4] == 48 * 10**6
