"""echelle-hub between a coordinator and its subscribers: what passes, what is counted, what cannot
hurt it."""

import json
import re
import signal
import socket
import struct
import time
import zlib
from pathlib import Path

import numpy
import pytest
import zmq
import zmtp
from cluster import BINARIES, REPOSITORY, check_books, read_report, wait_until
from packet_bytes import records
from subscriber import PATIENCE_S, receive_until, sequence_of, subscriber

import echelle

HUB = BINARIES / "echelle-hub"
GOLDEN = REPOSITORY / "tests/golden"
# 98 spectra a second of each of 4 channels.
CALM = "sim:?channels=4&samples=256&rate=1e5"
CALM_ARGUMENTS = ["--workers", 2, "--nperseg", 256, "--average", 4]
# 12,500 spectra a second of 1,160 bytes.
BUSY_ARGUMENTS = ["--source", "sim:?channels=64&samples=2048&rate=4e5", "--workers", 2,
                  "--nperseg", 512, "--average", 1, "--notify", "futex"]  # fmt: skip


def start_hub(place, *arguments, name="hub", source=None):
    """A hub that subscribers can reach."""
    hub = place.start(HUB, "--from", source or feed_of(place, "echelle"), "--name", name, "--report",
                      place.output / f"{name}.json", *arguments)  # fmt: skip
    path = place.runtime / "echelle" / name / "feed"
    assert wait_until(lambda: path.exists() or hub.has_ended())
    return hub


def books(place, name="hub"):
    """The report's counts, whose sum must close."""
    report = read_report(place.output / f"{name}.json")
    counts = report["messages"]
    rest = sum(counts["invalid"].values()) + sum(counts["dropped"].values())
    assert counts["received"] == (counts["relayed"] + counts["decimated"] + counts["repeated"] +
                                  counts["held"] + rest), counts  # fmt: skip
    assert counts["held"] == 0
    return report


def feed_of(place, name="hub"):
    return f"ipc://{place.runtime}/echelle/{name}/feed"


def finish(hub, code=0):
    finished = hub.finish()
    assert finished.code == code, finished.err
    return finished


def key_of(packet):
    return struct.unpack_from(">I", packet, 8)[0], sequence_of(packet)


def wait_for_subscribers(place, count, name="hub"):
    """Until so many subscribers, this one beside them, are counted at the hub."""
    with echelle.subscribe(feed_of(place, name), channels=[], topics=["stat/relay"]) as news:
        while True:
            message = news.receive(PATIENCE_S)
            if message.topic == "stat/relay" and message.content["feed"]["subscribers"] > count:
                return


def run_behind_hub(place, hub, made, *arguments):
    """A whole run, recorded, that the hub reads from its beginning; what `made` received of it, by
    topic. The hub and its subscriber are there first."""
    recording = place.output / "spectra"
    wait_for_subscribers(place, 1)
    place.run(*CALM_ARGUMENTS, *arguments, "--record", recording)
    messages = receive_until(made, b"event/end")
    made.close()
    finish(hub)
    packets = {key_of(packet): packet for packet in records(recording.read_bytes())}
    return packets, messages


