"""Reads Echelle's spectra: single SpectrumPackets and recordings of them.

Needs the standard library alone; with numpy, values are numpy arrays that copy nothing.
"""

from .errors import (
    PacketBadCrc,
    PacketBadTrailer,
    PacketError,
    PacketTooLong,
    PacketTooShort,
    PacketUnknownMajor,
    RecordingTruncated,
)
from .packet import SpectrumPacket, decode_packet
from .recording import RecordingReader, read_recording
from .trailer import (
    WORKER_UNKNOWN,
    AverageMode,
    Detrend,
    PacketFlag,
    PacketTrailer,
    Rational,
    Scaling,
    WindowKind,
)

__all__ = [
    "AverageMode",
    "Detrend",
    "PacketBadCrc",
    "PacketBadTrailer",
    "PacketError",
    "PacketFlag",
    "PacketTooLong",
    "PacketTooShort",
    "PacketTrailer",
    "PacketUnknownMajor",
    "Rational",
    "RecordingReader",
    "RecordingTruncated",
    "Scaling",
    "SpectrumPacket",
    "WORKER_UNKNOWN",
    "WindowKind",
    "decode_packet",
    "read_recording",
]
