#!/usr/bin/env python3
"""scipy.signal.welch over a recording: all channels in one call, on one thread.

    scipy_welch.py --raw FILE --psd FILE

It is given int16, for which it computes in single precision, and each channel's samples in one row;
making the rows isn't counted. Prints one JSON object: CPU time per frame, the median of some calls.
"""

import json
import statistics
import time

import numpy
import recording
from scipy.signal import welch

CALLS = 3


def main():
    given = recording.parse_arguments(__doc__)
    rows = recording.channel_rows(given.raw)
    cpu_s = []
    for _ in range(CALLS):
        began_s = time.process_time()
        _, psd = welch(rows, fs=recording.RATE_HZ, nperseg=recording.NPERSEG, axis=-1)
        cpu_s.append(time.process_time() - began_s)
    numpy.asarray(psd, dtype=numpy.float32).tofile(given.psd)
    frames = recording.frames_in(rows)
    print(json.dumps({
        "core_us_per_frame": statistics.median(cpu_s) * 1e6 / frames,
        "frames": frames,
        "precision": str(psd.dtype),
    }))


if __name__ == "__main__":
    main()