def test_what_passes_is_the_same_bytes(place):
    hub = start_hub(place, "--until-end", "--topic", "psd/", "--topic", "psd8/", "--topic", "event/",
                    "--topic", "stat/")  # fmt: skip
    made = subscriber(feed_of(place), "hello/", "psd", "event/", "stat/")
    recorded, messages = run_behind_hub(
        place, hub, made, "--source", CALM + "&drop-every=60", "--duration", 2)
    by_topic = {}
    for topic, payload in messages:
        by_topic.setdefault(topic.decode(), []).append(payload)
    # Late joiners in the middle of a run are the feed's matter: from the first one on, all are there.
    psd = [p for topic, packets in by_topic.items() if topic.startswith("psd/") for p in packets]
    assert len(psd) > 200
    for packet in psd:
        assert packet == recorded[key_of(packet)]
    first = min(sequence for _, sequence in map(key_of, psd))
    assert sorted(map(key_of, psd)) == sorted(key for key in recorded if key[1] >= first)
    coded = [p for topic, packets in by_topic.items() if topic.startswith("psd8/") for p in packets]
    assert len(coded) == len(psd) and len(coded[0]) == 36 + 129 + 112
    (hello,) = map(json.loads, by_topic["hello/"])
    (relay,) = hello["relays"]
    assert (relay["relay"], relay["pid"], relay["rate_hz"]) == ("hub", hub.pid, None)
    assert hello["channels"] == 4 and hello["instance"] == "echelle" and "ring_socket" not in hello
    assert json.loads(by_topic["event/gap"][0])["spectra"] > 0
    assert json.loads(by_topic["stat/"][-1])["frames"]["in"] > 0
    states = [json.loads(text)["state"] for text in by_topic["event/relay"]]
    assert states[0] == "connected"
    own = [json.loads(text) for text in by_topic["stat/relay"]]
    assert own[-1]["messages"]["relayed"] >= own[0]["messages"]["relayed"]
    report = books(place)
    assert report["messages"]["decimated"] == 0 and report["messages"]["invalid"] == {}
    assert report["messages"]["dropped"] == {} and report["upstream"]["missed"] == 0
    assert report["messages"]["relayed"] >= len(psd) + len(coded)
    assert report["feed"]["queue_full"] == report["feed"]["refused"] == 0


def test_the_latest_of_each_topic(place):
    hub = start_hub(place, "--until-end", "--rate", 10)
    made = subscriber(feed_of(place), "hello/", "psd/", "event/end")
    recorded, messages = run_behind_hub(place, hub, made, "--source", CALM, "--duration", 1.2)
    packets = [payload for topic, payload in messages if topic.startswith(b"psd/")]
    for packet in packets:
        assert packet == recorded[key_of(packet)]
    for channel in range(4):
        sequences = [s for c, s in map(key_of, packets) if c == channel]
        # Ten a second, the first and the last one; a busy machine may stretch the time.
        assert 7 <= len(sequences) <= 40 and sequences == sorted(set(sequences))
        assert sequences[-1] == max(s for c, s in recorded if c == channel)
    counts = books(place)["messages"]
    assert counts["decimated"] > 200 and counts["dropped"] == counts["invalid"] == {}


def expected_average(packets, mode):
    """What numpy makes of spectra that follow each other."""
    weights = numpy.array([p.segments_averaged for p in packets], float)
    values = numpy.array([p.values() for p in packets], float)
    averaged = values.max(axis=0) if mode == "max" else numpy.average(values, 0, weights)
    mean = numpy.average([p.mean for p in packets], weights=weights)
    rms = numpy.sqrt(numpy.average(numpy.square([p.rms for p in packets], dtype=float),
                                   weights=weights))  # fmt: skip
    return averaged, mean, rms


