#!/usr/bin/env python3
"""What Python needs to read a packet of 513 values, checks included, beside struct.unpack of the
same bytes without any check."""

import json
import struct
import sys
import timeit
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients/python/src"))
import echelle  # noqa: E402

VALUES = 513
TRAILER = ">IHHQqQQQddIIIIHBBB3xffIII"  # docs/packet.md, up to its own CRC


def packet_bytes(with_trailer):
    data = struct.pack(f"<{VALUES}f", *(1.5 * index for index in range(VALUES)))
    header = struct.pack(">IIII", 0x00010001 if with_trailer else 0x00010000, 7, 5, VALUES)
    packet = header + struct.pack(">I", zlib.crc32(header)) + data
    if with_trailer:
        trailer = struct.pack(
            TRAILER, 0x45434831, 112, 0, 9, 10**18, 11, 10**7, 1, 0.0, 9765.625, 1024, 512, 64, 64,
            1, 0, 1, 0, 0.5, 100.0, 0, 1, zlib.crc32(data),
        )
        packet += trailer + struct.pack(">I", zlib.crc32(trailer))
    return packet


def us_per_call(call, repeats):
    number, _ = timeit.Timer(call).autorange()
    number = max(1, number // 4)
    return min(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def measure(repeats=9):
    unpack_1_0 = struct.Struct(">5I").unpack_from, struct.Struct(f"<{VALUES}f").unpack_from
    unpack_trailer = struct.Struct(TRAILER + "I").unpack_from
    figures = {}
    for version in ("1.0", "1.1"):
        packet = packet_bytes(version == "1.1")
        end = 20 + 4 * VALUES

        def unpack(packet=packet, version=version, end=end):
            unpack_1_0[0](packet)
            unpack_1_0[1](packet, 20)
            if version == "1.1":
                unpack_trailer(packet, end)

        assert echelle.decode_packet(packet).fft_size == VALUES
        parse_us = us_per_call(lambda packet=packet: echelle.decode_packet(packet), repeats)
        values_us = us_per_call(
            lambda packet=packet: echelle.decode_packet(packet).values(), repeats)
        unpack_us = us_per_call(unpack, repeats)
        figures[version] = {
            "parse_us": parse_us, "parse_and_values_us": values_us, "struct_unpack_us": unpack_us,
            "parse_over_struct_unpack": parse_us / unpack_us,
        }
    return figures


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
