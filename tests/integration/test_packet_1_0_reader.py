"""A reader that knows version 1.0 alone reads the 1.1 packets of a recording."""

import struct
import zlib

import numpy as np
import scipy.signal
from packet_bytes import records

CHANNELS, RATE = 3, 48000


def read_1_0(packet):
    """timestamp, channel and values: five big-endian u32, then little-endian float32."""
    version, timestamp_us, channel, count, crc = struct.unpack(">5I", packet[:20])
    assert crc == zlib.crc32(packet[:16])
    assert version >> 16 == 1
    return timestamp_us, channel, np.frombuffer(packet, "<f4", count, offset=20)


def test_a_1_0_reader_reads_1_1(place):
    rng = np.random.default_rng(11)
    tone = 9000 * np.cos(0.7 * np.arange(40 * 2048))[:, np.newaxis]
    samples = np.rint(tone + rng.normal(0, 100, (40 * 2048, CHANNELS))).astype("<i2")
    raw, recording = place.output / "samples.raw", place.output / "spectra"
    samples.tofile(raw)
    source = f"raw:{raw}?channels={CHANNELS}&rate={RATE}"
    place.run("--source", source, "--workers", 2, "--average", 20, "--record", recording)

    packets = list(records(recording.read_bytes()))
    assert len(packets) == 2 * CHANNELS
    # The second integration: its segments are those of the second half and the one across.
    second = samples[20 * 2048 - 512 :].astype(float)
    for number, packet in enumerate(packets):
        timestamp_us, channel, values = read_1_0(packet)
        assert channel == number % CHANNELS
        begin = 0 if number < CHANNELS else 20 * 2048
        assert timestamp_us == begin * 10**6 // RATE
        part = samples[:begin or 20 * 2048, channel].astype(float)
        part = part if number < CHANNELS else second[:, channel]
        _, expected = scipy.signal.welch(part, RATE, nperseg=1024)
        assert np.allclose(values, expected, rtol=1e-4, atol=1e-13 * expected.max())
        # It is a 1.1 packet: what a 1.0 reader leaves unread is really there.
        assert packet[:4] == b"\x00\x01\x00\x01"
        assert len(packet) == 20 + 4 * len(values) + 112
