"""The feed of a running coordinator: what arrives, what is counted, and what cannot hurt it."""

import asyncio
import json
import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

import pytest
import zmtp
from bad_sources import garbage
from cluster import BINARIES, check_books, wait_until
from packet_bytes import records
from subscriber import PATIENCE_S, feed_of, receive_until, sequence_of, subscriber
from zmtp import GREETING, frame, ready

import echelle

# 98 spectra a second of each of 4 channels, with room for a busy machine.
CALM = "sim:?channels=4&samples=256&rate=1e5"
CALM_ARGUMENTS = ["--source", CALM, "--workers", 2, "--nperseg", 256, "--average", 4]
# 31,250 spectra a second of 1,160 bytes: more than Python reads.
BUSY_ARGUMENTS = ["--source", "sim:?channels=64&samples=2048&rate=1e6", "--workers", 2,
                  "--nperseg", 512, "--average", 1, "--notify", "futex"]  # fmt: skip
WATCH = BINARIES / "echelle-watch"


def channel_of(packet):
    return struct.unpack_from(">I", packet, 8)[0]


def stop(place, run, name="echelle"):
    assert place.control("--name", name, "stop").code == 0
    finished = run.finish()
    assert finished.code == 0, finished.err


def started(place, *arguments):
    """A coordinator that does not begin before its feed can be subscribed to."""
    run = place.coordinator(*arguments)
    path = place.runtime / "echelle/echelle/feed"
    assert wait_until(path.exists) or run.has_ended()
    return run


def test_every_encoding_and_the_ring_tell_what_is_recorded(place):
    recording, report = place.output / "spectra", place.output / "report.json"
    run = started(place, *CALM_ARGUMENTS, "--duration", 2, "--record", recording,
                  "--report", report)  # fmt: skip
    inline = subscriber(feed_of(place), "hello/", "psd", "event/end")
    one = subscriber(feed_of(place), "hello/", "psd/00002", "event/end")
    assert inline.recv_multipart()[0] == b"hello/"
    in_ring = []
    with echelle.open_ring(feed_of(place), timeout=PATIENCE_S) as ring:
        assert ring.hello["channels"] == 4 and ring.channels == 4
        assert ring.publisher_pid == ring.hello["pid"] == run.pid
        while not ring.ended:
            entry = ring.next_entry()
            if entry is None:
                ring.wait(0.1)
                continue
            in_ring.append(bytes(entry.packet))
            assert ring.confirm(entry)
        assert ring.missed == 0
        del entry
    assert run.finish().code == 0
    made = {(channel_of(packet), sequence_of(packet)): packet for packet in
            records(recording.read_bytes())}  # fmt: skip

    messages = receive_until(inline, b"event/end")
    seen = {b"psd": [], b"psd16": [], b"psd8": []}
    for topic, payload in messages:
        kind, _, channel = topic.partition(b"/")
        if kind in seen:
            assert channel == b"%05d" % channel_of(payload)
            seen[kind].append(payload)
    for kind, packets in seen.items():
        assert len(packets) > 100, kind
        keys = [(channel_of(packet), sequence_of(packet)) for packet in packets]
        # From the first one on, nothing is missing.
        assert sorted(keys) == sorted(key for key in made if key[1] >= min(k[1] for k in keys))
    for packet in seen[b"psd"] + in_ring:
        assert packet == made[channel_of(packet), sequence_of(packet)]
    for packet in seen[b"psd16"] + seen[b"psd8"]:
        coded = echelle.decode_coded_packet(packet)
        whole = echelle.decode_packet(made[channel_of(packet), sequence_of(packet)])
        assert coded.trailer[:-1] == whole.trailer[:-1]  # but for the data's CRC
        allowed = 2**-11 if coded.coding == echelle.PacketCoding.float16 else 10**0.026 - 1
        assert coded.values() == pytest.approx(whole.values(), rel=allowed, abs=0)
    assert {channel_of(payload) for topic, payload in receive_until(one, b"event/end")
            if topic.startswith(b"psd")} == {2}  # fmt: skip
    assert {channel_of(packet) for packet in in_ring} == {0, 1, 2, 3}
    feed = json.loads(report.read_text())["feed"]
    assert feed["missed"] == feed["queue_full"] == feed["refused"] == 0
    assert feed["subscribers_most"] == 3
    for made_socket in (inline, one):
        made_socket.close()


