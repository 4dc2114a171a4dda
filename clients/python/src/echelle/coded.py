"""SpectrumPacket 2.0: values in half or a quarter of the bytes. docs/packet.md defines every byte."""

from __future__ import annotations

import enum
import math
import struct
import zlib
from array import array
from typing import TYPE_CHECKING, Any, Tuple

from . import packet as _packet
from .errors import PacketBadCrc, PacketTooShort, PacketUnknownCoding
from .packet import HEADER_BYTES, SpectrumPacket, read_header, read_trailer
from .trailer import PacketTrailer

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CODING = struct.Struct(">HHffI")  # coding, bytes of a value, offset, step, CRC
_DATA_AT = HEADER_BYTES + _CODING.size
_LARGEST = 3.4028234663852886e38  # of float32


class PacketCoding(enum.IntEnum):
    """How the values are coded."""

    float16 = 1
    decibel8 = 2


_VALUE_BYTES = {PacketCoding.float16: 2, PacketCoding.decibel8: 1}


class CodedSpectrumPacket(SpectrumPacket):
    """One spectrum of one channel with coded values; :meth:`values` decodes them."""

    __slots__ = ("coding", "offset", "step")

    coding: PacketCoding
    offset: float
    """decibel8: dB; float16: 0."""
    step: float
    """decibel8: dB; float16: what one unit is worth."""

    def __init__(
        self,
        version: int,
        timestamp_us: int,
        channel_id: int,
        fft_size: int,
        data: memoryview,
        trailer: PacketTrailer,
        coding: PacketCoding,
        offset: float,
        step: float,
    ) -> None:
        super().__init__(version, timestamp_us, channel_id, fft_size, data, trailer)
        self.coding = coding
        self.offset = offset
        self.step = step

    def values(self) -> Any:
        """The spectrum, of shape (fft_size,), float32, in :meth:`unit`: a decoded copy."""
        numpy = _packet.numpy
        if self.coding is PacketCoding.float16:
            if numpy is not None:
                return numpy.frombuffer(self.data, "<f2").astype("f4") * numpy.float32(self.step)
            halves = struct.unpack(f"<{self.fft_size}e", self.data)
            return array("f", (half * self.step for half in halves))
        table = _decibel_table(self.offset, self.step)
        if numpy is not None:
            return numpy.array(table, "f4")[numpy.frombuffer(self.data, "u1")]
        return array("f", (table[code] for code in self.data))


def _decibel_table(offset: float, step: float) -> Tuple[float, ...]:
    """The value of each code."""

    def value(code: int) -> float:
        try:
            return min(10.0 ** ((offset + step * code) / 10), _LARGEST)
        except OverflowError:
            return _LARGEST

    return (0.0, *(value(code) for code in range(1, 255)), math.nan)


def decode_coded_packet(buffer: ReadableBuffer) -> CodedSpectrumPacket:
    """Reads exactly one packet of version 2.x from ``buffer``.

    Raises what :func:`decode_packet` raises, and PacketUnknownCoding.
    """
    view = memoryview(buffer).cast("B")
    version, timestamp_us, channel_id, fft_size = read_header(view, 2)
    if len(view) < _DATA_AT:
        raise PacketTooShort(f"packet too short: {len(view)} bytes, its values begin at {_DATA_AT}")
    coding, value_bytes, offset, step, crc32 = _CODING.unpack_from(view, HEADER_BYTES)
    if zlib.crc32(view[HEADER_BYTES : _DATA_AT - 4]) != crc32:
        raise PacketBadCrc("bad CRC: the packet's coding block is damaged")
    if _VALUE_BYTES.get(coding) != value_bytes:
        raise PacketUnknownCoding(f"unknown coding {coding} of {value_bytes} bytes per value")
    end = _DATA_AT + value_bytes * fft_size
    if len(view) < end:
        raise PacketTooShort(
            f"packet too short: {len(view)} bytes, its {fft_size} values end at {end}"
        )
    trailer = read_trailer(view, end)
    data = view[_DATA_AT:end]
    if zlib.crc32(data) != trailer.data_crc32:
        raise PacketBadCrc("bad CRC: the packet's data are damaged")
    return CodedSpectrumPacket(
        version,
        timestamp_us,
        channel_id,
        fft_size,
        data,
        trailer,
        PacketCoding(coding),
        offset,
        step,
    )
