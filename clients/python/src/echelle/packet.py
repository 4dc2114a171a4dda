"""SpectrumPacket: one channel's spectrum. docs/packet.md defines every byte."""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, Tuple, Type, TypeVar, Union, overload

from .errors import (
    PacketBadCrc,
    PacketBadTrailer,
    PacketError,
    PacketTooLong,
    PacketTooShort,
    PacketUnknownMajor,
)
from .trailer import (
    TRAILER_BYTES,
    TRAILER_MAGIC,
    AverageMode,
    Detrend,
    PacketFlag,
    PacketTrailer,
    Rational,
    Scaling,
    WindowKind,
    unpack_trailer,
)

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HEADER_BYTES = 20
_HEADER = struct.Struct(">5I")
_TRAILER_START = struct.Struct(">IH")  # magic, trailer bytes
_CRC = struct.Struct(">I")

_T = TypeVar("_T")


class _TrailerField(Generic[_T]):
    """A trailer's field as an attribute of the packet: None for 1.0, which has no trailer."""

    def __set_name__(self, owner: Type[SpectrumPacket], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, packet: None, owner: Type[SpectrumPacket]) -> _TrailerField[_T]: ...

    @overload
    def __get__(self, packet: SpectrumPacket, owner: Type[SpectrumPacket]) -> Optional[_T]: ...

    def __get__(
        self, packet: Optional[SpectrumPacket], owner: Type[SpectrumPacket]
    ) -> Union[_TrailerField[_T], Optional[_T]]:
        if packet is None:
            return self
        if packet.trailer is None:
            return None
        value: _T = getattr(packet.trailer, self._name)
        return value


class SpectrumPacket:
    """One spectrum of one channel, as :func:`decode_packet` read it.

    ``data`` is a view of the bytes that were decoded, not a copy: it changes if they do. Every
    field of the trailer is also an attribute of the packet, and None for version 1.0.
    """

    __slots__ = ("version", "timestamp_us", "channel_id", "fft_size", "data", "trailer")

    version: int
    """Major version in the high 16 bits, minor in the low: 0x00010001 is 1.1."""
    timestamp_us: int
    """The low 32 bits of the microseconds since the Unix epoch."""
    channel_id: int
    fft_size: int
    """The number of values."""
    data: memoryview
    """4 * fft_size bytes, little-endian float32."""
    trailer: Optional[PacketTrailer]
    """None for 1.0."""

    def __init__(
        self,
        version: int,
        timestamp_us: int,
        channel_id: int,
        fft_size: int,
        data: memoryview,
        trailer: Optional[PacketTrailer] = None,
    ) -> None:
        self.version = version
        self.timestamp_us = timestamp_us
        self.channel_id = channel_id
        self.fft_size = fft_size
        self.data = data
        self.trailer = trailer

    flags = _TrailerField[PacketFlag]()
    sequence = _TrailerField[int]()
    timestamp_ns = _TrailerField[int]()
    first_sample = _TrailerField[int]()
    rate = _TrailerField[Rational]()
    first_bin_hz = _TrailerField[float]()
    bin_spacing_hz = _TrailerField[float]()
    nperseg = _TrailerField[int]()
    noverlap = _TrailerField[int]()
    segments_averaged = _TrailerField[int]()
    segments_expected = _TrailerField[int]()
    window = _TrailerField[WindowKind]()
    scaling = _TrailerField[Scaling]()
    detrend = _TrailerField[Detrend]()
    average = _TrailerField[AverageMode]()
    mean = _TrailerField[float]()
    rms = _TrailerField[float]()
    over_range_count = _TrailerField[int]()
    worker = _TrailerField[int]()
    data_crc32 = _TrailerField[int]()

    def values(self) -> Any:
        """The spectrum, of shape (fft_size,), in :meth:`unit`.

        With numpy: an array of dtype '<f4' that shares the packet's bytes (read-only if they are).
        Without: a copy as ``array.array('f')``.
        """
        if numpy is not None:
            return numpy.frombuffer(self.data, dtype="<f4")
        copied = array("f", bytes(self.data))
        if sys.byteorder == "big":
            copied.byteswap()
        return copied

    def frequencies(self) -> Any:
        """The frequency of each value in Hz, of shape (fft_size,), float64.

        A numpy array, or without numpy an ``array.array('d')``. Raises ValueError for a packet of
        version 1.0, which does not carry its frequencies.
        """
        if self.trailer is None:
            raise ValueError(
                "a packet of version 1.0 does not carry its frequencies: "
                "take them from the sample rate and nperseg it was made with"
            )
        first, spacing = self.trailer.first_bin_hz, self.trailer.bin_spacing_hz
        if numpy is not None:
            return first + spacing * numpy.arange(self.fft_size)
        return array("d", (first + spacing * index for index in range(self.fft_size)))

    def unit(self) -> Optional[str]:
        """What :meth:`values` are in: "counts^2/Hz", "V^2", …; None for version 1.0."""
        if self.trailer is None:
            return None
        squared = "V^2" if self.trailer.flags & PacketFlag.volts else "counts^2"
        return squared if self.trailer.scaling == Scaling.spectrum else squared + "/Hz"

    def __repr__(self) -> str:
        return (
            f"SpectrumPacket(version={self.version >> 16}.{self.version & 0xFFFF}, "
            f"channel_id={self.channel_id}, sequence={self.sequence}, fft_size={self.fft_size})"
        )


