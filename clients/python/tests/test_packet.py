"""decode_packet against the golden packets, and against packets packed by hand here."""

import mmap
import pickle
import struct
import subprocess
import sys
import zlib
from array import array

import golden
import pytest

import echelle
import echelle.packet
from echelle import (
    AverageMode,
    Detrend,
    PacketBadCrc,
    PacketBadTrailer,
    PacketError,
    PacketFlag,
    PacketTooLong,
    PacketTooShort,
    PacketUnknownMajor,
    Scaling,
    WindowKind,
    decode_packet,
)

ERRORS = {
    "too_short": PacketTooShort,
    "too_long": PacketTooLong,
    "bad_crc": PacketBadCrc,
    "unknown_major": PacketUnknownMajor,
    "bad_trailer": PacketBadTrailer,
}


@pytest.fixture(params=["numpy", "standard library"])
def with_and_without_numpy(request, monkeypatch):
    if request.param == "numpy":
        return pytest.importorskip("numpy")
    monkeypatch.setattr(echelle.packet, "numpy", None)
    return None


@pytest.mark.parametrize("expected", golden.VALID, ids=golden.name_of)
def test_golden_fields(expected):
    packet = decode_packet(golden.read(expected))
    for name, value in expected["header"].items():
        assert getattr(packet, name) == value, name
    if "trailer" not in expected:
        assert packet.trailer is None
        return
    assert set(expected["trailer"]) == set(packet.trailer._fields)
    for name, value in expected["trailer"].items():
        if name == "rate":
            value = tuple(value)
        assert getattr(packet.trailer, name) == value, name
        assert getattr(packet, name) == value, name


@pytest.mark.parametrize("expected", golden.VALID, ids=golden.name_of)
def test_golden_values(expected, with_and_without_numpy):
    values = decode_packet(golden.read(expected)).values()
    assert len(values) == expected["header"]["fft_size"]
    bits = ["%08x" % word for word in struct.unpack(f"={len(values)}I", values.tobytes())]
    assert bits == expected["values_bits"]


@pytest.mark.parametrize("expected", golden.BROKEN, ids=golden.name_of)
def test_golden_errors(expected):
    with pytest.raises(PacketError) as caught:
        decode_packet(golden.read(expected))
    assert type(caught.value) is ERRORS[expected["error"]]
    message = str(caught.value)
    assert message and "\n" not in message


def test_golden_packets_hold_every_error():
    assert {entry["error"] for entry in golden.BROKEN} == set(ERRORS)


def minimal_1_0_reader(packet):
    """All that a 1.0 reader knows, sharing nothing with the package."""
    version, timestamp_us, channel_id, fft_size, crc32 = struct.unpack(">5I", packet[:20])
    assert crc32 == zlib.crc32(packet[:16])
    assert version >> 16 == 1
    values = struct.unpack(f"<{fft_size}f", packet[20 : 20 + 4 * fft_size])
    return timestamp_us, channel_id, values


@pytest.mark.parametrize("expected", golden.VALID, ids=golden.name_of)
def test_a_1_0_reader_reads_every_1_x_packet(expected):
    timestamp_us, channel_id, values = minimal_1_0_reader(golden.read(expected))
    assert timestamp_us == expected["header"]["timestamp_us"]
    assert channel_id == expected["header"]["channel_id"]
    bits = ["%08x" % struct.unpack("<I", struct.pack("<f", value)) for value in values]
    assert bits == expected["values_bits"]


def test_header_of_1_0():
    packet = decode_packet(golden.read("v1_0_real"))
    assert packet.version == 0x00010000
    assert packet.timestamp_us == 0x12345678
    assert packet.channel_id == 3
    assert packet.fft_size == 5
    assert packet.sequence is packet.flags is packet.rate is packet.mean is None
    assert packet.unit() is None


def test_trailer_of_1_1():
    packet = decode_packet(golden.read("v1_1_complex"))
    assert packet.flags == (
        PacketFlag.gap_before
        | PacketFlag.incomplete
        | PacketFlag.two_sided
        | PacketFlag.volts
        | PacketFlag.partial
    )
    assert PacketFlag.over_range not in packet.flags
    assert packet.window is WindowKind.tukey
    assert packet.scaling is Scaling.spectrum
    assert packet.detrend is Detrend.none
    assert packet.average is AverageMode.max
    assert packet.rate.value() == 200 / 3
    assert packet.worker == echelle.WORKER_UNKNOWN
    assert packet.unit() == "V^2"
    assert decode_packet(golden.read("v1_1_real")).unit() == "counts^2/Hz"