def test_late_joiners_get_the_description_first(place):
    run = started(place, *CALM_ARGUMENTS, "--volts-per-count", "1e-3", "--scaling", "spectrum")
    place.running_status()
    for _ in range(3):
        late = subscriber(feed_of(place), "hello/", "psd/")
        topic, payload = late.recv_multipart()
        assert topic == b"hello/"
        hello = json.loads(payload)
        assert late.recv_multipart()[0] != b"hello/"
        late.close()
    expected = {"feed": 1, "instance": "echelle", "pid": run.pid, "channels": 4, "samples": 256,
                "rate": "100000", "rate_hz": 1e5, "format": "i16", "nperseg": 256, "noverlap": 128,
                "window": "hann", "detrend": "constant", "scaling": "spectrum",
                "average_mode": "mean", "average_frames": 4, "bins": 129, "first_bin_hz": 0.0,
                "bin_spacing_hz": 390.625, "unit": "V^2", "packet_bytes": 20 + 4 * 129 + 112,
                "channel_digits": 5, "sequence": 0,
                "ring_socket": f"{place.runtime}/echelle/echelle/spectra"}  # fmt: skip
    assert {key: hello.get(key) for key in expected} == expected
    assert hello["average_seconds"] == pytest.approx(4 * 256 / 1e5)
    assert abs(hello["started_ns"] - time.time_ns()) < 120e9
    stop(place, run)


def test_python_client(place):
    os.environ["XDG_RUNTIME_DIR"] = str(place.runtime)  # of this process: by the instance's name
    run = started(place, *CALM_ARGUMENTS)
    packet = echelle.latest("echelle", 3, timeout=PATIENCE_S)
    assert packet.channel_id == 3 and packet.values().shape == (129,)
    assert echelle.latest(channel=1, coding="decibel8", timeout=PATIENCE_S).values().shape == (129,)

    async def read():
        async with echelle.subscribe_async("echelle", channels=[2], timeout=PATIENCE_S) as feed:
            sequences = []
            async for packet in feed:
                assert packet.channel_id == 2
                sequences.append(packet.sequence)
                if len(sequences) == 5:
                    return sequences, feed.hello["bins"], feed.missed

    sequences, bins, missed = asyncio.run(read())
    assert sequences == list(range(sequences[0], sequences[0] + 5)) and bins == 129 and missed == 0
    with echelle.subscribe("echelle", timeout=PATIENCE_S) as feed:
        assert feed.wait_for_hello()["channels"] == 4
        packets = [next(feed) for _ in range(8)]
        assert {p.channel_id for p in packets} == {0, 1, 2, 3} and feed.missed == 0
        stop(place, run)
        assert sum(1 for _ in feed) >= 0 and feed.ended  # the iterator ends with the run


def test_cpp_client(place):
    """Each way of echelle-watch gives what is recorded, beside Python on the same feed."""
    recording = place.output / "spectra"
    run = started(place, *CALM_ARGUMENTS, "--duration", 2, "--record", recording)
    ways = {way: place.start(WATCH, *way, feed_of(place)) for way in
            [(), ("--float16",), ("--decibel8",), ("--ring",)]}  # fmt: skip
    with echelle.subscribe(feed_of(place), timeout=PATIENCE_S) as feed:
        python = {(p.channel_id, p.sequence): float(p.values().sum(dtype="f8")) for p in feed}
    assert run.finish().code == 0
    made = {}
    for packet in records(recording.read_bytes()):
        values = struct.unpack("<129f", packet[20 : 20 + 4 * 129])
        made[channel_of(packet), sequence_of(packet)] = sum(values)
    assert len(python) > 100
    for key, total in python.items():
        assert total == pytest.approx(made[key], rel=1e-6)
    for way, watch in ways.items():
        finished = watch.finish()
        assert finished.code == 0, finished.err
        *lines, missed = finished.out.splitlines()
        assert missed == "missed 0" and len(lines) > 100, way
        allowed = 1e-6 if way in [(), ("--ring",)] else 2**-11 if way == ("--float16",) else 0.06
        for line in lines:
            channel, sequence, count, total = line.split()
            assert count == "129"
            assert float(total) == pytest.approx(made[int(channel), int(sequence)], rel=allowed)


