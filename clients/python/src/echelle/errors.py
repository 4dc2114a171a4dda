"""The ways in which bytes are not a packet, a file not a recording, a feed not to be had."""

from __future__ import annotations

from typing import Optional


class PacketError(ValueError):
    """The bytes are not a SpectrumPacket.

    ``offset`` is None, or, when the packet came from a recording, the byte of the file at which
    its record (the length field) begins.
    """

    offset: Optional[int] = None

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.offset is None else f"record at byte {self.offset}: {text}"


class PacketTooShort(PacketError):
    """Fewer bytes than header, data or trailer say: the packet was cut off."""


class PacketTooLong(PacketError):
    """More bytes than header, data and trailer say."""


class PacketBadCrc(PacketError):
    """The CRC of header, data or trailer differs: bytes were damaged."""


class PacketUnknownMajor(PacketError):
    """A major version that the reader does not know: 1, or 2 for coded packets."""


class PacketBadTrailer(PacketError):
    """Version 1.1 or later, whose trailer has another magic or says it has less than 112 bytes."""


class PacketUnknownCoding(PacketError):
    """A packet of version 2.x whose values are coded in a way that this reader does not know."""


class FeedError(RuntimeError):
    """The feed cannot be used: no such instance, no ring, a package that is missing."""


class FeedTimeout(FeedError, TimeoutError):
    """Nothing came in time."""


class FeedEnded(FeedError):
    """The coordinator has gone; nothing more will come."""


class RecordingTruncated(ValueError):
    """The recording ends inside a record. All records before ``offset`` are good.

    ``offset`` is the byte of the file at which the record that was cut off begins.
    """

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset

    def __str__(self) -> str:
        return f"record at byte {self.offset}: {super().__str__()}"

    def __reduce__(self) -> tuple[type[RecordingTruncated], tuple[int, str]]:
        return type(self), (self.offset, str(self.args[0]))
