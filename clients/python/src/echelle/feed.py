"""The feed of a running coordinator: spectra, events and figures while they are made.

docs/feed.md defines topics and messages. Needs pyzmq.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from .coded import decode_coded_packet
from .errors import FeedEnded, FeedError, FeedTimeout
from .packet import SpectrumPacket, decode_packet

zmq: Any = None  # imported when first needed: packets and recordings go without

_TOPICS = {"float32": "psd/", "float16": "psd16/", "decibel8": "psd8/"}
_LONGEST_PACKET = 64 << 20
_HELLO_PATIENCE_S = 2.0
_LOOK_S = 1.0  # how often a quiet feed is looked after


class FeedMessage(NamedTuple):
    """One message of the feed: a spectrum, or what an event, figures or a hello say."""

    topic: str
    content: Union[SpectrumPacket, Dict[str, Any], bytes]


def feed_endpoint(target: str = "echelle") -> str:
    """The endpoint of an instance's feed by its name; an endpoint (``…://…``) stays as it is."""
    if "://" in target:
        return target
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.access(runtime, os.W_OK):
        return f"ipc://{runtime}/echelle/{target}/feed"
    return f"ipc:///tmp/echelle-{os.getuid()}/{target}/feed"


def read_keys(path: Union[str, "os.PathLike[str]"]) -> tuple[bytes, bytes]:
    """(public, secret) of a file that ``echellectl keys`` made; secret is b"" in a .pub file."""
    found = {"public": b"", "secret": b""}
    with open(path, encoding="ascii") as file:
        for line in file:
            words = [] if line.lstrip().startswith("#") else line.split()
            if len(words) == 2 and words[0] in found and len(words[1]) == 40:
                found[words[0]] = words[1].encode("ascii")
            elif words:
                raise ValueError(f"{path} is not a file of keys: {line.strip()!r}")
    return found["public"], found["secret"]


def _need_zmq() -> None:
    global zmq
    if zmq is not None:
        return
    try:
        import zmq as module
        import zmq.asyncio
    except ImportError as error:
        raise FeedError("the feed needs pyzmq: pip install echelle-spectra[feed]") from error
    zmq = module


def _topics(channels: Optional[Iterable[int]], coding: str) -> List[str]:
    try:
        name = _TOPICS[coding]
    except KeyError:
        raise ValueError(f"coding {coding!r} is not known: give {', '.join(_TOPICS)}") from None
    return [name] if channels is None else [f"{name}{channel:05d}" for channel in channels]


def _decode(parts: List[bytes]) -> FeedMessage:
    """Raises PacketError for a packet that is none, ValueError for JSON that is none."""
    topic = parts[0].decode("ascii", "replace")
    payload = parts[1] if len(parts) > 1 else b""
    if topic.startswith("psd/"):
        return FeedMessage(topic, decode_packet(payload))
    if topic.startswith(("psd16/", "psd8/")):
        return FeedMessage(topic, decode_coded_packet(payload))
    if topic == "hello/" or topic.startswith(("event/", "stat/")):
        content = json.loads(payload)
        return FeedMessage(topic, content if isinstance(content, dict) else {})
    return FeedMessage(topic, payload)


class _Subscription:
    """What both subscribers have in common: the socket, and what they saw go by."""

    def __init__(
        self,
        target: str,
        topics: Iterable[str],
        queue: int,
        server_key: Optional[bytes],
        key_pair: Optional[tuple[bytes, bytes]],
        context: Any,
    ) -> None:
        self.endpoint = feed_endpoint(target)
        self.hello: Optional[Dict[str, Any]] = None
        """What the instance is, once its description has come."""
        self.missed = 0
        """Spectra that this subscriber has not seen between those it has, of all channels."""
        self.ended = False
        """The coordinator's run has ended."""
        self.timeout: Optional[float] = None
        self._sequences: Dict[int, int] = {}
        self._socket = context.socket(zmq.SUB)
        self._socket.set(zmq.LINGER, 0)
        self._socket.set(zmq.RCVHWM, queue)
        self._socket.set(zmq.MAXMSGSIZE, _LONGEST_PACKET)
        if server_key is not None and key_pair is not None:
            self._socket.curve_serverkey = server_key
            self._socket.curve_publickey, self._socket.curve_secretkey = key_pair
        self._socket.connect(self.endpoint)
        # In this order: who subscribes to hello/ first has the description before any spectrum.
        for topic in ("hello/", "event/end", *topics):
            self._socket.subscribe(topic)

    def _is_gone(self) -> bool:
        """The coordinator has removed its socket: event/end passes a full queue by."""
        path = self.endpoint[len("ipc://") :]
        is_file = self.endpoint.startswith("ipc:///")
        return self.hello is not None and is_file and not os.path.exists(path)

    def _steps_ms(self, timeout: Optional[float]) -> Iterator[int]:
        """Times to wait, one after the other; when they are over, nothing came in time."""
        wait_s = self.timeout if timeout is None else timeout
        deadline = None if wait_s is None else time.monotonic() + wait_s
        while True:
            left = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
            yield max(0, math.ceil(1000 * left))
            if self._is_gone():
                self.ended = True
                raise FeedEnded(f"the run at {self.endpoint} has ended")
            if deadline is not None and time.monotonic() >= deadline:
                raise FeedTimeout(
                    f"nothing came from {self.endpoint} in {wait_s:g} s: is a coordinator running?"
                )

    def _notice(self, message: FeedMessage) -> None:
        topic, content = message
        if topic == "hello/" and isinstance(content, dict):
            if self.hello is None or self.hello.get("started_ns") != content.get("started_ns"):
                self._sequences.clear()  # another run: its spectra are counted anew
            self.hello = content
        elif topic == "event/end":
            self.ended = True
        elif isinstance(content, SpectrumPacket) and content.sequence is not None:
            last = self._sequences.get(content.channel_id)
            if last is not None and content.sequence > last:
                self.missed += content.sequence - last - 1
            self._sequences[content.channel_id] = content.sequence

    def close(self) -> None:
        """Ends the subscription."""
        self._socket.close()