@pytest.mark.parametrize("mode, coding", [("mean", "float32"), ("max", "float16")])
def test_averages_are_numpy_s_weighted_mean(place, mode, coding):
    topic = {"float32": "psd/", "float16": "psd16/"}[coding]
    hub = start_hub(place, "--until-end", "--rate", 8, "--decimate", "average", "--topic", topic)
    made = subscriber(feed_of(place), "hello/", topic, "event/end")
    # Lost frames: spectra of fewer segments, which count for less.
    recorded, messages = run_behind_hub(place, hub, made, "--source", CALM + "&drop-every=7",
                                        "--average-mode", mode, "--duration", 1)  # fmt: skip
    whole = {key: echelle.decode_packet(packet) for key, packet in recorded.items()}
    assert len({p.segments_averaged for p in whole.values()}) > 1
    decode = echelle.decode_packet if coding == "float32" else echelle.decode_coded_packet
    averages = [decode(payload) for name, payload in messages if name.startswith(b"psd")]
    merged = 0
    for channel in range(4):
        mine = [p for p in averages if p.channel_id == channel]
        assert [p.sequence for p in mine] == list(range(len(mine))) and len(mine) >= 3
        rest = [p for (c, _), p in sorted(whole.items())
                if c == channel and p.first_sample >= mine[0].first_sample]  # fmt: skip
        for packet in mine:
            parts = []
            while sum(p.segments_averaged for p in parts) < packet.segments_averaged:
                parts.append(rest.pop(0))
            merged += len(parts)
            values, mean, rms = expected_average(parts, mode)
            allowed = 1e-6 if coding == "float32" else 2e-3
            assert packet.values() == pytest.approx(values, rel=allowed, abs=0)
            assert packet.mean == pytest.approx(mean, rel=1e-5, abs=1e-6)
            assert packet.rms == pytest.approx(rms, rel=1e-6)
            assert packet.segments_averaged == sum(p.segments_averaged for p in parts)
            assert packet.segments_expected == sum(p.segments_expected for p in parts)
            assert packet.over_range_count == sum(p.over_range_count for p in parts)
            for name in ("first_sample", "timestamp_ns", "rate", "nperseg", "noverlap", "window",
                         "scaling", "detrend", "average", "first_bin_hz", "bin_spacing_hz"):  # fmt: skip
                assert getattr(packet, name) == getattr(parts[0], name), name
            assert packet.timestamp_us == parts[0].timestamp_us
            flags = echelle.PacketFlag(0)
            for part in parts:
                flags |= part.flags
            assert packet.flags == flags
        assert rest == []  # every spectrum of the run is in exactly one average
    counts = books(place)["messages"]
    assert counts["decimated"] == merged - len(averages) > 200
    assert counts["dropped"] == counts["invalid"] == {}


class PlayedFeed:
    """A publisher that says what a test wants, once a hub has subscribed."""

    def __init__(self, place):
        self.endpoint = f"ipc://{place.path}/played"
        self.socket = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.set(zmq.LINGER, 1000)
        self.socket.set(zmq.RCVTIMEO, PATIENCE_S * 1000)
        self.socket.bind(self.endpoint)

    def play(self, *messages, topic=b"stat/"):
        while self.socket.recv() != b"\x01" + topic:
            pass
        for message in messages:
            self.socket.send_multipart(message)


def resealed(packet, sequence, **fields):
    """A 1.1 packet with other numbers in its trailer (docs/packet.md)."""
    packet = bytearray(packet)
    at = len(packet) - 112
    struct.pack_into(">Q", packet, at + 8, sequence)
    if "nperseg" in fields:
        struct.pack_into(">I", packet, at + 64, fields["nperseg"])
    struct.pack_into(">I", packet, len(packet) - 4, zlib.crc32(packet[at:-4]))
    return bytes(packet)


