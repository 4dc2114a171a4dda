#!/usr/bin/env python3
"""Writes the golden packets and index.json beside itself, from docs/packet.md alone.

It shares no code with the product's writer or readers, so that neither can be wrong unnoticed.
`make_packets.py --check` writes nothing and fails if the files differ from what it would write.
"""

import json
import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent

V1_0, V1_1, V1_2, V2_0 = 0x00010000, 0x00010001, 0x00010002, 0x00020000
GAP_BEFORE, INCOMPLETE, OVER_RANGE, TWO_SIDED, VOLTS, PARTIAL = 1, 2, 4, 8, 16, 32


def header(version, timestamp_us, channel_id, fft_size):
    first = struct.pack(">IIII", version, timestamp_us, channel_id, fft_size)
    return first + struct.pack(">I", zlib.crc32(first))


def data(bits):
    return struct.pack("<%dI" % len(bits), *bits)


def trailer(fields, data_bytes, later_fields=b"", magic=b"ECH1", length=None):
    if length is None:
        length = 112 + len(later_fields)
    body = magic + struct.pack(">HH", length, fields["flags"])
    body += struct.pack(">QqQ", fields["sequence"], fields["timestamp_ns"], fields["first_sample"])
    body += struct.pack(">QQ", *fields["rate"])
    body += struct.pack(">dd", fields["first_bin_hz"], fields["bin_spacing_hz"])
    body += struct.pack(">II", fields["nperseg"], fields["noverlap"])
    body += struct.pack(">II", fields["segments_averaged"], fields["segments_expected"])
    body += struct.pack(">HBBB", *(fields[k] for k in ("window", "scaling", "detrend", "average")))
    body += bytes(3)
    body += struct.pack(">ff", fields["mean"], fields["rms"])
    body += struct.pack(">II", fields["over_range_count"], fields["worker"])
    body += struct.pack(">I", zlib.crc32(data_bytes))
    body += later_fields
    return body + struct.pack(">I", zlib.crc32(body))


def damaged(packet, at, mask=0x01):
    return packet[:at] + bytes([packet[at] ^ mask]) + packet[at + 1 :]


def bits_of(values):
    return [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]


def low_microseconds(nanoseconds):
    return nanoseconds // 1000 % 2**32


# A real channel: 10 MS/s, nperseg 8, so 5 one-sided values 1.25 MHz apart.
REAL = {
    "flags": OVER_RANGE,
    "sequence": 41,
    "timestamp_ns": 1714566896123456789,
    "first_sample": 1343488,
    "rate": [10000000, 1],
    "first_bin_hz": 0.0,
    "bin_spacing_hz": 1250000.0,
    "nperseg": 8,
    "noverlap": 4,
    "segments_averaged": 8192,
    "segments_expected": 8192,
    "window": 1,
    "scaling": 0,
    "detrend": 1,
    "average": 0,
    "mean": -0.25,
    "rms": 1448.5,
    "over_range_count": 3,
    "worker": 2,
}
REAL_BITS = bits_of([0.5, 1.0, 1048576.0, 0.1, 3.0e-5])

# A complex channel at 200/3 Hz, before the epoch, every field far from its default.
COMPLEX = {
    "flags": GAP_BEFORE | INCOMPLETE | TWO_SIDED | VOLTS | PARTIAL,
    "sequence": 2**63 + 5,
    "timestamp_ns": -1234567890123456789,
    "first_sample": 2**64 - 1,
    "rate": [200, 3],
    "first_bin_hz": -100.0 / 3.0,
    "bin_spacing_hz": 25.0 / 3.0,
    "nperseg": 8,
    "noverlap": 7,
    "segments_averaged": 99,
    "segments_expected": 100,
    "window": 7,
    "scaling": 1,
    "detrend": 0,
    "average": 2,
    "mean": 0.125,
    "rms": 0.75,
    "over_range_count": 0,
    "worker": 0xFFFFFFFF,
}
COMPLEX_BITS = bits_of([0.001, 0.002, 0.003, 0.004, 1.0, 0.005, 0.006, 0.007])

