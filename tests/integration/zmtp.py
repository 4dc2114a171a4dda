"""The little of ZMTP 3.0 (rfc.zeromq.org/spec/23) that it takes to send a ROUTER or XPUB what nobody
should.

A client of its own, so that frames can be malformed in ways that a ZeroMQ library does not offer.
"""

import socket
import struct

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
PATIENCE_S = 20


def command(name, body=b""):
    content = bytes([len(name)]) + name + body
    return b"\x04" + bytes([len(content)]) + content


def ready(kind=b"DEALER"):
    key = b"Socket-Type"
    return command(b"READY", bytes([len(key)]) + key + struct.pack(">I", len(kind)) + kind)


def frame(content, more=False):
    """One part of a message, in the long form."""
    return struct.pack(">BQ", 2 | more, len(content)) + content


class Dealer:
    """A connection that has shaken hands as a DEALER."""

    KIND = b"DEALER"

    def __init__(self, path):
        self._shake_hands(connect(path))

    def _shake_hands(self, connection):
        self.socket = connection
        self.socket.sendall(GREETING)
        self._read(64)
        self.socket.sendall(ready(self.KIND))
        self._read_frame()  # before that, whatever is more than a handshake is refused

    def send(self, *parts):
        last = len(parts) - 1
        self.socket.sendall(b"".join(frame(p, i < last) for i, p in enumerate(parts)))

    def receive(self):
        """The parts of the next message."""
        parts = []
        while True:
            flags, content = self._read_frame()
            parts.append(content)
            if not flags & 1:
                return parts

    def close(self):
        self.socket.close()

    def _read_frame(self):
        (flags,) = self._read(1)
        (length,) = struct.unpack(">Q", self._read(8)) if flags & 2 else self._read(1)
        return flags, self._read(length)

    def _read(self, count):
        content = b""
        while len(content) < count:
            part = self.socket.recv(count - len(content))
            if not part:
                raise ConnectionError("the other end has closed")
            content += part
        return content


class Subscriber(Dealer):
    """A connection, given open, that has shaken hands as a SUB."""

    KIND = b"SUB"

    def __init__(self, connection):
        self._shake_hands(connection)


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    connection.connect(str(path))
    return connection
