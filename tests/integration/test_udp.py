"""Datagrams of samples: from capture files, over loopback, and between network namespaces."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time

import numpy as np
import pytest
from cluster import SIMULATOR, check_books, wait_until
from packets import (
    Receiver,
    free_port,
    raw,
    send,
    simulate,
    spead,
    vita49,
    write_pcap,
    write_pcapng,
)
from recordings import (
    check_against_scipy,
    errors,
    settings_for,
    spectra_of,
    welch_of_stretches,
)
from signals import as_signal, make_samples

from echelle import PacketFlag, read_recording

RATE = 48000
PER_PACKET = 100
QUICK = ["--nperseg", 256]
SEQUENCES = {"<I": "u32le@0", ">I": "u32be@0", "<Q": "u64le@0", ">H": "u16be@0"}


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("packets against scipy.signal.welch"))


def datagrams_of(framing, samples):
    """The datagrams, and the keys that describe them."""
    channels, _, parts = samples.shape
    keys = f"channels={channels}&rate={RATE}&format={'ci16' if parts == 2 else 'i16'}"
    if framing == "vita49":
        return vita49(samples, PER_PACKET, RATE), f"framing=vita49&{keys}"
    if framing == "spead":
        return spead(samples, PER_PACKET, 7), f"framing=spead&{keys}"
    return raw(samples, PER_PACKET), f"framing=raw&sequence=u32le&{keys}"


# 7 heaps of 7 packets of 100 samples each.
FRAMINGS = [("vita49", 2, True), ("vita49", 6, False), ("spead", 2, False), ("raw", 3, True)]


@pytest.mark.parametrize("framing, channels, is_complex", FRAMINGS)
def test_a_capture_gives_what_scipy_gives(place, framing, channels, is_complex):
    samples = make_samples(channels, 4900, is_complex)
    datagrams, keys = datagrams_of(framing, samples)
    path = write_pcap(place.output / "a.pcap", datagrams)
    keys = keys.partition("&")[2] if framing != "raw" else keys  # the others are told by content
    report, packets = spectra_of(place, f"{path}?{keys}", *QUICK)
    check_books(report)
    check_against_scipy(packets, as_signal(samples), settings_for(RATE))
    assert report["source"]["packets"]["delivered"] == 49
    assert report["source"]["samples"]["received"] == 4900
    # SPEAD's first datagram, a millisecond before the second, holds no samples.
    assert packets[0].trailer.timestamp_ns == 1577836800 * 10**9 + (framing == "spead") * 10**6
    assert not packets[0].flags & PacketFlag.gap_before


@pytest.mark.parametrize("framing", ["vita49", "spead", "raw"])
def test_missing_packets_are_gaps_and_never_averaged(place, framing):
    """Packets 11, 12 and 30 are missing, one comes twice, two change places."""
    samples = make_samples(2, 4900, False)
    datagrams, keys = datagrams_of(framing, samples)
    extra = len(datagrams) - 49  # SPEAD's descriptor
    lost = [11, 12, 30]
    order = [number for number in range(49) if number not in lost]
    order[20], order[21] = order[21], order[20]
    order.insert(35, order[34])
    sent = datagrams[:extra] + [datagrams[extra + number] for number in order]
    report, packets = spectra_of(place, f"{write_pcap(place.output / 'a', sent)}?{keys}", *QUICK)
    counts = report["source"]["packets"]
    assert (counts["lost"], counts["reordered"], counts["duplicates"]) == (3, 1, 1)
    assert report["source"]["samples"]["missing"]["lost_packets"] == 300
    assert report["source"]["samples"]["gaps"] == 2
    signal = as_signal(samples)
    stretches = [signal[:, :1100], signal[:, 1300:3000], signal[:, 3100:]]
    axis, expected, segments = welch_of_stretches(stretches, settings_for(RATE), False)
    for packet, spectrum in zip(packets, expected):
        assert packet.segments_averaged == segments
        errors.check(packet.values(), spectrum, expected.max(), segments)


STREAMS = {0x11: slice(0, 2), 7: slice(2, 4), 0x20: slice(4, 6)}


def joined_streams(samples):
    """{stream id: datagrams}: two channels each; and the keys that describe them."""
    keys = f"framing=vita49&streams=0x11,7,32&channels=6&rate={RATE}&format=ci16"
    return {
        stream: vita49(samples[channels], PER_PACKET, RATE, stream=stream)
        for stream, channels in STREAMS.items()
    }, keys


def test_vita49_streams_are_joined_by_their_time(place):
    """What is missing in one is missing in all, and counted for it alone; order does not matter."""
    samples = make_samples(6, 4900, True)
    streams, keys = joined_streams(samples)
    sent = [
        datagram
        for number in range(49)
        for stream in (7, 0x20, 0x11)  # each lags behind by another number of packets
        if (late := number - {7: 0, 0x20: 3, 0x11: 1}[stream]) >= 0
        and (stream, late) not in ((7, 11), (0x11, 30))
        for datagram in [streams[stream][late]] * (2 if (stream, late) == (7, 20) else 1)
    ]
    sent += [streams[0x20][46], streams[0x20][47], streams[0x11][48], streams[0x20][48]]
    report, packets = spectra_of(place, f"{write_pcap(place.output / 'a', sent)}?{keys}", *QUICK)
    check_books(report)
    facts = report["source"]
    assert facts["packets"]["delivered"] == 47 and facts["packets"]["lost"] == 2
    assert facts["samples"]["missing"]["lost_packets"] == 200 and facts["samples"]["gaps"] == 2
    counts = {stream.pop("id"): stream for stream in facts["streams"]}
    alone = {"received": 49, "joined": 47, "duplicates": 0, "late": 0, "alone": 2, "absent": 0}
    assert counts == {
        0x11: {**alone, "received": 48, "alone": 1, "absent": 1},
        7: {**alone, "received": 49, "duplicates": 1, "alone": 1, "absent": 1},
        0x20: alone,
    }
    assert facts["datagrams"]["received"] == 48 + 49 + 49
    signal = as_signal(samples)
    stretches = [signal[:, :1100], signal[:, 1200:3000], signal[:, 3100:]]
    _, expected, segments = welch_of_stretches(stretches, settings_for(RATE), True)
    for packet, spectrum in zip(packets, expected, strict=True):
        assert packet.segments_averaged == segments
        errors.check(packet.values(), spectrum, expected.max(), segments)


def test_a_stream_that_never_comes_is_told(place):
    streams, keys = joined_streams(make_samples(6, 19_600, True))
    datagrams = [packet for pair in zip(streams[0x11], streams[7]) for packet in pair]
    path = write_pcap(place.output / "a.pcap", datagrams)
    finished = place.run("--source", f"{path}?{keys}", *QUICK, code=1)
    assert len(finished.error_lines) == 1 and "stream 0x20 has come" in finished.err
    receiver = Receiver(place, "127.0.0.1", free_port(), keys + "&reorder=8", *QUICK)
    send(datagrams, receiver.port)
    receiver.wait_for(len(datagrams))
    report, finished = receiver.stop()
    check_books(report)
    assert report["frames"]["in"] == 0
    assert len(finished.error_lines) == 1 and "stream 0x20 has come" in finished.err


def test_vita49_streams_over_loopback(place):
    samples = make_samples(6, 9800, True)
    streams, keys = joined_streams(samples)
    recording = place.output / "spectra"
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, "--record", recording,
                        "--average", "all", *QUICK)
    datagrams = [packet for together in zip(*streams.values()) for packet in together]
    send(datagrams, receiver.port)
    receiver.wait_for(len(datagrams))
    report, _ = receiver.stop()
    check_books(report)
    assert report["source"]["packets"]["delivered"] == 98 and report["source"]["time"] == "arrival"
    check_against_scipy(list(read_recording(recording)), as_signal(samples), settings_for(RATE))


def test_a_pcapng_capture_gives_what_scipy_gives(place):
    """Two interfaces of different clocks and links; IPv6 with a VLAN tag; other traffic between."""
    samples = make_samples(2, 4900, False)
    datagrams, keys = datagrams_of("vita49", samples)
    path = write_pcapng(place.output / "a.pcapng", datagrams)
    report, packets = spectra_of(place, f"{path}?{keys.partition('&')[2]}", *QUICK)
    check_books(report)
    check_against_scipy(packets, as_signal(samples), settings_for(RATE))
    assert report["source"]["packets"]["delivered"] == 49
    assert report["source"]["capture"] == {"not_udp": 1, "other_port": 1}
    assert packets[0].trailer.timestamp_ns == 1577836800 * 10**9


@pytest.mark.parametrize("keys, part", [("start=1000&count=2000", (1000, 3000)),
                                        ("start=0.05s", (2400, 4900)), ("count=777", (0, 777))])
def test_a_part_of_a_capture(place, keys, part):
    """To the sample, packets being cut where need be; index and time stay the capture's."""
    samples = make_samples(2, 4900, False)
    datagrams, own = datagrams_of("raw", samples)
    path = write_pcap(place.output / "a.pcap", datagrams)
    report, packets = spectra_of(place, f"pcap:{path}?{own}&{keys}", *QUICK)
    check_books(report)
    check_against_scipy(packets, as_signal(samples[:, slice(*part)]), settings_for(RATE))
    assert packets[0].trailer.first_sample == part[0]
    assert not packets[0].flags & (PacketFlag.gap_before | PacketFlag.incomplete)


