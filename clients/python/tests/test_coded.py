"""decode_coded_packet against the golden packets of version 2.x."""

import math
import struct

import golden
import pytest

import echelle
import echelle.packet
from echelle import PacketError, PacketTooShort, PacketUnknownMajor, decode_coded_packet

ERRORS = {
    "too_short": echelle.PacketTooShort,
    "too_long": echelle.PacketTooLong,
    "bad_crc": echelle.PacketBadCrc,
    "unknown_major": echelle.PacketUnknownMajor,
    "bad_trailer": echelle.PacketBadTrailer,
    "unknown_coding": echelle.PacketUnknownCoding,
}
VALID = [entry for entry in golden.INDEX_2 if entry["error"] == "none"]
BROKEN = [entry for entry in golden.INDEX_2 if entry["error"] != "none"]


def float_of(bits):
    return math.nan if bits == "nan" else struct.unpack("<f", bytes.fromhex(bits)[::-1])[0]


@pytest.mark.parametrize("numpy", [True, False])
@pytest.mark.parametrize("expected", VALID, ids=golden.name_of)
def test_golden_packets(expected, numpy, monkeypatch):
    if not numpy:
        monkeypatch.setattr(echelle.packet, "numpy", None)
    packet = decode_coded_packet(golden.read_2(expected))
    for name, value in {**expected["header"], **expected["coding"]}.items():
        assert getattr(packet, name) == value, name
    for name, value in expected["trailer"].items():
        assert getattr(packet.trailer, name) == (tuple(value) if name == "rate" else value), name
    wanted = [float_of(bits) for bits in expected["values_bits"]]
    assert list(packet.values()) == pytest.approx(wanted, rel=2**-23, abs=0, nan_ok=True)
    assert len(packet.frequencies()) == len(wanted)


@pytest.mark.parametrize("expected", BROKEN, ids=golden.name_of)
def test_golden_errors(expected):
    with pytest.raises(PacketError) as caught:
        decode_coded_packet(golden.read_2(expected))
    assert type(caught.value) is ERRORS[expected["error"]]


def test_golden_packets_hold_every_error():
    assert {entry["error"] for entry in BROKEN} == set(ERRORS)


def test_truncated_at_every_length():
    whole = golden.read_2(VALID[0])
    for length in range(len(whole)):
        with pytest.raises(PacketTooShort):
            decode_coded_packet(whole[:length])


def test_each_reader_refuses_the_other_major():
    with pytest.raises(PacketUnknownMajor):
        echelle.decode_packet(golden.read_2(VALID[0]))
    with pytest.raises(PacketUnknownMajor):
        decode_coded_packet(golden.read("v1_1_real"))


def test_a_feed_of_nobody_times_out():
    pytest.importorskip("zmq")
    with pytest.raises(echelle.FeedTimeout, match="is a coordinator running"):
        echelle.latest("ipc:///tmp/echelle-nobody-listens-here", timeout=0.05)
