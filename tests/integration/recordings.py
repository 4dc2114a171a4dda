"""Recordings for the tests of readers: written by independent writers, or decoded independently."""

import struct
from pathlib import Path

import h5py
import numpy as np
from cluster import REPOSITORY
from signals import Errors, Setting, expected_spectra, segment_count

from echelle import read_recording

DATA = REPOSITORY.parent / "shared/data"
NO_DATA = "skipped: no real recordings here"

errors = Errors()


def spectra_of(place, source, *options):
    """The report and the packets of a run with one spectrum for all of a source."""
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", source, "--workers", 1, "--average", "all", "--record", recording], *options
    )
    return report, list(read_recording(recording))


def check_against_scipy(packets, samples, setting):
    """`samples` are [channel][sample], real or complex; every bin of every channel must agree."""
    axis, expected = expected_spectra(samples, setting)
    assert [packet.channel_id for packet in packets] == list(range(len(samples)))
    segments = segment_count(samples.shape[1], setting)
    for packet, spectrum in zip(packets, expected):
        errors.check(packet.values(), spectrum, expected.max(), segments)
        assert np.allclose(packet.frequencies(), axis, rtol=1e-12, atol=1e-9 * setting.rate)
        assert packet.segments_averaged == segments


def welch_of_stretches(stretches, setting, is_complex):
    """Welch over several stretches: the mean over all their segments, none across a gap."""
    total, count = 0, 0
    for stretch in stretches:
        segments = segment_count(stretch.shape[1], setting)
        if segments < 1:
            continue
        axis, spectra = expected_spectra(stretch, setting)
        total, count = total + segments * spectra, count + segments
    return axis, total / count, count


def read_puppi(path):
    """[channel x polarisation][sample] of the GUPPI recording, its overlap left out."""
    content, at, blocks = Path(path).read_bytes(), 0, []
    while at < len(content):
        cards = {}
        while not (card := content[at : at + 80].decode()).startswith("END"):
            cards[card[:8].strip()] = card[10:].split("/")[0].strip()
            at += 80
        at += 80
        size, overlap = int(cards["BLOCSIZE"]), int(cards["OVERLAP"])
        channels = int(cards["OBSNCHAN"])
        values = np.frombuffer(content, np.int8, size, at).astype(float)
        values = values.reshape(channels, -1, 2, 2)  # time, polarisation, re and im
        signal = (values[..., 0] + 1j * values[..., 1])[:, : values.shape[1] - overlap]
        blocks.append(signal.transpose(0, 2, 1).reshape(2 * channels, -1))
        at += size
    return np.concatenate(blocks, axis=1)


def read_digital_rf(folder):
    """[(global sample, [1][samples])] of a channel: stretches without a gap, by the index."""
    stretches = []
    for path in sorted(Path(folder).glob("*/rf@*.h5"), key=lambda path: path.name):
        with h5py.File(path) as file:
            data, index = file["rf_data"][:, 0], file["rf_data_index"][:]
        ends = [*index[1:, 1], len(data)]
        for (sample, row), end in zip(index, ends):
            part = data["r"][row:end] + 1j * data["i"][row:end].astype(float)
            if stretches and stretches[-1][0] + stretches[-1][1].shape[1] == sample:
                first, before = stretches.pop()
                part, sample = np.concatenate([before[0], part]), first
            stretches.append((int(sample), part[np.newaxis]))
    return stretches


def write_digital_rf(folder, rate, dtype, files):
    """A channel: `files` are (second, index rows, [row][subchannel] data); rate is a pair."""
    folder.mkdir(parents=True)
    with h5py.File(folder / "drf_properties.h5", "w") as properties:
        properties.attrs["sample_rate_numerator"] = np.uint64(rate[0])
        properties.attrs["sample_rate_denominator"] = np.uint64(rate[1])
        properties.attrs["is_continuous"] = np.int32(0)
        properties.attrs["digital_rf_version"] = b"2.6.0"
    (folder / "2014-03-09T12-30-30").mkdir()
    for second, index, data in files:
        path = folder / "2014-03-09T12-30-30" / f"rf@{second}.000.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("rf_data", data=data.astype(dtype), chunks=True, compression="gzip")
            file.create_dataset("rf_data_index", data=np.array(index, np.uint64))
    return folder


def blue_header(data_bytes, xdelta, form):
    """HCB of a type 1000 BLUE file, little-endian."""
    header = bytearray(512)
    struct.pack_into("<4s4s4si", header, 0, b"BLUE", b"EEEI", b"EEEI", 0)
    struct.pack_into("<ddi2s", header, 32, 512.0, float(data_bytes), 1000, form)
    struct.pack_into("<ddi", header, 256, 0.0, xdelta, 1)
    return bytes(header)


def settings_for(rate, nperseg=256):
    return Setting(nperseg=nperseg, rate=float(rate))