def test_a_capture_in_real_time(place):
    samples = make_samples(1, 48_000, False)
    datagrams, keys = datagrams_of("raw", samples)
    path = write_pcap(place.output / "a.pcap", datagrams)
    report, packets = spectra_of(place, f"pcap:{path}?{keys}&pace=2x", *QUICK)
    assert 0.4 < report["wall_s"] < 1.5  # a second of samples
    assert report["source"]["replay"]["speed"] == 2
    assert "2 x real time" in report["config"]["source_description"]
    check_against_scipy(packets, as_signal(samples), settings_for(RATE))


@pytest.mark.parametrize("keys, code, words", [("loop=yes", 2, ["loop", "--capture"]),
                                               ("start=5000", 1, ["start 5000", "smaller"])])
def test_parts_of_a_capture_that_are_not_there(place, keys, code, words):
    datagrams, own = datagrams_of("raw", make_samples(1, 4900, False))
    path = write_pcap(place.output / "a.pcap", datagrams)
    finished = place.run("--source", f"pcap:{path}?{own}&{keys}", code=code)
    assert len(finished.error_lines) == 1 and all(word in finished.err for word in words)


@pytest.mark.parametrize("average", [1, 2, "all"])
def test_a_frame_cut_short_by_a_hole_makes_its_spectrum_incomplete(place, average):
    """Packet 20, of 100 samples, is missing: the second frame of 1024 ends after 976 of them."""
    samples = make_samples(1, 8192 + 100, False)
    datagrams, keys = datagrams_of("raw", samples)
    path = write_pcap(place.output / "a.pcap", datagrams[:20] + datagrams[21:])
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", f"pcap:{path}?{keys}&samples=1024", "--average", average],
        *["--record", recording, *QUICK],
    )
    packets = list(read_recording(recording))
    incomplete = [bool(packet.flags & PacketFlag.incomplete) for packet in packets]
    cut = {1: 1, 2: 0, "all": 0}[average]
    assert incomplete == [number == cut for number in range(len(packets))]
    # 976 samples in the first stretch's second frame: segments that end at 1024 + 127, 255 ...
    whole = {1: 8, 2: 15, "all": None}[average]
    if whole:
        assert packets[cut].segments_expected == whole
        assert packets[cut].segments_averaged == whole - 1
    assert report["spectra"]["incomplete"] == 1
    partial = [bool(packet.flags & PacketFlag.partial) for packet in packets]
    assert partial == [average != "all" and number == len(packets) - 1
                       for number in range(len(packets))]


