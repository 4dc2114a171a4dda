"""Whether a peer computed the right spectra: its own kind of Welch by scipy, in double precision.

Each peer differs from scipy's defaults where it can't do otherwise; the reference takes that over.
"""

import numpy
import recording
from scipy.signal import get_window, welch

DEPTH_DB = 60  # bins further below their channel's peak are left out: float32's own noise


def _welch(rows, **options):
    _, psd = welch(rows.astype(float), fs=recording.RATE_HZ, nperseg=recording.NPERSEG, axis=-1,
                   **options)
    return psd


def _of_single_frames(rows):
    """The naive cluster's: each frame by itself, then the mean."""
    frames = rows.reshape(recording.CHANNELS, -1, recording.SAMPLES)
    return _welch(frames).mean(axis=1)


def _liquids(rows):
    """A symmetric Hann window, no detrending, and a first segment that is half empty."""
    started = numpy.pad(rows, ((0, 0), (recording.HOP, 0)))
    return _welch(started, window=get_window("hann", recording.NPERSEG, fftbins=False),
                  detrend=False)


def reference(name, rows):
    """(128, 513) in counts^2/Hz."""
    if name == "naive_cluster":
        return _of_single_frames(rows)
    if name == "liquid":
        return _liquids(rows)
    return _welch(rows, detrend=False if name == "gnuradio" else "constant")


def read_psd(name, path):
    """A peer's result as (128, 513); liquid's own scale is made scipy's by the caller."""
    values = numpy.fromfile(path, dtype=numpy.float32).astype(float)
    if name == "liquid":
        centred = 10 ** (values.reshape(recording.CHANNELS, -1) / 10)
        psd = numpy.fft.ifftshift(centred, axes=-1)[:, : recording.NPERSEG // 2 + 1]
        psd[:, 1:-1] *= 2
        return psd
    return values.reshape(recording.CHANNELS, -1)


def worst_relative_error(name, path, rows):
    """Over all bins within DEPTH_DB of their channel's peak."""
    wanted = reference(name, rows)
    found = read_psd(name, path)
    if name == "liquid":
        found *= wanted.sum() / found.sum()
    matters = wanted > wanted.max(axis=-1, keepdims=True) * 10 ** (-DEPTH_DB / 10)
    return float((numpy.abs(found - wanted) / wanted)[matters].max())