def _refuse(error: Type[PacketError], message: str) -> NoReturn:
    raise error(message)


def read_header(view: memoryview, major: int) -> Tuple[int, int, int, int]:
    """(version, timestamp_us, channel_id, fft_size), when the version is ``major``.x."""
    if len(view) < HEADER_BYTES:
        _refuse(PacketTooShort, f"packet too short: {len(view)} bytes, a header has 20")
    version, timestamp_us, channel_id, fft_size, header_crc32 = _HEADER.unpack_from(view)
    if zlib.crc32(view[:16]) != header_crc32:
        _refuse(PacketBadCrc, "bad CRC: the packet's header is damaged")
    if version >> 16 != major:
        found = f"{version >> 16}.{version & 0xFFFF}"
        _refuse(PacketUnknownMajor, f"unknown version {found}: this reader knows {major}.x")
    return version, timestamp_us, channel_id, fft_size


def decode_packet(buffer: ReadableBuffer) -> SpectrumPacket:
    """Reads exactly one packet from ``buffer`` (bytes or any contiguous buffer, at any alignment).

    Checks lengths, version and every CRC in the order that docs/packet.md gives, and raises
    PacketTooShort, PacketTooLong, PacketBadCrc, PacketUnknownMajor or PacketBadTrailer.
    """
    view = memoryview(buffer).cast("B")
    size = len(view)
    version, timestamp_us, channel_id, fft_size = read_header(view, 1)
    end = HEADER_BYTES + 4 * fft_size
    if size < end:
        _refuse(
            PacketTooShort, f"packet too short: {size} bytes, its {fft_size} values end at {end}"
        )
    trailer = None
    data = view[HEADER_BYTES:end]
    if version & 0xFFFF:
        trailer = read_trailer(view, end)
        if zlib.crc32(data) != trailer.data_crc32:
            _refuse(PacketBadCrc, "bad CRC: the packet's data are damaged")
    elif size > end:
        _refuse(PacketTooLong, f"packet too long: {size} bytes, its {fft_size} values end at {end}")
    return SpectrumPacket(version, timestamp_us, channel_id, fft_size, data, trailer)


def read_trailer(view: memoryview, at: int) -> PacketTrailer:
    """Checks that one trailer begins at ``at`` and ends with ``view``, and reads it."""
    size = len(view) - at
    if size < _TRAILER_START.size:
        _refuse(PacketTooShort, f"packet too short: {size} bytes after the data, a trailer has 112")
    magic, length = _TRAILER_START.unpack_from(view, at)
    if magic != TRAILER_MAGIC:
        _refuse(PacketBadTrailer, f"bad trailer: magic {magic:#010x}, not 0x45434831 (ECH1)")
    if length < TRAILER_BYTES:
        _refuse(PacketBadTrailer, f"bad trailer: it says it has {length} bytes, not 112 or more")
    if size < length:
        _refuse(PacketTooShort, f"packet too short: {size} of {length} trailer bytes")
    if size > length:
        _refuse(PacketTooLong, f"packet too long: {size - length} bytes after the trailer")
    (trailer_crc32,) = _CRC.unpack_from(view, at + length - 4)
    if zlib.crc32(view[at : at + length - 4]) != trailer_crc32:
        _refuse(PacketBadCrc, "bad CRC: the packet's trailer is damaged")
    return unpack_trailer(view, at)