@pytest.mark.parametrize("source", ["udp", "fifo"])
def test_duration_ends_a_run_in_which_no_frame_ever_comes(place, source):
    """... and says that none came."""
    uri = f"udp:127.0.0.1:{free_port()}?framing=raw&sequence=u32be&rate=1e6"
    if source == "fifo":
        os.mkfifo(place.output / "fifo")
        uri = f"xdma:{place.output}/fifo?header=none&channels=1&rate=1e6"
    begun = time.monotonic()
    run = place.coordinator("--source", uri, "--workers", 1, "--duration", 0.5,
                            "--report", place.output / "report.json")
    finished = run.finish(20)
    assert finished.code == 0 and time.monotonic() - begun < 10, finished.err
    assert len(finished.error_lines) == 1 and "no frame came" in finished.err
    report = json.loads((place.output / "report.json").read_text())
    check_books(report)
    assert report["frames"]["in"] == 0


@pytest.mark.parametrize("framing, channels, is_complex", FRAMINGS)
def test_loopback_gives_what_scipy_gives(place, framing, channels, is_complex):
    samples = make_samples(channels, 19_600, is_complex)
    datagrams, keys = datagrams_of(framing, samples)
    recording = place.output / "spectra"
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, "--record", recording,
                        "--average", "all", *QUICK)
    send(datagrams, receiver.port)
    receiver.wait_for(len(datagrams))
    report, _ = receiver.stop()
    check_books(report)
    facts = report["source"]
    assert facts["packets"]["delivered"] == 196 and facts["packets"]["lost"] == 0
    assert facts["receive_queue"]["overflow"] == 0 and facts["datagrams"]["malformed"] == {}
    assert facts["datagrams"]["passed_over"] == ({"not_samples": 1} if framing == "spead" else {})
    check_against_scipy(list(read_recording(recording)), as_signal(samples), settings_for(RATE))