def test_a_publisher_of_rubbish(place):
    feed = PlayedFeed(place)
    hub = start_hub(place, *[word for t in ("psd/", "psd16/", "psd8/", "event/", "stat/")
                             for word in ("--topic", t)], "--until-end",
                    source=feed.endpoint)  # fmt: skip
    made = subscriber(feed_of(place), "")
    wait_for_subscribers(place, 1)
    good = (GOLDEN / "packets/v1_1_real.bin").read_bytes()  # of channel 3
    half = (GOLDEN / "packets_2/float16_real.bin").read_bytes()  # of channel 3
    expected = {}
    messages = []

    def bad(cause, *parts):
        expected[cause] = expected.get(cause, 0) + 1
        messages.append(list(parts))

    def number(payload):
        return b"%05d" % (struct.unpack_from(">I", payload, 8)[0] if len(payload) > 11 else 0)

    for folder, topics in [("packets", [b"psd/"]), ("packets_2", [b"psd16/", b"psd8/"])]:
        for entry in json.loads((GOLDEN / folder / "index.json").read_text())["packets"]:
            payload = (GOLDEN / folder / entry["file"]).read_bytes()
            if entry["error"] != "none":
                for topic in topics:
                    bad(entry["error"], topic + number(payload), payload)
            elif "trailer" not in entry:
                bad("no_trailer", topics[0] + number(payload), payload)
    bad("topic", b"psd/00004", good)  # another channel's
    bad("topic", b"psd/3", good)
    bad("topic", b"psd/000003", good)
    bad("topic", b"psd8/00003", half)  # another coding's
    bad("unknown_major", b"psd/00003", half)
    bad("parts", b"psd/00003")
    bad("parts", b"psd/00003", good, b"more")
    bad("parts", b"psd/00003", *[good] * 40)
    bad("too_short", b"psd/00003", b"")
    for text in (b"", b"rubbish", b"[1]", b"{", b"\xff\xfe", b"{} {}", b"{\"x\": \"" + b"y" * (2 << 20)
                 + b"\"}", b"[" * 100_000, b"{\"x\": " + b"[" * 200_000 + b"]" * 200_000 + b"}"):  # fmt: skip
        bad("text", b"event/gap", text)
        bad("text", b"stat/", text)
        bad("text", b"hello/", text)
    bad("text", b"hello/", json.dumps({"relays": [{}] * 16}).encode())
    # Hellos that are objects, but of another mind.
    passed = [[b"hello/", b'{"relays": 7}'], [b"psd/00003", good], [b"psd16/00003", half],
              [b"event/new", b'{"a": 1}'], [b"event/end", b"{}"]]  # fmt: skip
    feed.play(*messages, *passed)
    seen = [(t, p) for t, p in receive_until(made, b"event/end") if b"relay" not in t]
    assert [t for t, _ in seen] == [b"hello/", b"psd/00003", b"psd16/00003", b"event/new",
                                    b"event/end"]  # fmt: skip
    assert len(json.loads(seen[0][1])["relays"]) == 1
    assert (seen[1][1], seen[2][1]) == (good, half)
    finish(hub)
    counts = books(place)["messages"]
    assert counts["invalid"] == expected
    assert counts["relayed"] == len(passed)
    made.close()
    feed.socket.close()


def test_spectra_that_cannot_be_averaged(place):
    feed = PlayedFeed(place)
    hub = start_hub(place, "--until-end", "--rate", 1e-6, "--decimate", "average", source=feed.endpoint)
    made = subscriber(feed_of(place), "")
    wait_for_subscribers(place, 1)
    packet = (GOLDEN / "packets/v1_1_real.bin").read_bytes()
    topic = b"psd/00003"
    feed.play([topic, resealed(packet, 5)], [topic, resealed(packet, 6)],
              [topic, resealed(packet, 7, nperseg=16)],  # two of them are given up
              [topic, resealed(packet, 3, nperseg=16)],  # an earlier one: another run
              [topic, resealed(packet, 4, nperseg=16)], [topic, resealed(packet, 8, nperseg=16)],
              [b"event/end", b"{}"])  # fmt: skip
    (average,) = [echelle.decode_packet(p) for t, p in receive_until(made, b"event/end") if t == topic]
    finish(hub)
    counts = books(place)
    assert counts["messages"]["dropped"] == {"changed": 3} and counts["messages"]["decimated"] == 2
    assert counts["upstream"]["missed"] == 3  # 5, 6 and 7 between 4 and 8
    assert average.values() == pytest.approx(echelle.decode_packet(packet).values())
    # The golden packet averages 8192 segments; those that were missed are expected too.
    assert (average.segments_averaged, average.segments_expected) == (3 * 8192, 6 * 8192)
    assert average.flags & echelle.PacketFlag.gap_before
    assert average.flags & echelle.PacketFlag.incomplete
    assert average.over_range_count == 3 * 3 and average.sequence == 0
    made.close()
    feed.socket.close()


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1])


