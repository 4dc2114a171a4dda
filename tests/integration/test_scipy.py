"""Replayed files give what scipy.signal.welch gives on the whole file."""

import numpy as np
import pytest
from signals import (
    Errors,
    Setting,
    as_signal,
    expected_spectra,
    make_samples,
    segment_count,
    write_raw,
)

from echelle import PacketFlag, Scaling, read_recording

errors = Errors()


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("whole files against scipy.signal.welch"))


def options_of(setting):
    options = ["--nperseg", setting.nperseg, "--window", setting.window]
    options += ["--detrend", setting.detrend, "--scaling", setting.scaling]
    options += ["--average-mode", setting.average]
    options += [] if setting.noverlap is None else ["--noverlap", setting.noverlap]
    options += ["--volts-per-count", setting.volts] if setting.volts else []
    return options


def replay(place, samples, setting, layout="sample-major", frame=2048, rate="48000", extra=()):
    """The spectra of a raw file with these samples, one for each channel."""
    raw, recording = place.output / "samples.raw", place.output / "spectra"
    write_raw(raw, samples, layout, frame)
    source = f"raw:{raw}?channels={samples.shape[0]}&rate={rate}&samples={frame}&layout={layout}"
    source += "&format=ci16" if samples.shape[2] == 2 else ""
    place.run(
        *["--source", source, "--workers", 2, "--average", "all", "--record", recording],
        *options_of(setting),
        *extra,
    )
    return list(read_recording(recording))


def check_spectra(packets, samples, setting):
    signal = as_signal(samples)
    axis, expected = expected_spectra(signal, setting)
    assert [packet.channel_id for packet in packets] == list(range(len(samples)))
    peak = expected.max()
    segments = segment_count(samples.shape[1], setting) if setting.average == "mean" else 1
    for packet, spectrum in zip(packets, expected):
        errors.check(packet.values(), spectrum, peak, segments)
        assert np.allclose(packet.frequencies(), axis, rtol=1e-12, atol=1e-9 * setting.rate)


def check_labels(packets, samples, setting):
    """Everything but the values: segments, mean, RMS, over-range, flags, times, unit."""
    signal = as_signal(samples) * (setting.volts or 1.0)
    at_limits = ((samples <= -32768) | (samples >= 32767)).any(axis=2).sum(axis=1)
    segments = segment_count(samples.shape[1], setting)
    for packet, row, over in zip(packets, signal, at_limits):
        trailer = packet.trailer
        assert (trailer.segments_averaged, trailer.segments_expected) == (segments, segments)
        assert trailer.over_range_count == over
        assert trailer.mean == pytest.approx(
            abs(row.mean()) if np.iscomplexobj(row) else row.mean(), rel=1e-6, abs=1e-9
        )
        assert trailer.rms == pytest.approx(np.sqrt(np.mean(np.abs(row) ** 2)), rel=1e-6)
        flags = PacketFlag(0)
        flags |= PacketFlag.over_range if over else flags
        flags |= PacketFlag.two_sided if np.iscomplexobj(row) else flags
        flags |= PacketFlag.volts if setting.volts else flags
        assert trailer.flags == flags
        assert (trailer.first_sample, trailer.timestamp_ns, packet.timestamp_us) == (0, 0, 0)
        assert trailer.sequence == 0 and trailer.nperseg == setting.nperseg
        assert trailer.scaling == Scaling[setting.scaling]
        assert packet.unit() == ("V^2" if setting.volts else "counts^2") + (
            "/Hz" if setting.scaling == "density" else ""
        )


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("layout", ["channel-major", "sample-major"])
@pytest.mark.parametrize("channels", [1, 2, 3, 16, 128])
def test_channels_and_layouts(place, channels, layout, is_complex):
    # Whole frames and a part of one; at 128 channels fewer, to stay quick.
    count = 2048 * (40 if channels < 128 else 9) + 777
    samples = make_samples(channels, count, is_complex)
    setting = Setting()
    packets = replay(place, samples, setting, layout)
    check_spectra(packets, samples, setting)
    check_labels(packets, samples, setting)


