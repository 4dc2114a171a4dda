"""Reads Echelle's spectra: single SpectrumPackets, recordings, and the feed of a running instance.

Packets and recordings need the standard library alone; with numpy, values are numpy arrays that copy
nothing. The feed needs pyzmq.
"""

from .coded import CodedSpectrumPacket, PacketCoding, decode_coded_packet
from .errors import (
    FeedEnded,
    FeedError,
    FeedTimeout,
    PacketBadCrc,
    PacketBadTrailer,
    PacketError,
    PacketTooLong,
    PacketTooShort,
    PacketUnknownCoding,
    PacketUnknownMajor,
    RecordingTruncated,
)
from .feed import (
    AsyncSubscriber,
    FeedMessage,
    Subscriber,
    feed_endpoint,
    latest,
    read_keys,
    subscribe,
    subscribe_async,
)
from .packet import SpectrumPacket, decode_packet
from .recording import RecordingReader, read_recording
from .ring import RingEntry, SpectrumRingReader, open_ring
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
    "AsyncSubscriber",
    "AverageMode",
    "CodedSpectrumPacket",
    "Detrend",
    "FeedEnded",
    "FeedError",
    "FeedMessage",
    "FeedTimeout",
    "PacketBadCrc",
    "PacketBadTrailer",
    "PacketCoding",
    "PacketError",
    "PacketFlag",
    "PacketTooLong",
    "PacketTooShort",
    "PacketTrailer",
    "PacketUnknownCoding",
    "PacketUnknownMajor",
    "Rational",
    "RecordingReader",
    "RecordingTruncated",
    "RingEntry",
    "Scaling",
    "SpectrumPacket",
    "SpectrumRingReader",
    "Subscriber",
    "WORKER_UNKNOWN",
    "WindowKind",
    "decode_coded_packet",
    "decode_packet",
    "feed_endpoint",
    "latest",
    "open_ring",
    "read_keys",
    "read_recording",
    "subscribe",
    "subscribe_async",
]
