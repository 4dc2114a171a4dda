#!/usr/bin/env python3
"""GNU Radio's usual spectrum chain over a recording: short to float, stream to vector, windowed
fft_vfc, magnitude squared, integrate.

    gnuradio_fft.py --raw FILE --psd FILE

GNU Radio has no overlapping segments, so two such chains run in one flowgraph, the second 512
samples later; a channel follows the other, each with whole segments only. It does not detrend.
Prints one JSON object: CPU time of the whole process (each block is a thread) per frame.
"""

import json
import tempfile
import time
from pathlib import Path

import numpy
import recording
from gnuradio import blocks, fft, gr
from gnuradio.fft import window

BINS = recording.NPERSEG // 2 + 1


def whole_segments(rows, first):
    """Every channel's samples from `first` on, cut to whole segments: (flat samples, segments)."""
    segments = (rows.shape[1] - first) // recording.NPERSEG
    return rows[:, first : first + segments * recording.NPERSEG], segments


def periodic_hann():
    return window.hann(recording.NPERSEG + 1)[:-1]


class Chain(gr.top_block):
    """Both halves of the segments of all channels; sums() after run()."""

    def __init__(self, halves):
        super().__init__("spectra", catch_exceptions=False)
        self.sinks = []
        for path, segments in halves:
            size = recording.NPERSEG
            sink = blocks.vector_sink_f(size)
            self.connect(
                blocks.file_source(gr.sizeof_short, str(path)),
                blocks.short_to_float(1, 1.0),
                blocks.stream_to_vector(gr.sizeof_float, size),
                fft.fft_vfc(size, True, periodic_hann(), False, 1),
                blocks.complex_to_mag_squared(size),
                blocks.integrate_ff(segments, size),
                sink,
            )
            self.sinks.append(sink)

    def sums(self):
        """(128, 1024): |X|^2 summed over all segments."""
        return sum(
            numpy.array(sink.data(), dtype=numpy.float64).reshape(recording.CHANNELS, -1)
            for sink in self.sinks
        )


def main():
    given = recording.parse_arguments(__doc__)
    rows = recording.channel_rows(given.raw)
    with tempfile.TemporaryDirectory() as folder:
        halves = []
        for index, first in enumerate((0, recording.HOP)):
            samples, segments = whole_segments(rows, first)
            path = Path(folder) / f"half-{index}"
            numpy.ascontiguousarray(samples).tofile(path)
            halves.append((path, segments))
        chain = Chain(halves)
        began_s = time.process_time()
        chain.run()
        cpu_s = time.process_time() - began_s
    weights = numpy.square(periodic_hann()).sum() * recording.RATE_HZ
    psd = chain.sums()[:, :BINS] / (weights * sum(segments for _, segments in halves))
    psd[:, 1:-1] *= 2
    psd.astype(numpy.float32).tofile(given.psd)
    frames = recording.frames_in(rows)
    print(json.dumps({"core_us_per_frame": cpu_s * 1e6 / frames, "frames": frames}))


if __name__ == "__main__":
    main()