SETTINGS = [
    Setting(noverlap=700),  # a hop of 324 does not divide the frame's 2048
    Setting(noverlap=0),
    Setting(nperseg=100, noverlap=93),
    Setting(nperseg=1001),
    Setting(nperseg=333, noverlap=200, detrend="none"),
    Setting(nperseg=5000),  # longer than a frame
    Setting(nperseg=7777, noverlap=5000, window="flattop"),
    Setting(detrend="none"),
    Setting(scaling="spectrum"),
    Setting(average="median"),
    Setting(average="median", nperseg=4000, noverlap=0),  # few segments, an even number of them
    Setting(average="max"),
    Setting(average="max", nperseg=5001, scaling="spectrum"),
    Setting(window="boxcar"),
    Setting(window="hamming"),
    Setting(window="blackman", scaling="spectrum"),
    Setting(window="blackmanharris"),
    Setting(window="flattop"),
    Setting(window="kaiser,8.6"),
    Setting(window="kaiser,14", nperseg=1023),
    Setting(window="tukey,0.25"),
    Setting(window="tukey,0.7", nperseg=511),
    Setting(volts=3.0517578125e-05),
    Setting(volts=1e-9, scaling="spectrum", average="median"),
    Setting(nperseg=2),
    Setting(nperseg=1, detrend="none"),
    Setting(
        *[999, 600, "kaiser,6", "none", "spectrum", "median"], rate=200 / 3, volts=0.25
    ),
]


def name_of(setting):
    words = [setting.nperseg, setting.noverlap, *setting[2:6]]
    return "-".join(str(word) for word in words if word is not None)


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_settings(place, setting, is_complex):
    samples = make_samples(3, 16 * 2048 + 1111, is_complex, seed=2)
    rate = "200/3" if setting.rate < 100 else "48000"
    packets = replay(place, samples, setting, rate=rate)
    check_spectra(packets, samples, setting)
    check_labels(packets, samples, setting)


@pytest.mark.parametrize("frame", [1, 7, 777, 4096, 40000])
def test_the_frame_length_does_not_matter(place, frame):
    samples = make_samples(2, 3001 if frame == 1 else 20011, False, seed=3)
    packets = replay(place, samples, Setting(nperseg=300), "channel-major", frame)
    check_spectra(packets, samples, Setting(nperseg=300))
    check_labels(packets, samples, Setting(nperseg=300))


def test_a_segment_as_long_as_the_recording(place):
    samples = make_samples(2, 6001, False, seed=4)
    setting = Setting(nperseg=6001)
    packets = replay(place, samples, setting)
    check_spectra(packets, samples, setting)
    assert [packet.segments_averaged for packet in packets] == [1, 1]


@pytest.mark.parametrize("pair", ["on", "off"])
def test_a_clean_tone_at_full_scale(place, pair):
    """The hardest for single precision: little noise and few segments to average it away."""
    time = np.arange(5000)
    rows = [32000 * np.cos(0.19 * time), 300 * np.cos(0.5 * time + 1)]
    noise = np.random.default_rng(8).normal(0, 0.5, (2, 5000))
    samples = np.rint(rows + noise).astype(np.int16)[..., np.newaxis]
    packets = replay(place, samples, Setting(), extra=["--pair-channels", pair])
    check_spectra(packets, samples, Setting())


def test_channels_transformed_alone(place):
    samples = make_samples(5, 20000, False, seed=5)
    packets = replay(place, samples, Setting(), extra=["--pair-channels", "off"])
    check_spectra(packets, samples, Setting())


@pytest.mark.parametrize("keys, dtype", [("format=i8", "i1"), ("endian=big", ">i2")])
def test_other_codings(place, keys, dtype):
    samples = np.clip(make_samples(2, 9000, False, seed=6) // 256, -128, 127)
    raw, recording = place.output / "samples.raw", place.output / "spectra"
    write_raw(raw, samples, "sample-major", 2048, dtype)
    source = f"raw:{raw}?channels=2&rate=48000&{keys}"
    place.run("--source", source, "--average", "all", "--record", recording, "--workers", 1)
    packets = list(read_recording(recording))
    check_spectra(packets, samples, Setting())
    limits = ((samples == 127) | (samples == -128)).any(axis=2).sum(axis=1)
    over = [packet.over_range_count for packet in packets]
    assert over == (limits.tolist() if dtype == "i1" else [0, 0]) and sum(limits) > 0