@pytest.mark.parametrize("framing", ["vita49", "spead", "raw"])
def test_every_lost_packet_is_counted_once_and_no_reordered_one_as_lost(place, framing):
    """1 % lost, 1 % reordered, 1 % twice, with jitter: the counts are the sender's own."""
    keys = f"framing={framing}&channels=2&rate=1e6"
    keys += "&sequence=u32be" if framing == "raw" else ""
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, *QUICK)
    target = f"udp://127.0.0.1:{receiver.port}?framing={framing}&mtu=1500"
    target += "&loss=0.01&reorder=0.01&duplicates=0.01&jitter-us=500"
    target += "&sequence=u32be&endian=little" if framing == "raw" else ""
    sent = simulate(place, target, "--channels", 2, "--rate", 1e6, "--duration", 1.6)
    assert sent["refused"] == 0 and min(sent[key] for key in ("lost", "reordered", "duplicated")) > 10
    receiver.wait_for(sent["sent"])
    report, _ = receiver.stop()
    check_books(report)
    facts = report["source"]
    packets, samples = facts["packets"], facts["samples"]
    assert facts["datagrams"]["received"] == sent["sent"]
    assert packets["delivered"] == sent["packets"] - sent["lost"]
    assert packets["lost"] == sent["lost"]
    assert packets["reordered"] == sent["reordered"]
    assert packets["duplicates"] == sent["duplicated"]
    assert packets["late"] == packets["strays"] == packets["restarts"] == packets["held"] == 0
    assert samples["received"] == sent["samples"] - sent["samples_lost"]
    assert samples["missing"] == {
        "lost_packets": sent["samples_lost"], "sender_clock": 0, "marked": 0, "unknown": 0
    }
    assert report["frames"]["in"] - report["frames"]["dropped"].get("lost_by_source", 0) == (
        facts["frames"]["written"]
    )


def test_a_sender_that_starts_again_is_one_gap(place):
    keys = "framing=raw&channels=2&rate=1e6&sequence=u64be"
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, *QUICK)
    target = f"udp://127.0.0.1:{receiver.port}?framing=raw&restart-after=2000"
    sent = simulate(place, target, "--channels", 2, "--rate", 1e6, "--duration", 1)
    receiver.wait_for(sent["sent"])
    report, _ = receiver.stop()
    packets = report["source"]["packets"]
    assert packets["delivered"] == sent["packets"] and packets["restarts"] == 1
    assert packets["lost"] == packets["strays"] == 0
    assert report["source"]["samples"]["gaps"] == 1


def test_a_sequence_in_the_other_byte_order_is_refused_as_implausible(place):
    """gr-grnet issue 6: nothing of it is used, the words say why, and the run goes on."""
    samples = make_samples(1, 5000, False)
    keys = f"framing=raw&sequence=u32be&rate={RATE}"
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, *QUICK)
    send(raw(samples, PER_PACKET, "<I"), receiver.port)
    receiver.wait_for(50)
    report, finished = receiver.stop()
    assert report["source"]["packets"]["strays"] == 50
    assert report["frames"]["in"] == 0
    assert len(finished.error_lines) == 1
    assert "implausible" in finished.err and "sequence=u32le@0" in finished.err
    assert finished.err.strip().endswith(report["source"]["remarks"][0])


