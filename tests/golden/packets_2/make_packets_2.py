#!/usr/bin/env python3
"""Writes the golden packets of version 2.0 and index.json beside itself, from docs/packet.md alone.

Values are coded with numpy's float16 and Python's math, sharing no code with the product's writer or
readers. `make_packets_2.py --check` writes nothing and fails if the files differ from what it would
write.
"""

import json
import math
import pathlib
import struct
import sys
import zlib

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "packets"))

from make_packets import COMPLEX, REAL, damaged, header, low_microseconds, trailer  # noqa: E402

V2_0, V2_1 = 0x00020000, 0x00020001
FLOAT16, DECIBEL8 = 1, 2

# Values that no coding has to round at a tie, over more than the range of either.
REAL_VALUES = [0.5, 1.0, 1048576.0, 0.1, 3.0e-5, 1.0e-7, 0.0]
COMPLEX_VALUES = [0.001, 0.002, 0.003, 0.004, 1.0, 0.005, 0.006, 0.007]
SPECIAL_VALUES = [0.0, -0.0, 7.0, math.inf, math.nan, 1.5e-45]
LOUD_VALUES = [3.0e38, 1.0e30, 1.0e26]
FAINT_VALUES = [1.0e-38, 3.0e-40, 1.0e-44]


def coding_block(coding, value_bytes, offset, step):
    first = struct.pack(">HHff", coding, value_bytes, offset, step)
    return first + struct.pack(">I", zlib.crc32(first))


def code_float16(values):
    """(offset, step, data, decoded float32 values)"""
    finite = [abs(v) for v in values if math.isfinite(v)]
    largest = max(finite, default=0.0)
    step = 1.0 if largest == 0 else 2.0 ** max(math.frexp(largest)[1] - 1 - 14, -126)
    halves = (numpy.array(values, "f8") / step).astype("<f2")
    assert numpy.isfinite(halves[numpy.isfinite(values)]).all()
    return 0.0, step, halves.tobytes(), (halves.astype("f8") * step).astype("f4")


def code_decibel8(values):
    finite = [v for v in values if math.isfinite(v) and v > 0]
    largest = 10 * math.log10(max(finite)) if finite else 0.0
    offset = math.ceil(largest * 2) / 2 - 127
    codes = []
    for value in values:
        if not math.isfinite(value):
            codes.append(255)
            continue
        steps = (10 * math.log10(value) - offset) * 2 if value > 0 else 0.0
        assert abs(steps % 1 - 0.5) > 1e-3, "a tie"
        codes.append(round(steps) if steps >= 0.5 else 0)
    assert all(code == 255 or code <= 254 for code in codes)
    largest_float = float(numpy.finfo("f4").max)
    decoded = [
        0.0 if c == 0 else math.nan if c == 255 else min(10 ** ((offset + 0.5 * c) / 10), largest_float)
        for c in codes
    ]
    return offset, 0.5, bytes(codes), numpy.array(decoded, "f4")


CODERS = {FLOAT16: (2, code_float16), DECIBEL8: (1, code_decibel8)}


