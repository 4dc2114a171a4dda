#!/usr/bin/env python3
"""Plots what a running coordinator makes of one channel: the last spectrum, and a waterfall.

    python3 plot_spectra.py [--channel N] [--spectra N] [INSTANCE|ENDPOINT] PICTURE.png

Needs matplotlib (Debian: python3-matplotlib), and what echelle.subscribe() needs.
"""

import argparse
import sys

import matplotlib
import numpy as np

import echelle

matplotlib.use("Agg")  # into a file, without a display
import matplotlib.pyplot as plt  # noqa: E402


def receive(target, channel, count, timeout):
    """The next spectra of one channel, and how many were missed between them."""
    with echelle.subscribe(target, channels=[channel], timeout=timeout) as feed:
        packets = [packet for packet, _ in zip(feed, range(count))]
        return packets, feed.missed


def plot(packets, path):
    """Writes the picture. Times count from the first spectrum."""
    last = packets[-1]
    frequencies = np.asarray(last.frequencies())
    # A silent bin has no logarithm.
    power = np.maximum([packet.values() for packet in packets], np.finfo(np.float32).tiny)
    levels = 10 * np.log10(power)
    seconds = [(packet.timestamp_ns - packets[0].timestamp_ns) / 1e9 for packet in packets]
    figure, (line, waterfall) = plt.subplots(2, 1, sharex=True, layout="constrained")
    line.plot(frequencies, levels[-1])
    line.set_ylabel(f"dB({last.unit()})")
    line.set_title(f"channel {last.channel_id}, spectrum {last.sequence}")
    mesh = waterfall.pcolormesh(frequencies, seconds, levels, shading="nearest")
    waterfall.set_xlabel("frequency in Hz")
    waterfall.set_ylabel("time in s")
    figure.colorbar(mesh, ax=waterfall, label=f"dB({last.unit()})")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description="Plots spectra of a running coordinator.")
    parser.add_argument("target", nargs="?", default="echelle", help="instance or endpoint")
    parser.add_argument("picture", help="the PNG to write")
    parser.add_argument("--channel", type=int, default=0)
    parser.add_argument("--spectra", type=int, default=100, help="lines of the waterfall")
    parser.add_argument("--timeout", type=float, default=10, help="seconds without a spectrum")
    arguments = parser.parse_args()
    try:
        packets, missed = receive(
            arguments.target, arguments.channel, arguments.spectra, arguments.timeout
        )
        if len(packets) < 2:
            return f"plot_spectra: the run at {arguments.target} ended before two spectra had come"
        plot(packets, arguments.picture)
    except (echelle.FeedError, echelle.PacketError, OSError) as error:
        return f"plot_spectra: {error}"
    print(f"{len(packets)} spectra of channel {arguments.channel}, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