def test_what_overflows_the_receive_queue_is_lost_once(place):
    """The coordinator is stopped for a while, with a queue that is too short for that."""
    keys = "framing=raw&channels=2&rate=1e6&sequence=u64be&buffer=100000"
    receiver = Receiver(place, "127.0.0.1", free_port(), keys, *QUICK)
    target = f"udp://127.0.0.1:{receiver.port}?framing=raw&endian=little"
    sender = place.start(
        *_simulator(target, place), "--channels", 2, "--rate", 1e6, "--duration", 2
    )
    time.sleep(0.7)
    receiver.run.send(signal.SIGSTOP)
    time.sleep(0.5)
    receiver.run.send(signal.SIGCONT)
    assert sender.finish().code == 0
    sent = json.loads((place.output / "sent.json").read_text())
    time.sleep(0.3)
    report, _ = receiver.stop()
    check_books(report)
    facts = report["source"]
    overflow = facts["receive_queue"]["overflow"]
    assert overflow > 100
    assert facts["datagrams"]["received"] + overflow == sent["sent"]
    assert facts["packets"]["lost"] == overflow
    assert facts["samples"]["missing"]["lost_packets"] == overflow * sent["samples_per_packet"]


def _simulator(target, place):
    return (SIMULATOR, "--send", target, "--send-report", place.output / "sent.json",
            "--layout", "sample-major")


def test_a_multicast_group_is_joined(place):
    samples = make_samples(1, 5000, False)
    receiver = Receiver(place, "239.255.49.91", free_port(),
                        f"framing=vita49&rate={RATE}&interface=lo", *QUICK)
    target = f"udp://239.255.49.91:{receiver.port}?interface=lo"
    sent = simulate(place, target, "--channels", 1, "--rate", 1e6, "--duration", 0.5)
    if sent["refused"]:
        assert receiver.stop()
        pytest.skip("this machine's loopback sends no multicast")
    receiver.wait_for(sent["sent"])
    report, _ = receiver.stop()
    assert report["source"]["packets"]["delivered"] == sent["packets"]


def test_an_ipv6_multicast_group_is_joined(place, link):
    """Between two namespaces, since a loopback has no route for it; another group is not heard."""
    receiver_side, sender_side = link
    routes = ["ip", "-n", sender_side, "-6", "route", "show", "table", "local"]
    assert wait_until(lambda: "ff00::/8" in subprocess.run(routes, capture_output=True, text=True,
                                                           timeout=20).stdout)
    receiver = Receiver(place, "[ff05::4991]", 4991, f"framing=vita49&rate={RATE}&interface=v0",
                        *QUICK, prefix=inside(receiver_side))
    arguments = ["--channels", 1, "--rate", 1e6, "--duration", 0.3]
    for group in ("ff05::4992", "ff05::4991"):
        sent = simulate(place, f"udp://[{group}]:4991?interface=v1", *arguments,
                        prefix=inside(sender_side))
        assert sent["refused"] == 0
    receiver.wait_for(sent["sent"])
    report, _ = receiver.stop()
    assert report["source"]["packets"]["delivered"] == sent["packets"]
    assert report["source"]["datagrams"]["received"] == sent["sent"]


