"""Recordings as bytes that must agree whoever made them: the worker's id and the trailer's checksum,
which covers it, are masked. Written from docs/packet.md alone."""

import struct

HEADER_BYTES = 20
WORKER_OFFSET = 100  # in the trailer
CRC_OFFSET = 108


def masked(path):
    """The recording's bytes with worker ids and trailer checksums zeroed."""
    data = bytearray(path.read_bytes())
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        (values,) = struct.unpack_from(">I", data, position + 4 + 12)
        trailer = position + 4 + HEADER_BYTES + 4 * values
        assert data[trailer:trailer + 4] == b"ECH1"
        data[trailer + WORKER_OFFSET:trailer + WORKER_OFFSET + 4] = bytes(4)
        data[trailer + CRC_OFFSET:trailer + CRC_OFFSET + 4] = bytes(4)
        position += 4 + length
    return bytes(data)
