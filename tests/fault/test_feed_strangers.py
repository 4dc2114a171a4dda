"""A tcp endpoint of the feed that strangers send bytes to, for as long as one likes: nothing crashes,
nothing grows, and the spectra of others are whole.

Some seconds in CI. ECHELLE_LONG_TESTS=1: an hour without keys, ten minutes with; an own length by
ECHELLE_STRANGERS_S. What is sent comes from a generator whose seed stands in the test's output."""

import errno
import json
import os
import random
import re
import socket
import statistics
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from cluster import BINARIES, check_books, wait_until
from subscriber import PATIENCE_S, feed_of, receive_until, sequence_of, subscriber
from zmtp import GREETING, command, frame, ready

import echelle

CALM = ["--source", "sim:?channels=4&samples=256&rate=1e5", "--workers", 2, "--nperseg", 256,
        "--average", 4]  # fmt: skip
LONG = os.environ.get("ECHELLE_LONG_TESTS") == "1"
SEED = int(os.environ.get("ECHELLE_SEED", "20261201"))
STRANGERS = 6
PAUSE_S = 0.03  # of each: some 150 connections a second in all, or the machine runs out of ports
# Buffers of those connected at a time, and what the allocator keeps: more than that is a leak.
MOST_GROWTH_KIB = 8 << 10
HUNG_UP = (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN)
CURVE_GREETING = GREETING[:12] + b"CURVE".ljust(20, b"\0") + bytes(32)
LENGTHS = [0, 1, 255, 256, 2**15, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1]


def length_of_run(keys):
    if given := os.environ.get("ECHELLE_STRANGERS_S"):
        return float(given)
    return (600 if keys else 3600) if LONG else 3


def pieces_of_a_session(rng, keys):
    """What a subscriber sends, one after the other; some of them more than once, or not at all."""
    hello = command(b"HELLO", b"\1\0" + bytes(72) + rng.randbytes(32 + 8 + 80))
    initiate = command(b"INITIATE", rng.randbytes(rng.choice([8, 96, 200])))
    shaking = [CURVE_GREETING, hello, initiate] if keys else [GREETING, ready(b"SUB")]
    topic = rng.choice([b"psd/", b"psd/00001", b"", b"stat/", b"hello/", rng.randbytes(40)])
    after = [
        frame(b"\x01" + topic), frame(b"\x00" + topic), command(b"SUBSCRIBE", topic),
        command(b"CANCEL", topic), command(b"PING", b"\0\1ctx"), command(b"PONG", b"ctx"),
        frame(b"part", more=True), frame(b""), ready(b"XSUB"), command(b"ERROR", b"\3why"),
        struct.pack(">BQ", rng.randrange(256), rng.choice(LENGTHS)) + rng.randbytes(16),
    ]  # fmt: skip
    return shaking + rng.choices(after, k=rng.randrange(6))


def mutated(rng, content):
    content = bytearray(content)
    for _ in range(rng.randrange(4)):
        if not content:
            break
        at = rng.randrange(len(content))
        how = rng.randrange(5)
        if how == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del content[at:]
        elif how == 2:
            content[at : at + 8] = struct.pack(">Q", rng.choice(LENGTHS))
        elif how == 3:
            content[at:at] = rng.randbytes(rng.randrange(64))
        else:
            content += content[at:]
    return bytes(content)


def what_is_sent(rng, keys):
    foreign = [
        b"GET / HTTP/1.1\r\nHost: echelle\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),  # TLS ClientHello
        b"SSH-2.0-OpenSSH_9.2\r\n",
        rng.randbytes(rng.choice([1, 10, 64, 5000, 100_000])),
        b"",
    ]
    if rng.random() < 0.25:
        return [mutated(rng, rng.choice(foreign))]
    pieces = pieces_of_a_session(rng, keys and rng.random() < 0.8)
    if rng.random() < 0.3:
        rng.shuffle(pieces)
    return [mutated(rng, piece) if rng.random() < 0.5 else piece for piece in pieces]