# -0, the smallest denormal, the largest float, infinity, a quiet NaN with a payload.
SPECIAL_BITS = [0x00000000, 0x80000000, 0x00000001, 0x7F7FFFFF, 0x7F800000, 0x7FC12345]


def build():
    packets = []

    def valid(name, about, packet, version, timestamp_us, channel_id, bits, fields=None):
        entry = {"file": name + ".bin", "about": about, "bytes": len(packet), "error": "none"}
        entry["header"] = {
            "version": version,
            "timestamp_us": timestamp_us,
            "channel_id": channel_id,
            "fft_size": len(bits),
        }
        entry["values_bits"] = ["%08x" % b for b in bits]
        if fields is not None:
            entry["trailer"] = dict(fields, data_crc32=zlib.crc32(data(bits)))
        packets.append((entry, packet))

    def broken(name, about, packet, error):
        entry = {"file": name + ".bin", "about": about, "bytes": len(packet), "error": error}
        packets.append((entry, packet))

    def v1_0(name, about, timestamp_us, channel_id, bits):
        packet = header(V1_0, timestamp_us, channel_id, len(bits)) + data(bits)
        valid(name, about, packet, V1_0, timestamp_us, channel_id, bits)
        return packet

    def v1_x(name, about, channel_id, bits, fields, version=V1_1, later_fields=b""):
        timestamp_us = low_microseconds(fields["timestamp_ns"])
        packet = header(version, timestamp_us, channel_id, len(bits)) + data(bits)
        packet += trailer(fields, data(bits), later_fields)
        valid(name, about, packet, version, timestamp_us, channel_id, bits, fields)
        return packet

    no_values = {"first_bin_hz": 0.0, "bin_spacing_hz": 0.0, "nperseg": 0, "noverlap": 0}

    old = v1_0("v1_0_real", "five values", 0x12345678, 3, REAL_BITS)
    v1_0("v1_0_complex", "eight values, two-sided", 0xFFFFFFFF, 0xFFFFFFFF, COMPLEX_BITS)
    v1_0("v1_0_no_values", "fft_size 0", 0, 0, [])
    v1_0("v1_0_special", "-0, denormal, largest, infinity, NaN", 1, 2, SPECIAL_BITS)
    new = v1_x("v1_1_real", "five one-sided values", 3, REAL_BITS, REAL)
    v1_x("v1_1_complex", "eight two-sided values, every field unusual", 127, COMPLEX_BITS, COMPLEX)
    v1_x("v1_1_no_values", "fft_size 0", 4, [], dict(REAL, **no_values))
    v1_x("v1_1_zeros", "a silent channel", 5, [0] * 5,
         dict(REAL, flags=0, mean=0.0, rms=0.0, over_range_count=0))
    v1_x("v1_1_special", "-0, denormal, largest, infinity, NaN", 6, SPECIAL_BITS, REAL)
    v1_x("v1_1_unknown_numbers", "flags and numbers that 1.1 does not define: kept", 7, REAL_BITS,
         dict(REAL, flags=0xFFC4, window=999, scaling=200, detrend=201, average=202))
    v1_x("v1_2_same_trailer", "a later minor version, same trailer", 8, REAL_BITS, REAL, V1_2)
    longer = v1_x("v1_2_longer_trailer", "a later minor version with 12 more bytes", 9, REAL_BITS,
                  REAL, V1_2, b"later fields")
    v1_x("v1_65535_odd_trailer", "the last minor version, 5 more bytes", 10, COMPLEX_BITS, COMPLEX,
         0x0001FFFF, b"later")

    huge_1_0 = header(V1_0, 1, 2, 0xFFFFFFFF)
    huge_1_1 = header(V1_1, 1, 2, 0x40000000)
    start = 20 + 4 * 5  # of the trailer in `new`
    before = new[:start]

    broken("too_short_empty", "no bytes", b"", "too_short")
    broken("too_short_header", "19 of 20 bytes", old[:19], "too_short")
    broken("too_short_data", "a byte of data is missing", old[:-1], "too_short")
    broken("too_short_no_data", "1.1, nothing after the header", new[:20], "too_short")
    broken("too_short_huge", "fft_size 4294967295 in 40 bytes", huge_1_0 + bytes(20), "too_short")
    broken("too_short_wrapping", "4 * fft_size is 0 in 32 bits", huge_1_1 + new[start:],
           "too_short")
    broken("too_short_no_trailer", "1.1 without a trailer", before, "too_short")
    broken("too_short_trailer_start", "5 bytes of trailer", new[: start + 5], "too_short")
    broken("too_short_trailer", "a byte of trailer is missing", new[:-1], "too_short")
    broken("too_short_longer_trailer", "1.2 without its last 12 bytes", longer[:-12], "too_short")
    broken("too_long_1_0", "a byte after the data", old + b"\0", "too_long")
    broken("too_long_1_0_trailer", "1.0 with a trailer", old + new[start:], "too_long")
    broken("too_long_1_1", "a byte after the trailer", new + b"\0", "too_long")
    broken("too_long_1_2", "a byte after a longer trailer", longer + b"\0", "too_long")
    broken("bad_crc_header", "channel_id changed", damaged(old, 11), "bad_crc")
    broken("bad_crc_header_crc", "the header's CRC changed", damaged(old, 19), "bad_crc")
    broken("bad_crc_version", "major version changed, so the CRC tells", damaged(old, 1), "bad_crc")
    broken("bad_crc_data", "a bit of the last value changed", damaged(new, start - 1), "bad_crc")
    broken("bad_crc_trailer", "sequence changed", damaged(new, start + 15), "bad_crc")
    broken("bad_crc_trailer_zero", "a zero byte changed", damaged(new, start + 86), "bad_crc")
    broken("bad_crc_trailer_crc", "the trailer's CRC changed", damaged(new, len(new) - 1),
           "bad_crc")
    broken("bad_crc_later_field", "a field that 1.1 does not know changed",
           damaged(longer, len(longer) - 6), "bad_crc")
    broken("bad_crc_little_endian", "a header in the wrong byte order",
           struct.pack("<5I", V1_0, 1, 2, 0, zlib.crc32(struct.pack("<4I", V1_0, 1, 2, 0))),
           "bad_crc")
    broken("unknown_major_0", "version 0.1", header(0x00000001, 1, 2, 5) + data(REAL_BITS),
           "unknown_major")
    broken("unknown_major_2", "version 2.0, 8-bit data", header(V2_0, 1, 2, 5) + bytes(5),
           "unknown_major")
    broken("bad_trailer_magic", "ECH2, with good CRCs",
           before + trailer(REAL, data(REAL_BITS), magic=b"ECH2"), "bad_trailer")
    broken("bad_trailer_bytes_111", "trailer bytes says 111",
           before + trailer(REAL, data(REAL_BITS), length=111), "bad_trailer")
    broken("bad_trailer_bytes_0", "trailer bytes says 0",
           before + trailer(REAL, data(REAL_BITS), length=0), "bad_trailer")

    files = {entry["file"]: packet for entry, packet in packets}
    index = {"format": "docs/packet.md", "packets": [entry for entry, _ in packets]}
    files["index.json"] = (json.dumps(index, indent=1) + "\n").encode("ascii")
    return files


def main():
    files = build()
    present = {path.name for path in HERE.iterdir()} - {pathlib.Path(__file__).name}
    stale = sorted(name for name in present if name.endswith(".bin") and name not in files)
    if "--check" in sys.argv[1:]:
        differing = [n for n in files if n not in present or (HERE / n).read_bytes() != files[n]]
        if differing or stale:
            sys.exit("golden packets differ from make_packets.py: " + " ".join(differing + stale))
        return
    for name in stale:
        (HERE / name).unlink()
    for name, content in files.items():
        (HERE / name).write_bytes(content)
    print("%d packets" % (len(files) - 1))


if __name__ == "__main__":
    main()