@pytest.mark.parametrize("framing", ["vita49", "spead", "raw"])
def test_what_the_sender_sends(place, framing):
    """Taken apart here by the standards: header, numbers, times and samples."""
    stream = ["--channels", 3, "--rate", 200_000, "--frames", 30, "--samples", 256]
    stream += ["--signal", "tone(f=10kHz, a=9000) + noise(50)"]
    raw_file = place.output / "samples.raw"
    written = place.start(SIMULATOR, "--write-raw", raw_file, "--layout", "sample-major",
                          *stream).finish()
    assert written.code == 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        port = receiver.getsockname()[1]
        keys = "&sequence=u16be@2&header=6&sequence-step=10" if framing == "raw" else ""
        before = time.time()
        sent = simulate(place, f"udp://127.0.0.1:{port}?framing={framing}&mtu=1000{keys}", *stream)
        datagrams = [receiver.recv(65536) for _ in range(sent["sent"])]
    assert all(len(datagram) <= 1000 - 28 for datagram in datagrams)
    per_packet, samples = sent["samples_per_packet"], []
    assert len(datagrams) == sent["packets"] == 30 * 256 // per_packet
    for number, datagram in enumerate(datagrams):
        if framing == "vita49":
            header, stream_id, second, count = struct.unpack(">IIIQ", datagram[:20])
            assert header == 0x10500000 | number % 16 << 16 | len(datagram) // 4
            assert stream_id == 1 and before - 1 <= second <= time.time()
            first_second = second if number == 0 else first_second
            assert (second - first_second) * 200_000 + count == number * per_packet
            payload = np.frombuffer(datagram[20:], ">i2")
        elif framing == "spead":
            size = 6 * per_packet
            items = [1 << 63 | 1 << 48 | number // 8 + 1, 1 << 63 | 2 << 48 | 8 * size]
            items += [1 << 63 | 3 << 48 | number % 8 * size, 1 << 63 | 4 << 48 | size, 0x3300 << 48]
            assert datagram[:48] == struct.pack(">BBBBHH5Q", 0x53, 4, 2, 6, 0, 5, *items)
            payload = np.frombuffer(datagram[48:], ">i2")
        else:
            assert datagram[:6] == struct.pack(">HHH", 0, 10 * number, 0)
            payload = np.frombuffer(datagram[6:], "<i2")
        assert payload.size == 3 * per_packet
        samples.append(payload)
    expected = np.fromfile(raw_file, "<i2")
    assert (np.concatenate(samples) == expected[: 3 * per_packet * len(datagrams)]).all()


# ---- between two network namespaces


def run(*command):
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=20)


@pytest.fixture
def link(place):
    """(receiver's namespace, sender's namespace), joined by a veth pair with MTU 9000."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nft"):
        pytest.skip("needs root, ip and nft")
    names = [f"{place.path.name}-{end}" for end in ("rx", "tx")]
    try:
        try:
            for name in names:
                run("ip", "netns", "add", name)
            run("ip", "link", "add", "v0", "netns", names[0], "type", "veth",
                "peer", "v1", "netns", names[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        for index, name in enumerate(names):
            inside = ("ip", "-n", name)
            run(*inside, "addr", "add", f"10.49.0.{index + 1}/24", "dev", f"v{index}")
            # Without looking for others of that address, which takes seconds.
            run(*inside, "addr", "add", f"fd49::{index + 1}/64", "dev", f"v{index}", "nodad")
            run(*inside, "link", "set", f"v{index}", "mtu", 9000, "up")
            run(*inside, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


def inside(name):
    return ("/usr/sbin/ip" if os.path.exists("/usr/sbin/ip") else "ip", "netns", "exec", name)


def test_jumbo_packets_between_namespaces_with_loss(place, link):
    """nftables drops 1 % at random; its own count is what must be reported as lost."""
    receiver_side, sender_side = link
    rules = "table ip t { counter c {} ; chain i { type filter hook input priority 0 ; "
    rules += "udp dport 4991 numgen random mod 100 < 1 counter name c drop ; } ; }"
    run(*inside(receiver_side), "nft", rules)
    receiver = Receiver(place, "10.49.0.1", 4991, "framing=vita49&channels=8&rate=2e6", *QUICK,
                        prefix=inside(receiver_side))
    arguments = [*_simulator("udp://10.49.0.1:4991?framing=vita49&mtu=9000", place)]
    sender = place.start(*inside(sender_side), *arguments, "--channels", 8, "--rate", 2e6,
                         "--duration", 3)
    time.sleep(2)
    assert not sender.has_ended()
    # What is lost at the very end cannot be seen: the link is sound by then.
    run(*inside(receiver_side), "nft", "flush", "chain", "ip", "t", "i")
    assert sender.finish().code == 0
    sent = json.loads((place.output / "sent.json").read_text())
    listing = subprocess.run([*inside(receiver_side), "nft", "-j", "list", "counters"],
                             check=True, capture_output=True, timeout=20)
    dropped = next(
        item["counter"]["packets"] for item in json.loads(listing.stdout)["nftables"]
        if "counter" in item
    )
    assert dropped > 20
    receiver.wait_for(sent["sent"] - dropped)
    report, _ = receiver.stop()
    check_books(report)
    packets = report["source"]["packets"]
    assert packets["lost"] == dropped and packets["reordered"] == packets["duplicates"] == 0
    assert packets["delivered"] == sent["packets"] - dropped
    missing = report["source"]["samples"]["missing"]
    assert missing["lost_packets"] == dropped * sent["samples_per_packet"]