class Stranger(threading.Thread):
    """Connects, sends, and goes away in one way or another, until it is told to end."""

    def __init__(self, port, seed, keys, ended):
        super().__init__()
        self.rng, self.port, self.keys, self.ended = random.Random(seed), port, keys, ended
        self.connections = self.bytes = 0
        self.failure = None

    def run(self):
        try:
            while not self.ended.wait(PAUSE_S):
                self.visit()
        except Exception as error:  # told by the test: a thread cannot fail it
            self.failure = error

    def visit(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            self.connections += 1
            try:
                for piece in what_is_sent(self.rng, self.keys):
                    connection.sendall(piece)
                    self.bytes += len(piece)
                    if self.rng.random() < 0.2:  # a handshake needs the other's answers
                        connection.settimeout(0.02)
                        self.read_a_little(connection)
                        connection.settimeout(PATIENCE_S)
                self.leave(connection)
            except OSError as error:  # it had enough of us
                if error.errno not in HUNG_UP:
                    raise

    def read_a_little(self, connection):
        try:
            connection.recv(4096)
        except TimeoutError:
            pass

    def leave(self, connection):
        how = self.rng.randrange(4)
        if how == 0:  # reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == 1:  # half closed, and then a while of silence
            connection.shutdown(socket.SHUT_WR)
            self.ended.wait(0.2 * self.rng.random())
        elif how == 2:  # one that never reads
            self.ended.wait(self.rng.random())


def resident_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_keys(place):
    for name in ("feed", "friend"):
        subprocess.run([BINARIES / "echellectl", "keys", place.output / name], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE_S)  # fmt: skip
    return ["--feed-key", place.output / "feed.key", "--feed-allow", place.output / "friend.pub"]


def a_friend_is_served(place, port, keys):
    given = {}
    if keys:
        given = {"server_key": echelle.read_keys(place.output / "feed.key")[0],
                 "key_pair": echelle.read_keys(place.output / "friend.key")}  # fmt: skip
    endpoint = f"tcp://127.0.0.1:{port}"
    with echelle.subscribe(endpoint, channels=[1], timeout=PATIENCE_S, **given) as feed:
        return next(iter(feed)).channel_id == 1


def watch_memory(run, seconds, strangers):
    """The coordinator's memory in KiB, looked at through the run."""
    memory, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        assert not run.has_ended(), "the coordinator has ended"
        for stranger in strangers:
            assert stranger.failure is None, stranger.failure
        memory.append(resident_kib(run.pid))
        time.sleep(min(1.0, seconds / 40))
    return memory


@pytest.mark.parametrize("keys", [False, True], ids=["open", "keys"])
def test_strangers_change_nothing(place, keys, report_figure):
    print(f"seed {SEED}")
    port, report = free_port(), place.output / "report.json"
    run = place.coordinator(*CALM, "--feed", f"tcp://127.0.0.1:{port}", "--report", report,
                            *(make_keys(place) if keys else []))  # fmt: skip
    assert wait_until((place.runtime / "echelle/echelle/feed").exists)
    witness = subscriber(feed_of(place), "psd/00000", "event/end", queue=0)
    witness.recv_multipart()
    assert a_friend_is_served(place, port, keys)
    before = descriptors(run.pid)
    ended = threading.Event()
    strangers = [Stranger(port, SEED + i, keys, ended) for i in range(STRANGERS)]
    for stranger in strangers:
        stranger.start()
    try:
        memory = watch_memory(run, length_of_run(keys), strangers)
    finally:
        ended.set()
        for stranger in strangers:
            stranger.join(2 * PATIENCE_S)
    assert all(stranger.failure is None for stranger in strangers)
    # Those that shook no hands are closed when the time for that is over.
    assert wait_until(lambda: descriptors(run.pid) <= before, 30), descriptors(run.pid) - before
    assert a_friend_is_served(place, port, keys)
    assert place.control("stop").code == 0
    finished = run.finish()
    assert finished.code == 0, finished.err
    packets = [packet for topic, packet in receive_until(witness, b"event/end") if b"psd" in topic]
    witness.close()
    sequences = [sequence_of(packet) for packet in packets]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    figures = json.loads(report.read_text())
    check_books(figures)
    assert figures["frames"]["dropped"] == {}
    assert figures["feed"]["refused"] > 0
    tenth = len(memory) // 10
    early = statistics.median(memory[tenth : 2 * tenth])
    late = statistics.median(memory[-tenth:])
    sent = sum(stranger.bytes for stranger in strangers)
    report_figure(
        f"strangers, {'keys' if keys else 'open'}: "
        f"{sum(stranger.connections for stranger in strangers):,} connections, {sent:,} bytes, "
        f"{figures['feed']['refused']:,} refused; memory {early / 1024:.1f} MiB early, "
        f"{late / 1024:.1f} late, {max(memory) / 1024:.1f} at most; latency of the data path "
        f"P50 {figures['frame_us']['latency']['p50']:.0f} P99 "
        f"{figures['frame_us']['latency']['p99']:.0f} us")
    assert late - early < MOST_GROWTH_KIB, memory
