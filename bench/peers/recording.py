"""The recording that every peer reads: channel-major int16 frames of 128 channels x 2048 samples,
as echelle-fpga-sim writes them."""

import argparse

import numpy

CHANNELS = 128
SAMPLES = 2048
RATE_HZ = 10e6
NPERSEG = 1024
HOP = 512


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--raw", required=True, help="the recording")
    parser.add_argument("--psd", required=True, help="takes the spectra, float32")
    return parser.parse_args()


def channel_rows(path):
    """(128, samples) int16, contiguous."""
    frames = numpy.fromfile(path, dtype=numpy.int16).reshape(-1, CHANNELS, SAMPLES)
    return numpy.ascontiguousarray(frames.transpose(1, 0, 2)).reshape(CHANNELS, -1)


def frames_in(rows):
    return rows.shape[1] // SAMPLES