def resident_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])


@pytest.mark.parametrize("readers", [0, 1, 10])
def test_subscribers_do_not_hurt_the_data_path(place, readers, report_figure):
    """What they cost in time is bench/feed_load.py's to say."""
    report = place.output / "report.json"
    run = started(place, *BUSY_ARGUMENTS, "--duration", 2, "--report", report)
    made = [subscriber(feed_of(place), "psd/", queue=10) for _ in range(readers)]
    if readers == 10:
        never = zmtp.Subscriber(zmtp.connect(place.runtime / "echelle/echelle/feed"))
        never.send(b"\x01psd/")
    assert wait_until(lambda: place.status() and place.status()["frames"]["done"] > 100)
    time.sleep(0.5)
    early = resident_kib(run.pid)
    time.sleep(0.8)
    late = resident_kib(run.pid)
    assert run.finish().code == 0
    figures = json.loads(report.read_text())
    check_books(figures)
    assert figures["frames"]["dropped"] == {}, figures["frames"]
    assert late - early < 4096, "the publisher's memory grows"
    feed = figures["feed"]
    report_figure(f"{readers} subscribers: worker core time {figures['frame_us']['core']:.1f} us per"
                  f" frame, P99 {figures['frame_us']['latency']['p99']:.0f} us, feed {feed}")
    if readers == 0:
        assert feed["published"] == 2  # hello/ and event/end, which nobody took
    else:
        assert feed["published"] > 0 and feed["queue_full"] > 0
    if readers == 10:
        never.close()
        assert feed["subscribers_most"] == 11
    for one in made:
        one.close()


def test_a_slow_subscriber_can_count_what_it_missed(place):
    recording = place.output / "spectra"
    run = started(place, *BUSY_ARGUMENTS, "--duration", 2, "--record", recording)
    got = {}
    with echelle.subscribe(feed_of(place), timeout=PATIENCE_S, queue=2) as feed:
        for packet in feed:
            if not got:
                time.sleep(1)  # 36 MB go by: more than any queue holds
            got.setdefault(packet.channel_id, []).append(packet.sequence)
    assert run.finish().code == 0
    missed = 0
    for packet in records(recording.read_bytes()):
        mine = got.get(channel_of(packet), [1, 0])
        missed += mine[0] <= sequence_of(packet) <= mine[-1]
    missed -= sum(map(len, got.values()))
    assert 0 < missed == feed.missed


