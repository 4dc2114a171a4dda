"""The Rust client beside those in C++ and Python: on a live feed, a recording, a feed that somebody
else plays, and rings that are none. Its own tests are in clients/rust/tests."""

import os
import signal
import socket
import struct
import threading
import zlib
from pathlib import Path

import pytest
import zmq
from cluster import BINARIES, REPOSITORY, wait_until

import echelle

BUILD = Path(os.environ.get("ECHELLE_BUILD_DIR", REPOSITORY / "build/release"))
RUST = BUILD / "clients/rust/debug/examples/watch"
CPP = BINARIES / "echelle-watch"
GOLDEN = REPOSITORY / "tests/golden/packets"
# 98 spectra a second of each of 4 channels.
SOURCE = ["--source", "sim:?channels=4&samples=256&rate=1e5", "--workers", 2, "--nperseg", 256,
          "--average", 4]  # fmt: skip
PATIENCE_S = 30


def feed_of(place):
    return f"ipc://{place.runtime}/echelle/echelle/feed"


def started(place, *arguments):
    run = place.coordinator(*SOURCE, *arguments)
    assert wait_until((place.runtime / "echelle/echelle/feed").exists) or run.has_ended()
    return run


def described(packet):
    """As the other clients print it: the sum in double precision, one value after the other."""
    total = 0.0
    for value in packet.values().tolist():
        total += value
    return packet.fft_size, float(f"{total:.9g}")


def lines_of(watch):
    """(channel, sequence) -> what was printed, and what was missed."""
    finished = watch.finish()
    assert finished.code == 0, finished.err
    *lines, missed = finished.out.splitlines()
    seen = {}
    for channel, sequence, count, total in map(str.split, lines):
        seen[int(channel), int(sequence)] = int(count), float(total)
    assert len(seen) == len(lines)
    return seen, missed


def test_three_clients_side_by_side(place):
    """Identical numbers, not similar ones."""
    recording = place.output / "spectra"
    run = started(place, "--duration", 2, "--record", recording)
    ways = ["", "--float16", "--decibel8", "--ring"]
    watches = {(program, way): place.start(program, *filter(None, [way]), feed_of(place))
               for way in ways for program in (RUST, CPP)}  # fmt: skip
    python = {way: {} for way in ways}
    threads = []
    for way in ways:
        if way == "--ring":
            feed = echelle.open_ring(feed_of(place), timeout=PATIENCE_S)
        else:
            feed = echelle.subscribe(feed_of(place), coding=way[2:] or "float32",
                                     timeout=PATIENCE_S, context=zmq.Context())  # fmt: skip

        def read(feed=feed, seen=python[way]):
            for packet in feed:
                seen[packet.channel_id, packet.sequence] = described(packet)

        threads.append(threading.Thread(target=read))
        threads[-1].start()
    assert run.finish().code == 0
    for thread in threads:
        thread.join(PATIENCE_S)
    for way in ways:
        rust, rust_missed = lines_of(watches[RUST, way])
        cpp, cpp_missed = lines_of(watches[CPP, way])
        assert rust_missed == cpp_missed == "missed 0"
        all_three = rust.keys() & cpp.keys() & python[way].keys()
        assert len(all_three) > 300, way
        for key in all_three:
            assert rust[key] == cpp[key] == python[way][key], (way, key)
    # The recording, by Rust and by Python.
    made = {(p.channel_id, p.sequence): described(p) for p in echelle.read_recording(recording)}
    assert lines_of(place.start(RUST, "--recording", recording)) == (made, "missed 0")
    assert made.keys() >= rust.keys()
    cut = place.output / "cut"
    cut.write_bytes(recording.read_bytes()[:-5])
    finished = place.start(RUST, "--recording", cut).finish()
    assert finished.code == 1 and "the recording ends after" in finished.err
    assert len(finished.out.splitlines()) == len(made) - 1


def test_keys_and_a_coordinator_that_is_killed(place):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    for name in ("feed", "friend"):
        assert place.control("keys", place.output / name).code == 0
    pub, key = place.output / "feed.pub", place.output / "feed.key"
    run = started(place, "--feed", endpoint, "--feed-key", key, "--feed-allow",
                  place.output / "friend.pub")  # fmt: skip
    place.running_status()
    with_keys = place.start(RUST, "--keys", pub, place.output / "friend.key", endpoint, 2)
    by_ipc = place.start(RUST, feed_of(place), 1, 3)
    ring = place.start(RUST, "--ring", feed_of(place))
    late = echelle.subscribe(endpoint, channels=[2], timeout=PATIENCE_S,
                             server_key=echelle.read_keys(pub)[0],
                             key_pair=echelle.read_keys(place.output / "friend.key"))  # fmt: skip
    assert [next(late).channel_id for _ in range(50)] == 50 * [2]
    late.close()
    run.send(signal.SIGKILL)
    run.finish()
    for watch, channels in [(by_ipc, {1, 3}), (ring, {0, 1, 2, 3})]:
        seen, missed = lines_of(watch)  # it ends by itself
        assert {channel for channel, _ in seen} == channels and missed == "missed 0"
    # By tcp a killed coordinator may as well be one that says nothing.
    with_keys.send(signal.SIGTERM)
    with_keys.finish()


