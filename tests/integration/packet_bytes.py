"""Recordings as bytes, taken apart with struct alone: neither our reader nor our documents' code."""

import struct

TRAILER_BYTES = 112
WORKER_AT, TRAILER_CRC_AT = 100, 108  # in the trailer; both are 4 bytes


def records(content):
    """The packets of a recording. Fails where one is cut off."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        assert at + 4 + length <= len(content), "the recording ends inside a packet"
        yield content[at + 4 : at + 4 + length]
        at += 4 + length


def without_worker(path):
    """A recording's bytes with the field that names the worker, and the CRC over it, zeroed."""
    masked = bytearray()
    for packet in records(path.read_bytes()):
        trailer = len(packet) - TRAILER_BYTES
        assert packet[trailer : trailer + 4] == b"ECH1"
        packet = bytearray(packet)
        packet[trailer + WORKER_AT : trailer + WORKER_AT + 4] = bytes(4)
        packet[trailer + TRAILER_CRC_AT : trailer + TRAILER_CRC_AT + 4] = bytes(4)
        masked += packet
    return bytes(masked)


def workers_named(path):
    return {
        struct.unpack_from(">I", packet, len(packet) - TRAILER_BYTES + WORKER_AT)[0]
        for packet in records(path.read_bytes())
    }
