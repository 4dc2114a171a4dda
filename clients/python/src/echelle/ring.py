"""The ring of spectra in shared memory: what a coordinator on this machine made, without copies.

docs/feed.md defines every byte. Needs pyzmq for the notices.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
from typing import Iterator, NamedTuple, Optional

from .errors import FeedEnded, FeedError, FeedTimeout
from .feed import subscribe
from .packet import SpectrumPacket, decode_packet

_MAGIC = b"ECHSPEC\0"
_ANSWER = struct.Struct("<8sQ")
_HEADER = struct.Struct("<8sIIQQQIIII")
_SLOT = struct.Struct("<QQqII")  # sequence, spectrum, written_ns, channel, packet bytes
_HEAD_AT, _STATE_AT = 128, 136
_ENDED = 2
_PATIENCE_S = 2.0


class RingEntry(NamedTuple):
    """One packet in the ring. ``packet`` is a view of shared memory: it may be overwritten."""

    position: int
    sequence: int
    """Of the channel's spectrum."""
    written_ns: int
    """CLOCK_MONOTONIC (time.monotonic_ns) when it was written."""
    channel: int
    packet: memoryview


def _receive_region(path: str) -> mmap.mmap:
    """Asks for the region's descriptor and maps it for reading."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(_PATIENCE_S)
        try:
            door.connect(path)
            content, descriptors, _, _ = socket.recv_fds(door, _ANSWER.size, 1)
        except OSError as error:
            raise FeedError(f"cannot reach the ring of spectra at {path}: {error}") from error
    try:
        if len(content) != _ANSWER.size or not content.startswith(_MAGIC):
            raise FeedError(f"{path} gives no ring of spectra")
        size = _ANSWER.unpack(content)[1]
        if not descriptors or not 0 < size <= os.fstat(descriptors[0]).st_size:
            raise FeedError(f"the coordinator at {path} has no ring of spectra; use subscribe()")
        return mmap.mmap(descriptors[0], size, mmap.MAP_SHARED, mmap.PROT_READ)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class SpectrumRingReader:
    """Reads every spectrum of every channel from now on; made by :func:`open_ring`.

    As an iterator it gives packets whose bytes are copies. :meth:`next_entry` and :meth:`confirm`
    read in place.
    """

    def __init__(self, target: str = "echelle", timeout: Optional[float] = None) -> None:
        self.timeout = timeout
        self.missed = 0
        """Packets of all channels that this reader was too slow for."""
        self._feed = subscribe(target, channels=[], queue=16)
        try:
            self.hello = self._feed.wait_for_hello()
            if "ring_socket" not in self.hello:
                raise FeedError(f"{self._feed.endpoint} has no ring of spectra; use subscribe()")
            self._map = _receive_region(self.hello["ring_socket"])
        except BaseException:
            self._feed.close()
            raise
        self._view = memoryview(self._map)
        (magic, version, self._slots_at, self._count, self._stride, region, self._packet_at,
         self._most, self.channels, self.publisher_pid) = _HEADER.unpack_from(self._view)  # fmt: skip
        if magic != _MAGIC or version >> 16 != 1:
            self.close()
            raise FeedError(f"not a ring of spectra of version 1, but {version >> 16}")
        if (
            self._count == 0
            or self._packet_at + self._most > self._stride
            or self._slots_at + self._count * self._stride > len(self._view)
        ):
            self.close()
            raise FeedError("the ring's slots do not fit into its region")
        # Every spectrum is written from here on.
        self._feed._socket.subscribe("ring/")
        self._position = self.head

    @property
    def head(self) -> int:
        """Packets written so far."""
        return int(_load64(self._view, _HEAD_AT))

    def next_entry(self) -> Optional[RingEntry]:
        """The next packet, in place, or None when none is there yet."""
        while self._position < self.head:
            position = self._position
            at = self._slots_at + position % self._count * self._stride
            if _load64(self._view, at) == 2 * position + 2:
                _, sequence, written_ns, channel, size = _SLOT.unpack_from(self._view, at)
                if size <= self._most:
                    start = at + self._packet_at
                    self._position += 1
                    packet = self._view[start : start + size]
                    return RingEntry(position, sequence, written_ns, channel, packet)
            self._skip_what_is_gone()
        return None

    def confirm(self, entry: RingEntry) -> bool:
        """Whether the entry was not overwritten while it was used; if it was, it is missed."""
        at = self._slots_at + entry.position % self._count * self._stride
        if _load64(self._view, at) == 2 * entry.position + 2:
            return True
        self.missed += 1
        return False

    def _skip_what_is_gone(self) -> None:
        oldest = max(0, self.head - self._count)
        go_on_at = max(oldest + self._count // 4, self._position + 1)
        self.missed += go_on_at - self._position
        self._position = go_on_at

    @property
    def ended(self) -> bool:
        """The run has ended and every packet was read."""
        (state,) = struct.unpack_from("<I", self._view, _STATE_AT)
        return (state == _ENDED or self._feed.ended) and self._position >= self.head

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for news of the ring; False when none came in time."""
        try:
            self._feed.receive(timeout)
            while self._feed._socket.poll(0):
                self._feed.receive(0)
        except FeedTimeout:
            return False
        except FeedEnded:
            pass  # it may have been killed: what it wrote is still there
        return True

    def __iter__(self) -> Iterator[SpectrumPacket]:
        return self

    def __next__(self) -> SpectrumPacket:
        quiet_since = time.monotonic()
        while not self.ended:
            entry = self.next_entry()
            if entry is not None:
                copy = bytes(entry.packet)
                if self.confirm(entry):
                    return decode_packet(copy)
                continue
            if self.timeout is not None and time.monotonic() - quiet_since > self.timeout:
                raise FeedTimeout(f"no spectrum came in {self.timeout:g} s")
            self.wait(0.1)  # notices may be lost: looked at all the same
        raise StopIteration

    def close(self) -> None:
        """Ends the subscription. Entries that are still held keep the memory mapped."""
        self._feed.close()
        self._view.release()
        try:
            self._map.close()
        except BufferError:
            pass  # unmapped when the last entry goes

    def __enter__(self) -> SpectrumRingReader:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def _load64(view: memoryview, at: int) -> int:
    """One aligned 64-bit load."""
    value: int = view[at : at + 8].cast("Q")[0]
    return value


def open_ring(target: str = "echelle", *, timeout: Optional[float] = None) -> SpectrumRingReader:
    """The ring of spectra of an instance on this machine, by its name or its feed's endpoint.

    ``timeout``: seconds without a spectrum after which the iterator raises FeedTimeout.
    """
    return SpectrumRingReader(target, timeout)