def test_a_subscriber_that_never_reads(place):
    """It costs a bounded queue: not the hub, nor the others, nor the coordinator."""
    hub = start_hub(place, "--until-end", "--queue", 200)
    never = zmtp.Subscriber(zmtp.connect(place.runtime / "echelle/hub/feed"))
    never.send(b"\x01psd/")
    reader = echelle.subscribe(feed_of(place), channels=[5], timeout=PATIENCE_S)
    wait_for_subscribers(place, 2)
    report = place.output / "report.json"
    run = place.coordinator(*BUSY_ARGUMENTS, "--duration", 1.5, "--report", report)
    assert wait_until(lambda: place.status() and place.status()["frames"]["done"] > 30)
    time.sleep(0.4)
    early = resident_kib(hub.pid)
    got = [packet.sequence for packet in reader]
    assert resident_kib(hub.pid) - early < 8192 if not hub.has_ended() else True
    assert run.finish().code == 0
    figures = json.loads(report.read_text())
    check_books(figures)
    assert figures["frames"]["dropped"] == {}
    finish(hub)
    counts = books(place)
    assert counts["feed"]["queue_full"] >= 1
    # The reader's own channel is 1 of 64: it came through whole, but for what the hub missed.
    assert len(got) + counts["upstream"]["missed"] >= 200 and reader.missed <= counts["upstream"]["missed"]
    reader.close()
    never.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_keys_on_both_sides(place):
    first, second = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    out = place.output
    for name in ("feed", "hub", "friend", "stranger"):
        assert place.control("keys", out / name).code == 0
    run = place.coordinator("--source", CALM, *CALM_ARGUMENTS, "--feed", first, "--feed-key",
                            out / "feed.key", "--feed-allow", out / "hub.pub")  # fmt: skip
    place.running_status()

    def start(name, key):
        return start_hub(place, "--from-server", out / "feed.pub", "--from-key", out / key, "--to",
                         second, "--to-key", out / "hub.key", "--to-allow", out / "friend.pub",
                         name=name, source=first)  # fmt: skip

    refused = start("refused", "stranger.key")
    time.sleep(0.5)
    refused.send(signal.SIGTERM)
    assert "refuses this hub" in finish(refused).err
    assert books(place, "refused")["upstream"]["refused"] > 0
    hub = start("hub", "hub.key")
    server = echelle.read_keys(out / "hub.pub")[0]

    def comes(name, timeout):
        with echelle.subscribe(second, timeout=timeout, server_key=server,
                               key_pair=echelle.read_keys(out / f"{name}.key")) as feed:  # fmt: skip
            try:
                return next(feed).fft_size == 129
            except echelle.FeedTimeout:
                return False

    assert comes("friend", PATIENCE_S)
    assert not comes("stranger", 0.5)
    hub.send(signal.SIGINT)
    finish(hub)
    assert books(place)["feed"]["refused"] > 0
    assert place.control("stop").code == 0
    assert run.finish().code == 0


def test_the_coordinator_dies_and_comes_back(place):
    hub = start_hub(place)
    news = subscriber(feed_of(place), "event/relay")
    states = []

    def see(state):
        while state not in states:
            states.append(json.loads(news.recv_multipart()[1])["state"])
        states.clear()

    for again in range(2):
        run = place.coordinator("--source", CALM, *CALM_ARGUMENTS)
        see("connected")
        with echelle.subscribe(feed_of(place), timeout=PATIENCE_S) as feed:
            packets = [next(feed) for _ in range(100)]
            assert again == 0 or packets[0].sequence < 200  # the new run's
            if again:
                assert place.control("stop").code == 0
            else:
                run.send(signal.SIGKILL)
            finished = run.finish()
            assert finished.code == (0 if again else -signal.SIGKILL)
            for _ in feed:
                pass  # it ends with the run, however that ended
            assert feed.ended and feed.hello["pid"] == run.pid and feed.missed == 0
        see("lost")
    late = subscriber(feed_of(place), "hello/")
    assert json.loads(late.recv_multipart()[1])["pid"] == run.pid  # what was read last
    hub.send(signal.SIGTERM)
    finished = finish(hub)
    assert "lost" in finished.err
    assert books(place)["upstream"]["lost"] == 2
    for made in (news, late):
        made.close()