class Subscriber(_Subscription):
    """Spectra while they are made, as an iterator; made by :func:`subscribe`.

    Ends when the run does. A packet that is none raises its PacketError; going on is possible.
    """

    def __init__(self, *arguments: Any, timeout: Optional[float], context: Any) -> None:
        _need_zmq()
        super().__init__(*arguments, context or zmq.Context.instance())
        self.timeout = timeout

    def receive(self, timeout: Optional[float] = None) -> FeedMessage:
        """The next message of any topic.

        Raises FeedTimeout after ``timeout`` seconds, FeedEnded when the coordinator has gone.
        """
        for wait_ms in self._steps_ms(timeout):
            if self._socket.poll(wait_ms):
                break
        message = _decode(self._socket.recv_multipart())
        self._notice(message)
        return message

    def messages(self) -> Iterator[FeedMessage]:
        """All that comes, until the run ends."""
        try:
            while not self.ended:
                yield self.receive()
        except FeedEnded:
            pass

    def __iter__(self) -> Iterator[SpectrumPacket]:
        return self

    def __next__(self) -> SpectrumPacket:
        try:
            while not self.ended:
                content = self.receive().content
                if isinstance(content, SpectrumPacket):
                    return content
        except FeedEnded:
            pass
        raise StopIteration

    def wait_for_hello(self, timeout: float = _HELLO_PATIENCE_S) -> Dict[str, Any]:
        """The instance's description; to be asked before spectra are read."""
        deadline = time.monotonic() + timeout
        while self.hello is None:
            self.receive(max(0.0, deadline - time.monotonic()))
        return self.hello

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


class AsyncSubscriber(_Subscription):
    """The same for ``async for``; made by :func:`subscribe_async`."""

    def __init__(self, *arguments: Any, timeout: Optional[float], context: Any) -> None:
        _need_zmq()
        super().__init__(*arguments, context or zmq.asyncio.Context.instance())
        self.timeout = timeout

    async def receive(self, timeout: Optional[float] = None) -> FeedMessage:
        """The next message of any topic.

        Raises FeedTimeout after ``timeout`` seconds, FeedEnded when the coordinator has gone.
        """
        for wait_ms in self._steps_ms(timeout):
            if await self._socket.poll(wait_ms):
                break
        message = _decode(await self._socket.recv_multipart())
        self._notice(message)
        return message

    def __aiter__(self) -> AsyncIterator[SpectrumPacket]:
        return self

    async def __anext__(self) -> SpectrumPacket:
        try:
            while not self.ended:
                content = (await self.receive()).content
                if isinstance(content, SpectrumPacket):
                    return content
        except FeedEnded:
            pass
        raise StopAsyncIteration

    async def __aenter__(self) -> AsyncSubscriber:
        return self

    async def __aexit__(self, *unused: object) -> None:
        self.close()


def subscribe(
    target: str = "echelle",
    *,
    channels: Optional[Iterable[int]] = None,
    coding: str = "float32",
    topics: Iterable[str] = (),
    timeout: Optional[float] = None,
    queue: int = 1000,
    server_key: Optional[bytes] = None,
    key_pair: Optional[tuple[bytes, bytes]] = None,
    context: Any = None,
) -> Subscriber:
    """Subscribes to the spectra of an instance, by its name or its feed's endpoint.

    ``channels``: None for all. ``coding``: float32, or float16 or decibel8 for fewer bytes.
    ``topics``: what else, such as ``event/`` and ``stat/`` (see :meth:`Subscriber.messages`).
    ``timeout``: seconds without a message after which FeedTimeout is raised; None: never.
    ``queue``: messages that may wait here. ``server_key`` (public) and ``key_pair`` (public, secret;
    see :func:`read_keys`): for tcp with keys.
    """
    wanted = [*_topics(channels, coding), *topics]
    return Subscriber(
        target, wanted, queue, server_key, key_pair, timeout=timeout, context=context
    )


def subscribe_async(
    target: str = "echelle",
    *,
    channels: Optional[Iterable[int]] = None,
    coding: str = "float32",
    topics: Iterable[str] = (),
    timeout: Optional[float] = None,
    queue: int = 1000,
    server_key: Optional[bytes] = None,
    key_pair: Optional[tuple[bytes, bytes]] = None,
    context: Any = None,
) -> AsyncSubscriber:
    """:func:`subscribe` for ``async for``."""
    wanted = [*_topics(channels, coding), *topics]
    return AsyncSubscriber(
        target, wanted, queue, server_key, key_pair, timeout=timeout, context=context
    )


def latest(
    target: str = "echelle",
    channel: int = 0,
    *,
    coding: str = "float32",
    timeout: float = 5.0,
    server_key: Optional[bytes] = None,
    key_pair: Optional[tuple[bytes, bytes]] = None,
) -> SpectrumPacket:
    """The next spectrum of one channel. Raises FeedTimeout when none is made in time.

    ``coding`` and the keys as for :func:`subscribe`; ``timeout`` in seconds.
    """
    with subscribe(
        target, channels=[channel], coding=coding, server_key=server_key, key_pair=key_pair
    ) as feed:
        deadline = time.monotonic() + timeout
        while not feed.ended:
            content = feed.receive(max(0.0, deadline - time.monotonic())).content
            if isinstance(content, SpectrumPacket):
                return content
    raise FeedError(f"the run at {feed.endpoint} has ended")