def test_keys_let_in_those_on_the_list(place):
    port, report = free_port(), place.output / "report.json"
    for name in ("feed", "friend", "stranger"):
        answer = place.control("keys", place.output / name)
        assert (answer.code, answer.err) == (0, "")
        assert (place.output / f"{name}.key").stat().st_mode & 0o777 == 0o600
    again = place.control("keys", place.output / "feed")
    assert (again.code, len(again.error_lines)) == (2, 1) and "not replaced" in again.err
    allowed = place.output / "allowed"
    allowed.write_text("# who may\n" + (place.output / "friend.pub").read_text())
    endpoint = f"tcp://127.0.0.1:{port}"
    keys = {name: echelle.read_keys(place.output / f"{name}.key")
            for name in ("feed", "friend", "stranger")}  # fmt: skip
    run = started(place, *CALM_ARGUMENTS, "--feed", endpoint, "--feed-key",
                  place.output / "feed.key", "--feed-allow", allowed, "--report", report)  # fmt: skip

    def comes(name, server_key=keys["feed"][0], timeout=PATIENCE_S):
        pair = keys[name] if name else None
        try:
            with echelle.subscribe(endpoint, timeout=timeout, server_key=server_key,
                                   key_pair=pair) as feed:  # fmt: skip
                return next(feed).fft_size == 129
        except echelle.FeedTimeout:
            return False

    assert comes("friend")
    assert not comes("stranger", timeout=0.7)
    assert not comes(None, timeout=0.3)  # without keys
    assert not comes("friend", server_key=keys["stranger"][0], timeout=0.3)  # another feed's
    with allowed.open("a") as file:
        file.write((place.output / "stranger.pub").read_text())
    assert comes("stranger")
    assert echelle.latest(endpoint, 2, timeout=PATIENCE_S, server_key=keys["feed"][0],
                          key_pair=keys["stranger"])  # fmt: skip
    assert echelle.latest(feed_of(place), timeout=PATIENCE_S)  # ipc goes without keys
    stop(place, run)
    assert json.loads(report.read_text())["feed"]["refused"] >= 2


def test_events_and_figures(place):
    source = CALM + "&drop-every=50&signal=" + "0: tone(f=10kHz, a=30000) + tone(f=11kHz, a=30000)"
    run = started(place, "--source", source, *CALM_ARGUMENTS[2:])
    place.running_status()
    news = subscriber(feed_of(place), "event/", "stat/")
    seen = {}

    def see(topic):
        while topic not in seen:
            got, payload = news.recv_multipart()
            seen[got.decode()] = json.loads(payload)
        return seen.pop(topic)

    gap = see("event/gap")
    assert gap["spectra"] >= 1 and set(gap["channels"]) <= {0, 1, 2, 3} and gap["first_sample"] > 0
    over_range = see("event/over-range")
    assert over_range["channels"] == [0] and over_range["samples"] > 0
    drop = see("event/drop")
    assert drop["frames"]["lost_by_source"] >= 1
    figures = see("stat/")
    assert figures["frames"]["done"] > 0 and figures["workers"] == 2
    assert figures["feed"]["subscribers"] == 1 and figures["feed"]["subscriptions"] == 2
    again = see("stat/")
    assert again["sequence"] == figures["sequence"] + 1
    assert abs(again["at_ns"] - figures["at_ns"] - 1e9) < 0.9e9
    victim = place.status()["workers"][0]["pid"]
    os.kill(victim, signal.SIGKILL)
    death = see("event/death")
    assert death["pid"] == victim and "9" in death["cause"] and death["sequence"] == 0
    assert place.control("scale", 1).code == 0
    scaling = see("event/scaling")
    assert (scaling["from"], scaling["to"]) == (2, 1) and "echellectl" in scaling["reason"]
    stop(place, run)
    assert see("event/end")["failure"] is None
    news.close()


FLOOD_TOPICS = 1_000_000 if os.environ.get("ECHELLE_LONG_TESTS") == "1" else 100_000