def build():
    packets = []

    def valid(name, about, coding, channel_id, values, fields, version=V2_0, later_fields=b""):
        values = [float(v) for v in numpy.array(values, "f4")]
        value_bytes, coder = CODERS[coding]
        offset, step, data, decoded = coder(values)
        timestamp_us = low_microseconds(fields["timestamp_ns"])
        packet = header(version, timestamp_us, channel_id, len(values))
        packet += coding_block(coding, value_bytes, offset, step) + data
        packet += trailer(fields, data, later_fields)
        entry = {"file": name + ".bin", "about": about, "bytes": len(packet), "error": "none"}
        entry["header"] = {
            "version": version,
            "timestamp_us": timestamp_us,
            "channel_id": channel_id,
            "fft_size": len(values),
        }
        entry["coding"] = {"coding": coding, "offset": offset, "step": step}
        # What the values were, and what a reader makes of them, as the bits of a float32.
        entry["source_bits"] = bits(numpy.array(values, "f4"))
        entry["values_bits"] = bits(decoded)
        entry["trailer"] = dict(fields, data_crc32=zlib.crc32(data))
        packets.append((entry, packet))
        return packet

    def broken(name, about, packet, error):
        entry = {"file": name + ".bin", "about": about, "bytes": len(packet), "error": error}
        packets.append((entry, packet))

    half = valid("float16_real", "one-sided values over 130 dB", FLOAT16, 3, REAL_VALUES, REAL)
    valid("float16_complex", "eight two-sided values", FLOAT16, 127, COMPLEX_VALUES, COMPLEX)
    valid("float16_special", "0, -0, infinity, NaN, denormal", FLOAT16, 6, SPECIAL_VALUES, REAL)
    valid("float16_zeros", "a silent channel", FLOAT16, 5, [0.0] * 5, REAL)
    valid("float16_no_values", "fft_size 0", FLOAT16, 4, [], REAL)
    valid("float16_loud", "near the largest float", FLOAT16, 8, LOUD_VALUES, REAL)
    valid("float16_faint", "near the smallest float", FLOAT16, 9, FAINT_VALUES, REAL)
    valid("float16_2_1", "a later minor version, 12 more bytes of trailer", FLOAT16, 10, REAL_VALUES,
          REAL, V2_1, b"later fields")
    decibels = valid("decibel8_real", "one-sided values over 130 dB", DECIBEL8, 3, REAL_VALUES, REAL)
    valid("decibel8_complex", "eight two-sided values", DECIBEL8, 127, COMPLEX_VALUES, COMPLEX)
    valid("decibel8_special", "0, -0, infinity, NaN, denormal", DECIBEL8, 6, SPECIAL_VALUES, REAL)
    valid("decibel8_zeros", "a silent channel", DECIBEL8, 5, [0.0] * 5, REAL)
    valid("decibel8_no_values", "fft_size 0", DECIBEL8, 4, [], REAL)
    valid("decibel8_loud", "near the largest float", DECIBEL8, 8, LOUD_VALUES, REAL)
    valid("decibel8_faint", "near the smallest float", DECIBEL8, 9, FAINT_VALUES, REAL)

    start = 36 + 2 * len(REAL_VALUES)  # of the trailer in `half`
    broken("too_short_coding", "35 of 36 bytes", half[:35], "too_short")
    broken("too_short_data", "a byte of data is missing", half[: start - 1], "too_short")
    broken("too_short_no_trailer", "no trailer", half[:start], "too_short")
    broken("too_short_trailer", "a byte of trailer is missing", half[:-1], "too_short")
    broken("too_short_huge", "fft_size 4294967295",
           header(V2_0, 1, 2, 0xFFFFFFFF) + half[20:], "too_short")
    broken("too_long", "a byte after the trailer", half + b"\0", "too_long")
    broken("bad_crc_header", "channel_id changed", damaged(half, 11), "bad_crc")
    broken("bad_crc_coding", "step changed", damaged(half, 30), "bad_crc")
    broken("bad_crc_data", "a value changed", damaged(half, start - 1), "bad_crc")
    broken("bad_crc_code", "a code changed", damaged(decibels, 36), "bad_crc")
    broken("bad_crc_trailer", "sequence changed", damaged(half, start + 15), "bad_crc")
    broken("bad_trailer_magic", "ECH2, with good CRCs",
           half[:start] + trailer(REAL, half[36:start], magic=b"ECH2"), "bad_trailer")
    broken("unknown_coding_3", "coding 3",
           half[:20] + coding_block(3, 2, 0.0, 1.0) + half[36:], "unknown_coding")
    broken("unknown_coding_bytes", "float16 of 4 bytes",
           half[:20] + coding_block(FLOAT16, 4, 0.0, 1.0) + half[36:], "unknown_coding")
    broken("unknown_major_1", "version 1.1", header(0x00010001, 1, 2, 7) + half[20:],
           "unknown_major")
    broken("unknown_major_3", "version 3.0", header(0x00030000, 1, 2, 7) + half[20:],
           "unknown_major")

    files = {entry["file"]: packet for entry, packet in packets}
    index = {"format": "docs/packet.md", "packets": [entry for entry, _ in packets]}
    files["index.json"] = (json.dumps(index, indent=1) + "\n").encode("ascii")
    return files


def bits(values):
    # Every NaN reads as NaN: their bits are of no matter.
    return ["nan" if math.isnan(v) else "%08x" % int(v.view("u4")) for v in values]


def main():
    files = build()
    present = {path.name for path in HERE.iterdir()} - {pathlib.Path(__file__).name}
    stale = sorted(name for name in present if name.endswith(".bin") and name not in files)
    if "--check" in sys.argv[1:]:
        differing = [n for n in files if n not in present or (HERE / n).read_bytes() != files[n]]
        if differing or stale:
            sys.exit("golden packets differ from make_packets_2.py: " + " ".join(differing + stale))
        return
    for name in stale:
        (HERE / name).unlink()
    for name, content in files.items():
        (HERE / name).write_bytes(content)
    print("%d packets" % (len(files) - 1))


if __name__ == "__main__":
    main()
