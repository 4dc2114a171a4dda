"""Test signals, the files that hold them, and what scipy makes of them."""

from collections import namedtuple

import numpy as np
import scipy.signal

RELATIVE = 1e-4
FLOOR = 1e-13  # -130 dB of the strongest channel's peak
# A transform in single precision is right to about one unit of rounding, 2^-24, of its peak's
# amplitude. A bin of power B beside a peak of power P is then off by 2 sqrt(B P) 2^-24 at most. In a
# mean over tens of segments these errors, of random sign, vanish below RELATIVE; in a median, a
# maximum or a mean of few segments they do not, where B is some -60 to -100 dB of P.
SINGLE_PRECISION = 2 * 2.0**-24
SEGMENTS_THAT_AVERAGE = 30

Setting = namedtuple(
    "Setting",
    "nperseg noverlap window detrend scaling average rate volts",
    defaults=(1024, None, "hann", "constant", "density", "mean", 48000.0, 0.0),
)


def make_samples(channels, count, is_complex, seed=1):
    """[channel][sample][1] int16 (complex: [re, im] at the end): strong, weak, silent, LSB noise.

    No two channels are alike. Some samples stand at the converter's limits.
    """
    rng = np.random.default_rng(seed)
    time = np.arange(count)
    parts = 2 if is_complex else 1
    samples = np.zeros((channels, count, parts))
    for channel in range(channels):
        if channel % 7 == 5:
            continue  # silent
        amplitude, sigma = ((8000, 100), (3000, 50), (100, 40), (6000, 80), (0, 0.3))[channel % 5]
        turns = 2 * np.pi * (0.03 + 0.011 * (channel % 40)) * time
        tone = amplitude * np.stack([np.cos(turns), np.sin(turns)][:parts], axis=1)
        noise = rng.normal(0, sigma, (count, parts))
        samples[channel] = tone + noise + np.array([400.0 - 90 * channel, 77.0][:parts])
    samples = np.clip(np.rint(samples), -32768, 32767).astype(np.int16)
    samples[0, 100:105, 0] = 32767
    samples[channels - 1, count // 2, parts - 1] = -32768
    return samples


def write_raw(path, samples, layout, frame_samples, dtype="<i2"):
    """Headerless, as docs/sources.md describes: rows of whole frames, or interleaved."""
    if layout == "sample-major":
        content = samples.swapaxes(0, 1).astype(dtype).tobytes()
    else:
        starts = range(0, samples.shape[1], frame_samples)
        content = b"".join(
            samples[:, start : start + frame_samples].astype(dtype).tobytes() for start in starts
        )
    path.write_bytes(content)


def as_signal(samples):
    """What scipy is given: [channel][sample] float64 or complex128, in counts."""
    wide = samples.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1] if samples.shape[2] == 2 else wide[..., 0]


def scipy_arguments(setting, is_complex):
    name, _, parameter = setting.window.partition(",")
    return {
        "fs": setting.rate,
        "window": (name, float(parameter)) if parameter else name,
        "nperseg": setting.nperseg,
        "noverlap": setting.noverlap,
        "detrend": "constant" if setting.detrend == "constant" else False,
        "return_onesided": not is_complex,
        "scaling": setting.scaling,
    }


def expected_spectra(signal, setting):
    """(frequencies, [channel][bin]) of the whole signal; complex ones with DC in the middle."""
    is_complex = np.iscomplexobj(signal)
    signal = signal * (setting.volts or 1.0)
    arguments = scipy_arguments(setting, is_complex)
    if setting.average == "max":
        noverlap = setting.nperseg // 2 if setting.noverlap is None else setting.noverlap
        arguments["noverlap"] = noverlap
        axis, _, columns = scipy.signal.spectrogram(signal, mode="psd", **arguments)
        spectra = columns.max(axis=-1)
    else:
        axis, spectra = scipy.signal.welch(signal, average=setting.average, **arguments)
    if is_complex:
        return np.fft.fftshift(axis), np.fft.fftshift(spectra, axes=-1)
    return axis, spectra


def segment_count(count, setting):
    noverlap = setting.nperseg // 2 if setting.noverlap is None else setting.noverlap
    return (count - noverlap) // (setting.nperseg - noverlap)


def periodograms(signal, setting):
    """[segment][channel][bin] by the definition of Welch's method, and each segment's last sample."""
    is_complex = np.iscomplexobj(signal)
    nperseg = setting.nperseg
    hop = nperseg - (nperseg // 2 if setting.noverlap is None else setting.noverlap)
    window = scipy.signal.get_window(scipy_arguments(setting, is_complex)["window"], nperseg)
    scale = 1 / (setting.rate * np.sum(window**2))
    if setting.scaling == "spectrum":
        scale = 1 / np.sum(window) ** 2
    starts = range(0, signal.shape[1] - nperseg + 1, hop)
    rows = []
    for start in starts:
        segment = signal[:, start : start + nperseg] * (setting.volts or 1.0)
        if setting.detrend == "constant":
            segment = segment - segment.mean(axis=1, keepdims=True)
        transform = np.fft.fft(segment * window, axis=1)
        power = np.abs(transform) ** 2 * scale
        if is_complex:
            power = np.fft.fftshift(power, axes=1)
        else:
            power = power[:, : nperseg // 2 + 1]
            power[:, 1 : (nperseg + 1) // 2] *= 2
        rows.append(power)
    return np.array(rows), np.array([start + nperseg - 1 for start in starts])


class Errors:
    """The largest deviations seen: relative where a bin is strong, else in dB of the peak."""

    def __init__(self):
        self.relative, self.floor, self.spectra = 0.0, 0.0, 0

    def check(self, got, expected, peak, segments):
        """Fails unless every bin agrees; `peak` is the strongest channel's."""
        assert got.shape == expected.shape
        deviation = np.abs(got.astype(np.float64) - expected)
        tolerance = np.maximum(expected * RELATIVE, peak * FLOOR)
        if segments < SEGMENTS_THAT_AVERAGE:
            tolerance = np.maximum(tolerance, SINGLE_PRECISION * np.sqrt(expected * peak))
        else:
            self.note(deviation, expected, peak)
        self.spectra += 1
        excess = deviation / tolerance
        worst = excess.argmax()
        assert excess[worst] <= 1, f"bin {worst}: {excess[worst]:.3g} times the tolerance"

    def note(self, deviation, expected, peak):
        strong = expected * RELATIVE > peak * FLOOR
        if strong.any():
            self.relative = max(self.relative, (deviation[strong] / expected[strong]).max())
        if not strong.all():
            self.floor = max(self.floor, (deviation[~strong] / peak).max())

    def line(self, what):
        weak = ""
        if self.floor > 0:
            decibels = 10 * np.log10(self.floor)
            weak = f", in weak bins {decibels:.1f} dB of the strongest channel's peak"
        return f"{what}: {self.spectra} spectra; largest error {self.relative:.2e} of a bin{weak}"
