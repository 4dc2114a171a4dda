#!/usr/bin/env python3
"""Makes the golden values of the Welch engine with scipy, beside this file.

recording_real.i16, recording_complex.i16   int16, [channel][sample] and [channel][sample][re, im]
welch.json                                  the cases, and where each one's values begin
welch.f64                                   float64, [case][channel][bin]; complex: DC-centred
windows.json                                scipy.signal.get_window for several lengths

Little-endian. Made with scipy 1.10.1; scipy.signal.welch works in double on float64 input.
"""
import json
import pathlib

import numpy as np
from scipy import signal

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = 2600
RNG = np.random.default_rng(20240229)


def to_i16(x):
    return np.clip(np.rint(x), -32768, 32767).astype("<i2")


def real_recording():
    t = np.arange(SAMPLES)
    return np.stack([
        to_i16(32000 * np.sin(2 * np.pi * 0.1234 * t) + RNG.normal(0, 10, SAMPLES)),
        to_i16(20000.3 + RNG.normal(0, 0.6, SAMPLES)),            # LSB noise on a large DC level
        to_i16(np.where(RNG.random(SAMPLES) < 0.5, -32768, 32767)),  # nothing but the rails
        to_i16(np.full(SAMPLES, -32768)),
        to_i16(RNG.normal(0, 1000, SAMPLES)),                     # left over when pairs are made
    ])


def complex_recording():
    t = np.arange(SAMPLES)
    tone = 30000 * np.exp(-2j * np.pi * 0.071 * t)
    noise = RNG.normal(0, 50, SAMPLES) + 1j * RNG.normal(0, 50, SAMPLES)
    rails = np.where(RNG.random((2, SAMPLES)) < 0.5, -32768, 32767)
    channels = [tone + noise, 15000.4 - 9000.2j + noise / 80, rails[0] + 1j * rails[1]]
    return np.stack([np.stack([to_i16(c.real), to_i16(c.imag)], axis=-1) for c in channels])


WINDOWS = ["boxcar", "hann", "hamming", "blackman", "blackmanharris", "flattop", "kaiser,8.6",
           "kaiser,0", "kaiser,150", "tukey,0.5", "tukey,0.1", "tukey,0", "tukey,1"]


def scipy_window(text):
    name, _, parameter = text.partition(",")
    return (name, float(parameter)) if parameter else name


def case(nperseg, noverlap, window="hann", detrend="constant", scaling="density", average="mean",
         rate=(10_000_000, 1), volts=0.0):
    return dict(nperseg=nperseg, noverlap=noverlap, window=window, detrend=detrend,
                scaling=scaling, average=average, rate=list(rate), volts_per_count=volts)


def cases(is_complex):
    made = [case(100, 50, window=w) for w in WINDOWS]
    made += [case(100, 30, window="kaiser,8.6", detrend=d, scaling=s, average=a, rate=(200, 3))
             for d in ("none", "constant") for s in ("density", "spectrum")
             for a in ("mean", "median", "max")]
    made += [case(1, 0), case(1, 0, detrend="none"), case(2, 1), case(2, 0, detrend="none"),
             case(3, 1), case(3, 2, detrend="none"), case(5, 0, average="median"),
             case(251, 125), case(255, 254, average="max"), case(256, 0), case(256, 192),
             case(64, 63, average="median"), case(64, 63), case(7, 6),
             case(600, 450, average="median"), case(1024, 100, volts=3.05e-5),
             case(512, 256, volts=1e-9, scaling="spectrum", window="flattop")]
    if not is_complex:
        made += [case(1024, 512), case(SAMPLES, 0), case(1021, 510, window="blackmanharris", detrend="none")]
    return made


def spectra(x, c):
    fs = c["rate"][0] / c["rate"][1]
    one_sided = not np.iscomplexobj(x)
    options = dict(fs=fs, window=scipy_window(c["window"]), nperseg=c["nperseg"],
                   noverlap=c["noverlap"], scaling=c["scaling"], return_onesided=one_sided,
                   detrend=False if c["detrend"] == "none" else c["detrend"])
    if c["average"] == "max":
        p = signal.spectrogram(x, mode="psd", **options)[2].max(axis=-1)
    else:
        p = signal.welch(x, average=c["average"], **options)[1]
    if not one_sided:
        p = np.fft.fftshift(p, axes=-1)
    if c["volts_per_count"] > 0:
        p = p * c["volts_per_count"] ** 2
    return p


def main():
    real = real_recording()
    iq = complex_recording()
    real.tofile(HERE / "recording_real.i16")
    iq.tofile(HERE / "recording_complex.i16")
    inputs = [(False, real.astype(np.float64)),
              (True, iq[..., 0].astype(np.float64) + 1j * iq[..., 1].astype(np.float64))]
    values, listed = [], []
    for is_complex, x in inputs:
        for c in cases(is_complex):
            p = spectra(x, c)
            listed.append(dict(c, complex=is_complex, offset=sum(v.size for v in values)))
            values.append(p.astype("<f8").ravel())
    np.concatenate(values).tofile(HERE / "welch.f64")
    recordings = dict(real=dict(channels=len(real), samples=SAMPLES),
                      complex=dict(channels=len(iq), samples=SAMPLES))
    lines = ",\n  ".join(json.dumps(c) for c in listed)
    (HERE / "welch.json").write_text(
        f'{{"recordings": {json.dumps(recordings)},\n "cases": [\n  {lines}]}}\n')
    windows = [dict(window=w, n=n, values=signal.get_window(scipy_window(w), n).tolist())
               for w in WINDOWS + ["kaiser,700"] for n in (1, 2, 3, 7, 16, 101)]
    (HERE / "windows.json").write_text(
        "[\n" + ",\n".join(json.dumps(w) for w in windows) + "]\n")


if __name__ == "__main__":
    main()