def test_hubs_behind_hubs(place):
    start_hub(place, "--until-end", name="first")
    second = start_hub(place, "--until-end", name="second", source="first")
    made = subscriber(feed_of(place, "second"), "hello/", "psd/", "event/end")
    wait_for_subscribers(place, 1, "second")
    place.run("--source", CALM, *CALM_ARGUMENTS, "--duration", 0.5)
    messages = receive_until(made, b"event/end")
    relays = json.loads(messages[0][1])["relays"]
    assert [relay["relay"] for relay in relays] == ["first", "second"]
    assert len(messages) > 50
    made.close()
    for hub in place.started:
        if hub.process.args[0] == str(HUB):
            finish(hub)
    # A ring of hubs has no coordinator in it, and would turn what they say of themselves for ever.
    one = start_hub(place, name="one", source=feed_of(place, "two"))
    two = start_hub(place, name="two", source=feed_of(place, "one"))
    assert wait_until(lambda: one.has_ended() or two.has_ended())
    ended, other = (one, two) if one.has_ended() else (two, one)
    assert "leads back to this hub" in finish(ended, 1).err
    other.send(signal.SIGTERM)
    other.finish()
    assert second.has_ended()


def test_what_is_refused(place):
    hub = start_hub(place)
    key = place.output / "k"
    assert place.control("keys", key).code == 0
    for arguments, words in [
        ("--name x --from x", ["cannot read itself"]),
        ("--name x --to tcp://127.0.0.1:5599 --from tcp://127.0.0.1:5599", ["cannot read itself"]),
        ("--name x --from inproc://y", ["inproc", "ipc:///PATH"]),
        ("--name x --from tcp://nowhere", ["cannot be used"]),
        ("--name x --to tcp://*:5570", ["keys", "--to-allow"]),
        ("--name x --to rubbish", ["--to 'rubbish'", "tcp://ADDRESS:PORT"]),
        ("--name x --to tcp://*:5570 --to-key /none", ["--to-allow"]),
        ("--name x --to tcp://*:5570 --to-key /none --to-allow /none", ["/none"]),
        (f"--name x --from-key {key}.key", ["--from-server"]),
        (f"--name x --from-key {key}.key --from-server {key}.key", ["secret"]),
        (f"--name x --from-key {key}.pub --from-server {key}.pub", ["secret"]),
        ("--name x --topic ring/", ["ring/", "psd/"]),
        ("--name x --topic psd/ --topic psd", ["'psd'", "psd16/"]),
        ("--name x --decimate average", ["--rate"]),
        ("--name x --rate 0", ["--rate"]),
        ("--name x --rate -3", ["--rate"]),
        ("--name x --rate 5 --decimate best", ["--decimate"]),
        ("--name x --queue 0", ["--queue"]),
        ("--name a/b", ["a/b"]),
        ("--rubbish", ["--rubbish"]),
    ]:
        finished = place.start(HUB, *arguments.split()).finish()
        assert finished.code == 2, (arguments, finished.err)
        assert len(finished.error_lines) == 1, finished.err
        for word in words:
            assert word in finished.err, finished.err
    assert not hub.has_ended()
    with pytest.raises(echelle.FeedError):
        echelle.open_ring(feed_of(place))  # no coordinator yet: nothing says what it is
    hub.send(signal.SIGTERM)
    finish(hub)
    bad = place.start(HUB, "--name", "x", "--report", "/nowhere/report.json")
    assert wait_until((place.runtime / "echelle/x/feed").exists)
    bad.send(signal.SIGTERM)
    assert "/nowhere/report.json" in finish(bad, 1).err


def test_help_says_what_there_is(place):
    finished = place.start(HUB, "--help").finish()
    assert finished.code == 0 and "--decimate" in finished.out and finished.err == ""