class PlayedFeed:
    """A publisher that says what a test wants, once `count` clients have subscribed."""

    def __init__(self, place, count):
        self.endpoint = f"ipc://{place.path}/played"
        self.socket = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.set(zmq.XPUB_VERBOSE, 1)
        self.socket.set(zmq.LINGER, 1000)
        self.socket.set(zmq.RCVTIMEO, PATIENCE_S * 1000)
        self.socket.bind(self.endpoint)
        self.count = count

    def play(self, *messages):
        for _ in range(self.count):
            while self.socket.recv() != b"\x01psd/":
                pass
        for message in messages:
            self.socket.send_multipart(message)
        self.socket.close()


def numbered(sequence):
    """A golden packet with another sequence number, sealed anew as docs/packet.md says."""
    packet = bytearray((GOLDEN / "v1_1_real.bin").read_bytes())
    struct.pack_into(">Q", packet, len(packet) - 112 + 8, sequence)
    struct.pack_into(">I", packet, len(packet) - 4, zlib.crc32(packet[-112:-4]))
    return bytes(packet)


def test_what_was_missed_is_counted_alike(place):
    feed = PlayedFeed(place, 3)
    watches = [place.start(program, feed.endpoint) for program in (RUST, CPP)]
    python = echelle.subscribe(feed.endpoint, timeout=PATIENCE_S)
    first, second = b'{"started_ns": 1}', b'{"started_ns": 2}'
    topic = b"psd/00003"
    feed.play(
        *[[b"hello/", first], [topic, numbered(7)], [topic, numbered(8)], [b"hello/", first]],
        *[[b"what/else", b"is new"], [topic, numbered(12)]],
        *[[b"hello/", second], [topic, numbered(0)], [topic, numbered(2)], [b"event/end", b"{}"]],
    )
    sequences = [7, 8, 12, 0, 2]
    assert [packet.sequence for packet in python] == sequences and python.missed == 4
    for watch in watches:
        finished = watch.finish()
        *lines, missed = finished.out.splitlines()
        assert [int(line.split()[1]) for line in lines] == sequences, finished.err
        assert missed == "missed 4"


@pytest.mark.parametrize(
    "file, words", [("too_short_trailer", "too short"), ("bad_crc_data", "bad CRC: the packet's data"),
                    ("unknown_major_2", "unknown version 2.0: this reader knows 1.x"), (None, "too short")])
def test_a_stranger_s_packet_has_the_same_name(place, file, words):
    feed = PlayedFeed(place, 3)
    watches = [place.start(program, feed.endpoint) for program in (RUST, CPP)]
    python = echelle.subscribe(feed.endpoint, timeout=PATIENCE_S)
    bad = [(GOLDEN / f"{file}.bin").read_bytes()] if file else []
    feed.play([b"psd/00003", *bad], [b"psd/00003", numbered(1)], [b"event/end", b"{}"])
    for watch in watches:
        finished = watch.finish()
        assert finished.code == 1 and words in finished.err, finished.err
        assert len(finished.error_lines) == 1
    with pytest.raises(echelle.PacketError, match=words):
        next(python)
    assert next(python).sequence == 1


def ring_region(size=4096, magic=b"ECHSPEC\0", version=0x00010000, slots_offset=256, count=2,
                stride=1024, packet_offset=108, most=152):  # fmt: skip
    region = bytearray(size)
    struct.pack_into("<8sIIQQQII", region, 0, magic, version, slots_offset, count, stride, size,
                     packet_offset, most)  # fmt: skip
    return bytes(region)


@pytest.mark.parametrize("stated, region, words", [
    (None, b"", "no ring"),
    (0, None, "no ring"),
    (1 << 40, ring_region(), "no ring"),
    (4096, ring_region(magic=b"rubbish!"), "not a ring"),
    (4096, ring_region(version=0x00020000), "not a ring"),
    (4096, ring_region(count=0), "fit"),
    (4096, ring_region(count=2**63), "fit"),
    (4096, ring_region(count=2**61, stride=64, packet_offset=32, most=0), "fit"),
    (4096, ring_region(stride=0), "fit"),
    (4096, ring_region(most=0xFFFFFFFF), "fit"),
    (4096, ring_region(slots_offset=0xFFFFFF00), "fit"),
    (128, ring_region()[:128], "ring"),
])  # fmt: skip
def test_rings_that_are_none(place, stated, region, words):
    """The door of an instance that somebody else plays: rubbish, or a region that lies."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(place.path / "spectra"))
    door.listen()
    door.settimeout(PATIENCE_S)
    watch = place.start(RUST, "--ring", f"ipc://{place.path}/feed")
    visitor, _ = door.accept()
    if stated is None:
        visitor.sendall(b"rubbish")
    elif region is None:
        visitor.sendall(struct.pack("<8sQ", b"ECHSPEC\0", stated))
    else:
        memory = os.memfd_create("ring")
        os.write(memory, region)
        socket.send_fds(visitor, [struct.pack("<8sQ", b"ECHSPEC\0", stated)], [memory])
        os.close(memory)
    visitor.close()
    finished = watch.finish()
    assert finished.code == 1 and len(finished.error_lines) == 1, finished.err
    assert words in finished.err
    door.close()


def test_wrong_usage(place):
    for arguments in [["--rubbish"], ["lab", "x"], ["--keys", "/none", "/none", "tcp://127.0.0.1:1"],
                      ["--recording", "/none"], ["tcp://"]]:  # fmt: skip
        finished = place.start(RUST, *arguments).finish()
        assert finished.code == 1 and len(finished.error_lines) == 1, finished.err
