"""The little of MQTT (OASIS standard, versions 3.1.1 and 5.0) that tests need on either side.

A client and a broker of our own, so that a subscriber keeps every byte that reached it when its
broker is killed, and a broker can do what no broker should.
"""

import socket
import struct
import threading
import time

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = (
    1, 2, 3, 4, 8, 9, 12, 13, 14)  # fmt: skip
PATIENCE_S = 20


def length_bytes(length):
    """The standard's variable byte integer."""
    coded = bytearray()
    while True:
        length, low = divmod(length, 128)
        coded.append(low | (128 if length else 0))
        if not length:
            return bytes(coded)


def packet(kind, body=b"", flags=0):
    return bytes([kind << 4 | flags]) + length_bytes(len(body)) + body


def text(content):
    return struct.pack(">H", len(content.encode())) + content.encode()


class Stream:
    """Packets out of a socket, one after the other."""

    def __init__(self, connection):
        self.connection = connection
        self.bytes = b""

    def next(self):
        """(kind, flags, body), or None when the other end has gone. Raises TimeoutError."""
        while (found := self._complete()) is None:
            try:
                more = self.connection.recv(1 << 16)
            except TimeoutError:
                raise
            except OSError:
                more = b""
            if not more:
                return None
            self.bytes += more
        return found

    def _complete(self):
        length, shift, at = 0, 0, 1
        while True:
            if at >= len(self.bytes):
                return None
            byte = self.bytes[at]
            length |= (byte & 127) << shift
            shift, at = shift + 7, at + 1
            if byte < 128:
                break
        if len(self.bytes) < at + length:
            return None
        first, body = self.bytes[0], self.bytes[at : at + length]
        self.bytes = self.bytes[at + length :]
        return first >> 4, first & 15, body


class Message:
    """A PUBLISH, taken apart."""

    def __init__(self, flags, body, version):
        self.qos, self.retain = flags >> 1 & 3, bool(flags & 1)
        (length,) = struct.unpack_from(">H", body)
        self.topic, at = body[2 : 2 + length].decode(), 2 + length
        self.id = None
        if self.qos:
            (self.id,) = struct.unpack_from(">H", body, at)
            at += 2
        self.properties = {}
        if version == 5:
            end = at + 1 + body[at]  # of less than 128 bytes here
            at += 1
            while at < end:
                assert body[at] == 38, "only user properties are expected"
                name, at = self._text(body, at + 1)
                self.properties[name], at = self._text(body, at)
        self.payload = body[at:]

    @staticmethod
    def _text(body, at):
        (length,) = struct.unpack_from(">H", body, at)
        return body[at + 2 : at + 2 + length].decode(), at + 2 + length


class Subscriber(threading.Thread):
    """Subscribes at QoS 0 in a session that outlives connections, and keeps every message.

    It writes nothing but its requests: bytes that lie in its socket when the broker dies are read.
    """

    def __init__(self, port, *filters, client_id="witness", version=5, clean=False):
        super().__init__(daemon=True)
        self.port, self.filters, self.client_id = port, filters, client_id
        self.version, self.clean = version, clean
        self.messages = []
        self.sessions = 0
        self.subscribed = threading.Event()
        self.stopping = False
        self.start()

    def run(self):
        while not self.stopping:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                    self._live(connection)
            except OSError:
                pass  # no broker there now
            time.sleep(0.01)

    def _live(self, connection):
        # An hour's expiry: in MQTT 5 that is what lets a session outlive its connection.
        properties = bytes([5, 17]) + struct.pack(">I", 3600) if self.version == 5 else b""
        flags = 2 if self.clean else 0
        about = bytes([self.version, flags]) + struct.pack(">H", 0) + properties
        connection.sendall(packet(CONNECT, text("MQTT") + about + text(self.client_id)))
        body = struct.pack(">H", 1) + (b"\0" if self.version == 5 else b"")
        for one in self.filters:
            body += text(one) + b"\0"
        connection.sendall(packet(SUBSCRIBE, body, 2))
        connection.settimeout(0.1)
        stream = Stream(connection)
        while True:
            try:
                found = stream.next()
            except TimeoutError:
                if self.stopping:
                    return
                continue
            if found is None:
                return
            kind, flags, body = found
            if kind == PUBLISH:
                self.messages.append(Message(flags, body, self.version))
            elif kind == SUBACK:
                self.sessions += 1
                self.subscribed.set()

    def of(self, beginning):
        return [message for message in list(self.messages) if message.topic.startswith(beginning)]

    def stop(self):
        self.stopping = True
        self.join(PATIENCE_S)


class StandInBroker(threading.Thread):
    """Accepts connections one after the other and does with each what `behaviours` say, in order;
    the last one again for all further ones. A behaviour is called with (broker, stream)."""

    def __init__(self, *behaviours, version=5):
        super().__init__(daemon=True)
        self.behaviours, self.version = behaviours, version
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.1)
        self.port = self.listener.getsockname()[1]
        self.accepted_at = []
        self.messages = []  # all that came, those that are not acknowledged too
        self.client_ids = []
        self.disconnects = 0
        self.stopping = threading.Event()
        self.start()

    def run(self):
        while not self.stopping.is_set():
            try:
                connection, _ = self.listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            number = len(self.accepted_at)
            self.accepted_at.append(time.monotonic())
            with connection:
                connection.settimeout(0.1)
                try:
                    self.behaviours[min(number, len(self.behaviours) - 1)](self, Stream(connection))
                except OSError:
                    pass  # the client has gone

    def next(self, stream):
        """As Stream.next, but waits until the test ends; None then."""
        while not self.stopping.is_set():
            try:
                return stream.next()
            except TimeoutError:
                pass
        return None

    def welcome(self, stream, code=0, properties=b""):
        """Takes the CONNECT and answers it."""
        found = self.next(stream)
        if found is None:
            return False
        body = found[2]
        at = 10 + (1 + body[10] if self.version == 5 else 0)
        (length,) = struct.unpack_from(">H", body, at)
        self.client_ids.append(body[at + 2 : at + 2 + length].decode())
        tail = length_bytes(len(properties)) + properties if self.version == 5 else b""
        stream.connection.sendall(packet(CONNACK, bytes([0, code]) + tail))
        return True

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE_S)
        self.listener.close()


def serve(limit=None, acknowledge=True, code=0, properties=b""):
    """A behaviour: a broker that lets in and takes messages, `limit` of them before it hangs up."""

    def behave(broker, stream):
        taken = 0
        if not broker.welcome(stream, code, properties) or code:
            return
        while limit is None or taken < limit:
            found = broker.next(stream)
            if found is None:
                return
            kind, flags, body = found
            if kind == PUBLISH:
                message = Message(flags, body, broker.version)
                broker.messages.append(message)
                taken += not message.topic.endswith(("/status", "/hello"))
                if message.id is not None and acknowledge:
                    stream.connection.sendall(packet(PUBACK, struct.pack(">H", message.id)))
            elif kind == PINGREQ:
                stream.connection.sendall(packet(PINGRESP))
            elif kind == DISCONNECT:
                broker.disconnects += 1

    return behave


def blackhole(broker, stream):
    """A behaviour: takes the connection and says nothing, ever."""
    broker.stopping.wait()


def never_read(broker, stream):
    """A behaviour: lets in, and then reads nothing any more."""
    broker.welcome(stream)
    broker.stopping.wait()


def say(content):
    """A behaviour: sends these bytes whatever comes, and hangs up."""

    def behave(broker, stream):
        stream.connection.sendall(content)
        broker.stopping.wait(0.05)

    return behave
