"""The trailer of SpectrumPackets 1.1 and later: where, when and how a spectrum was made."""

from __future__ import annotations

import enum
import struct
from typing import Any, Callable, Dict, NamedTuple, TypeVar

WORKER_UNKNOWN = 0xFFFFFFFF
"""``PacketTrailer.worker`` when several workers computed the spectrum, or nobody knows."""

TRAILER_BYTES = 112
TRAILER_MAGIC = 0x45434831  # "ECH1"
_FIELDS = struct.Struct(">6xHQqQQQddIIIIHBBB3xffIII")  # up to the trailer's own CRC


class PacketFlag(enum.IntFlag):
    """What is special about a spectrum. Bits of later versions are kept."""

    gap_before = 1
    """Samples are missing inside this spectrum, or between it and the last one."""
    incomplete = 2
    """Fewer segments averaged than expected."""
    over_range = 4
    """``over_range_count`` is not 0."""
    two_sided = 8
    """A complex channel: DC in the middle, at index nperseg // 2."""
    volts = 16
    """V²/Hz or V², else counts²/Hz or counts²."""
    partial = 32
    """A part of an integration, or one that the stream's end cut short."""


class _OpenEnum(enum.IntEnum):
    """Keeps a number that a later version may define, under the name ``unknown_NUMBER``."""

    @classmethod
    def _missing_(cls, value: object) -> Any:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"unknown_{value}"
        member._value_ = value
        return member

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._value_,)  # by number: an unknown one's name leads nowhere


class WindowKind(_OpenEnum):
    """The window, named as in ``scipy.signal.get_window``."""

    boxcar = 0
    hann = 1
    hamming = 2
    blackman = 3
    blackmanharris = 4
    flattop = 5
    kaiser = 6
    tukey = 7


class Scaling(_OpenEnum):
    """``density``: per Hz; ``spectrum``: per bin. As in ``scipy.signal.welch``."""

    density = 0
    spectrum = 1


class Detrend(_OpenEnum):
    """What was taken away from each segment."""

    none = 0
    constant = 1


class AverageMode(_OpenEnum):
    """How the segments were averaged."""

    mean = 0
    median = 1
    max = 2


class Rational(NamedTuple):
    """An exact ratio, such as a sample rate of 200/3 Hz."""

    numerator: int
    denominator: int

    def value(self) -> float:
        """The ratio as a float; NaN when the denominator is 0."""
        return self.numerator / self.denominator if self.denominator else float("nan")


class PacketTrailer(NamedTuple):
    """The fields of the trailer, in their order; those of later minor versions are skipped."""

    flags: PacketFlag
    sequence: int
    """Counts the spectra of this channel from 0."""
    timestamp_ns: int
    """Unix time of the first sample, nanoseconds."""
    first_sample: int
    """Index of the first sample in the stream."""
    rate: Rational
    """Samples per second."""
    first_bin_hz: float
    bin_spacing_hz: float
    nperseg: int
    noverlap: int
    segments_averaged: int
    segments_expected: int
    window: WindowKind
    scaling: Scaling
    detrend: Detrend
    average: AverageMode
    mean: float
    """Counts or volts; of a complex channel, the magnitude of the complex mean."""
    rms: float
    """Counts or volts."""
    over_range_count: int
    """Samples at the converter's limits."""
    worker: int
    data_crc32: int


_Member = TypeVar("_Member")


class _Members(Dict[int, _Member]):
    """Number to member, several times faster than calling the enum; not growing by unknown ones."""

    def __init__(self, kind: Callable[[int], _Member], count: int) -> None:
        super().__init__((number, kind(number)) for number in range(count))
        self._kind = kind

    def __missing__(self, number: int) -> _Member:
        return self._kind(number)


_FLAGS = _Members(PacketFlag, 64)
_WINDOWS = _Members(WindowKind, 8)
_SCALINGS = _Members(Scaling, 2)
_DETRENDS = _Members(Detrend, 2)
_AVERAGES = _Members(AverageMode, 3)


def unpack_trailer(buffer: memoryview, at: int) -> PacketTrailer:
    """The trailer that begins at byte ``at``, of which at least 112 bytes must be there."""
    (
        flags,
        sequence,
        timestamp_ns,
        first_sample,
        numerator,
        denominator,
        first_bin_hz,
        bin_spacing_hz,
        nperseg,
        noverlap,
        averaged,
        expected,
        window,
        scaling,
        detrend,
        average,
        mean,
        rms,
        over_range_count,
        worker,
        data_crc32,
    ) = _FIELDS.unpack_from(buffer, at)
    return PacketTrailer(
        _FLAGS[flags],
        sequence,
        timestamp_ns,
        first_sample,
        Rational(numerator, denominator),
        first_bin_hz,
        bin_spacing_hz,
        nperseg,
        noverlap,
        averaged,
        expected,
        _WINDOWS[window],
        _SCALINGS[scaling],
        _DETRENDS[detrend],
        _AVERAGES[average],
        mean,
        rms,
        over_range_count,
        worker,
        data_crc32,
    )
