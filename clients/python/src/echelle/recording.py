"""Recordings of spectra, as ``echelle-coordinator --record FILE`` writes them.

A recording is a sequence of u32 big-endian length + packet, in time order, within one time by
channel.
"""

from __future__ import annotations

import os
import struct
from types import TracebackType
from typing import BinaryIO, Iterator, Optional, Type, Union

from .errors import PacketError, RecordingTruncated
from .packet import SpectrumPacket, decode_packet

_LENGTH = struct.Struct(">I")
_MOST_AT_ONCE = 1 << 20  # a false length must not reserve 4 GiB


class RecordingReader(Iterator[SpectrumPacket]):
    """Iterates over the packets of a recording; also a context manager that closes the file.

    A bad packet raises its PacketError, with ``offset`` set, and the next call of ``next()``
    goes on behind it. RecordingTruncated is raised where the file was cut off, and ends the
    iteration.
    """

    def __init__(self, file: BinaryIO, owns_file: bool) -> None:
        self._file = file
        self._owns_file = owns_file
        self._ended = False
        self.offset = 0
        """The byte, counted from where reading began, at which the next record begins."""

    def __next__(self) -> SpectrumPacket:
        if self._ended:
            raise StopIteration
        start = self.offset
        prefix = self._read(_LENGTH.size)
        if not prefix:
            self.close()
            raise StopIteration
        if len(prefix) < _LENGTH.size:
            self.close()
            raise RecordingTruncated(
                start, f"the recording ends after {len(prefix)} of 4 bytes of its length"
            )
        (length,) = _LENGTH.unpack(prefix)
        packet = self._read(length)
        if len(packet) < length:
            self.close()
            raise RecordingTruncated(
                start, f"the recording ends after {len(packet)} of {length} bytes of its packet"
            )
        self.offset = start + _LENGTH.size + length
        try:
            return decode_packet(packet)
        except PacketError as error:
            error.offset = start
            raise

    def _read(self, count: int) -> bytes:
        """``count`` bytes, or fewer at the file's end."""
        chunk = self._read_once(min(count, _MOST_AT_ONCE))
        if len(chunk) == count or not chunk:
            return chunk
        parts = [chunk]
        missing = count - len(chunk)
        while missing and chunk:
            chunk = self._read_once(min(missing, _MOST_AT_ONCE))
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)

    def _read_once(self, count: int) -> bytes:
        chunk = self._file.read(count)
        if not isinstance(chunk, bytes):
            raise TypeError(
                f"read() of the recording's file gave {type(chunk).__name__}, not bytes: "
                "open it with mode 'rb', blocking"
            )
        return chunk

    def close(self) -> None:
        """Ends the iteration; closes the file if it was opened by path."""
        self._ended = True
        if self._owns_file:
            self._file.close()

    def __enter__(self) -> RecordingReader:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


def read_recording(path_or_file: Union[str, os.PathLike[str], BinaryIO]) -> RecordingReader:
    """Iterates over the packets of a recording.

    ``path_or_file`` is a path (OSError if it cannot be opened; the file is closed at its end) or a
    binary file, which stays open and may be a pipe.
    """
    if isinstance(path_or_file, (str, os.PathLike)):
        return RecordingReader(open(path_or_file, "rb"), owns_file=True)
    return RecordingReader(path_or_file, owns_file=False)