def is_closed(connection):
    """The other end closes it, soon."""
    connection.settimeout(PATIENCE_S)
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_what_strangers_send_does_no_harm(place):
    port, report = free_port(), place.output / "report.json"
    run = started(place, *CALM_ARGUMENTS, "--feed", f"tcp://127.0.0.1:{port}", "--report", report)
    witness = subscriber(feed_of(place), "psd/00000", "event/end")
    witness.recv_multipart()

    def stranger():
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)

    strange = [
        b"GET / HTTP/1.1\r\nHost: echelle\r\n\r\n" + b"x" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + garbage(1, 200),  # TLS ClientHello
        garbage(2, 100_000),
        GREETING + garbage(3, 5000),
        GREETING + ready(b"PULL"),  # not a subscriber
        GREETING + ready(b"SUB") + frame(b"\x01psd/"),  # before the handshake's end
    ]
    strange_after_handshake = [
        struct.pack(">BQ", 2, 2**62),  # a message of 4 EiB
        struct.pack(">BQ", 2, 2000) + bytes(2000),
        frame(b"\x01" + b"x" * 300),  # a topic of 300 bytes
    ]
    slow = stranger()  # a byte now and then, and never a handshake
    began = time.monotonic()
    waiting = []
    for content in strange + strange_after_handshake:
        connection = stranger()
        if content in strange_after_handshake:
            zmtp.Subscriber(connection)
        waiting.append((content, connection))
        try:
            connection.sendall(content)
        except ConnectionError:
            pass  # closed while it was written
    # A flood of topics: 10,000 are taken, then the connection is closed.
    before_kib = resident_kib(run.pid)
    with stranger() as many:
        zmtp.Subscriber(many)
        try:
            for first in range(0, FLOOD_TOPICS, 1000):
                many.sendall(b"".join(frame(b"\x01psd/%07d" % (first + i)) for i in range(1000)))
        except ConnectionError:
            pass
        assert is_closed(many), "all topics were taken"
    # libzmq reads all that has come before it lets anybody see the first of it: some 150 bytes each.
    assert resident_kib(run.pid) - before_kib < (64 << 10) + FLOOD_TOPICS // 5
    # Upstream messages that are no subscriptions are ignored, and commands that are none.
    with stranger() as upstream:
        zmtp.Subscriber(upstream)
        upstream.sendall(frame(b"") + frame(b"hello") + frame(b"\x00never had it"))
        upstream.sendall(b"\x04\xff" + garbage(4, 255))
    try:
        while time.monotonic() - began < 10:
            slow.sendall(b"\xff")
            time.sleep(0.1)
        assert False, "a handshake took ten seconds"
    except ConnectionError:
        pass
    slow.close()
    for content, connection in waiting:
        with connection:
            assert is_closed(connection), content[:40]
    # The feed is as good as before, on both endpoints.
    by_tcp = echelle.latest(f"tcp://127.0.0.1:{port}", 1, timeout=PATIENCE_S)
    assert by_tcp.channel_id == 1
    stop(place, run)
    packets = [payload for topic, payload in receive_until(witness, b"event/end") if b"psd" in topic]
    sequences = [sequence_of(packet) for packet in packets]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    figures = json.loads(report.read_text())
    check_books(figures)
    assert figures["frames"]["dropped"] == {}
    assert figures["feed"]["refused"] >= 5
    assert figures["feed"]["subscriptions"] < 10
    witness.close()


def test_without_a_feed(place):
    run = place.coordinator(*CALM_ARGUMENTS, "--feed", "none")
    assert place.running_status()["feed"] is None
    assert not (place.runtime / "echelle/echelle/feed").exists()
    stop(place, run)


def test_feeds_that_are_refused(place):
    (place.output / "data").write_bytes(b"somebody's data")
    taken = socket.socket(socket.AF_UNIX)
    taken.bind(str(place.output / "taken"))
    taken.listen()
    for endpoint, words in [
        ("nowhere", ["nowhere", "tcp://ADDRESS:PORT"]),
        ("inproc://x", ["inproc"]),
        ("tcp://127.0.0.1", ["port"]),
        ("tcp://*:5570", ["keys"]),
        ("tcp://192.0.2.1:5570", ["keys"]),
        ("tcp://*:5570 --feed-key /none", ["--feed-allow"]),
        ("tcp://*:5570 --feed-key /none --feed-allow /none", ["/none"]),
        ("tcp://no.such.host.invalid:5570 --feed-insecure", ["cannot be used"]),
        (f"ipc://{place.output}/data", ["something other than a socket"]),
        (f"ipc://{place.output}/taken", ["another program listens"]),
        (f"ipc://{place.output}/no/where", ["cannot be used"]),
    ]:
        finished = place.run(*CALM_ARGUMENTS, "--feed", *endpoint.split(), "--frames", 1, code=2)
        assert len(finished.error_lines) == 1, finished.err
        for word in words:
            assert word in finished.err, finished.err
    assert (place.output / "data").read_bytes() == b"somebody's data"
    taken.close()