def test_unknown_flags_and_numbers_are_kept():
    packet = decode_packet(golden.read("v1_1_unknown_numbers"))
    assert int(packet.flags) == 0xFFC4
    assert PacketFlag.over_range in packet.flags
    assert packet.window == 999 and packet.window.name == "unknown_999"
    assert packet.average == 202
    assert pickle.loads(pickle.dumps(packet.window)) == 999


def test_frequencies(with_and_without_numpy):
    one_sided = decode_packet(golden.read("v1_1_real")).frequencies()
    assert one_sided.tolist() == [0.0, 1.25e6, 2.5e6, 3.75e6, 5.0e6]
    # numpy.fft.fftshift(numpy.fft.fftfreq(8, 3 / 200))
    two_sided = decode_packet(golden.read("v1_1_complex")).frequencies().tolist()
    assert two_sided == pytest.approx(
        [-33.333333333333336, -25.0, -16.666666666666668, -8.333333333333334, 0.0]
        + [8.333333333333334, 16.666666666666668, 25.0]
    )
    assert two_sided[4] == 0.0
    with pytest.raises(ValueError, match="1.0"):
        decode_packet(golden.read("v1_0_real")).frequencies()


def test_values_share_the_packets_bytes():
    numpy = pytest.importorskip("numpy")
    buffer = bytearray(golden.read("v1_0_real"))
    values = decode_packet(buffer).values()
    assert values.dtype == numpy.dtype("<f4") and values.shape == (5,)
    buffer[20:24] = struct.pack("<f", 42.0)
    assert values[0] == 42.0
    assert not decode_packet(bytes(buffer)).values().flags.writeable


def test_values_without_numpy_are_an_array(monkeypatch):
    monkeypatch.setattr(echelle.packet, "numpy", None)
    values = decode_packet(golden.read("v1_0_real")).values()
    assert isinstance(values, array) and values.typecode == "f"
    assert values[:3].tolist() == [0.5, 1.0, 1048576.0]


def test_the_package_works_where_numpy_is_not_installed():
    program = (
        "import sys; sys.modules['numpy'] = None; import echelle;"
        f"print(list(echelle.decode_packet(bytes.fromhex('{golden.read('v1_1_real').hex()}'))"
        ".values())[1])"
    )
    path = echelle.__path__[0] + "/.."
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "1.0\n"


@pytest.mark.parametrize("name", ["v1_0_real", "v1_1_real", "v1_2_longer_trailer"])
def test_truncated_at_every_length(name):
    whole = golden.read(name)
    for length in range(len(whole)):
        with pytest.raises(PacketTooShort):
            decode_packet(whole[:length])


@pytest.mark.parametrize("name", ["v1_0_real", "v1_1_real", "v1_2_longer_trailer"])
def test_followed_by_anything(name):
    for more in (1, 4, 112, 5000):
        with pytest.raises(PacketTooLong):
            decode_packet(golden.read(name) + b"E" * more)


def test_any_flipped_bit_of_1_1_is_found():
    whole = golden.read("v1_1_real")
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PacketError):
            decode_packet(flipped)


def test_any_flipped_bit_of_1_0_is_found_in_the_header_and_harmless_in_the_data():
    whole = golden.read("v1_0_real")
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        if bit // 8 < 20:
            with pytest.raises(PacketBadCrc):
                decode_packet(flipped)
        else:
            assert decode_packet(flipped).fft_size == 5


@pytest.mark.parametrize("shift", range(8))
def test_any_alignment(shift):
    buffer = memoryview(bytes(shift) + golden.read("v1_1_real"))[shift:]
    packet = decode_packet(buffer)
    assert packet.values().tolist()[:3] == [0.5, 1.0, 1048576.0]
    assert packet.sequence == 41


def test_any_contiguous_buffer():
    whole = golden.read("v1_1_real")
    with mmap.mmap(-1, len(whole)) as mapped:
        mapped[:] = whole
        for buffer in (bytearray(whole), array("I", whole)):
            assert decode_packet(buffer).sequence == 41
        packet = decode_packet(mapped)
        assert packet.sequence == 41
        packet.data.release()
    with pytest.raises(TypeError):
        decode_packet(memoryview(whole)[::2])
    with pytest.raises(TypeError):
        decode_packet("text")


def test_rate_of_denominator_0_is_not_a_number():
    assert str(echelle.Rational(1, 0).value()) == "nan"


def test_repr_names_version_channel_and_sequence():
    text = repr(decode_packet(golden.read("v1_2_longer_trailer")))
    assert text == "SpectrumPacket(version=1.2, channel_id=9, sequence=41, fft_size=5)"
