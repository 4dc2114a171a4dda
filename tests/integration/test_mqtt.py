"""echelle-mqtt with a real broker: what is published, and that numpy finds it in the packets."""

import json
import signal
import time

import numpy
import pytest
import zmq
from cluster import REPOSITORY, wait_until
from mosquitto import Broker, make_certificates
from mqtt_gateway import CALM_ARGUMENTS, GATEWAY, gateway, report_of, sequences_are_whole
from mqtt_wire import Subscriber
from packet_bytes import records

import echelle

def numpy_peaks(frequencies, values, most):
    """Of a spectrum with none at its ends: (bin, interpolated frequency), highest first."""
    inner = values[1:-1]
    bins = 1 + numpy.flatnonzero((inner > values[:-2]) & (inner >= values[2:]))
    found = []
    for peak in bins[numpy.argsort(-values[bins], kind="stable")][:most]:
        # The summit of the parabola that polyfit lays through three logarithms.
        a, b, _ = numpy.polyfit([-1, 0, 1], numpy.log(values[peak - 1 : peak + 2]), 2)
        spacing = frequencies[1] - frequencies[0]
        found.append((peak, frequencies[0] + (peak - b / (2 * a)) * spacing))
    return found


def test_what_is_published_is_what_numpy_finds_in_the_same_packets(place):
    broker = Broker(place)
    witness = Subscriber(broker.port, "lab/lines/#")
    assert witness.subscribed.wait(20)
    recording = place.output / "spectra"
    started = gateway(place, broker.uri, "--qos", 1, "--topic", "lab/lines", "--rate", "all",
                      "--band", "line=1e3..3.2e3", "--band", "rest=3.2e3..5e4", "--peaks", 1,
                      "--spectra", "1.1", "--channels", "0,2-3")  # fmt: skip
    place.run(*CALM_ARGUMENTS, "--duration", 2, "--record", recording)
    finished = started.finish()
    assert finished.code == 0, finished.err
    report = report_of(place)
    assert wait_until(lambda: any(json.loads(m.payload)["status"] == "offline"
                                  for m in witness.of("lab/lines/status")))  # fmt: skip
    witness.stop()
    broker.stop()

    made = {}
    for content in records(recording.read_bytes()):
        packet = echelle.decode_packet(content)
        made[packet.channel_id, packet.trailer.sequence] = content, packet
    data = [m for kind in ("bands", "peaks", "psd") for m in witness.of(f"lab/lines/{kind}/")]
    rest = witness.of("lab/lines/event/")
    figures = [m for m in witness.messages if m.topic == "lab/lines/stat"]
    assert sequences_are_whole(data + rest + figures) == report["messages"]["made"]
    assert report["messages"]["dropped"] == {} and report["messages"]["repeated"] == 0
    checked = {"bands": 0, "peaks": 0, "psd": 0}
    for message in data:
        kind, channel = message.topic.split("/")[2:]
        assert message.qos == 0 and int(channel) in (0, 2, 3) and len(channel) == 5
        if kind == "psd":
            number = int(channel), echelle.decode_packet(message.payload).trailer.sequence
            assert message.payload == made[number][0]
        else:
            told = json.loads(message.payload)
            number = int(channel), told["spectrum"]
            packet = made[number][1]
            values, frequencies = packet.values().astype(float), packet.frequencies()
            assert told["channel"] == int(channel) and told["flags"] == []
            assert told["timestamp_ns"] == packet.trailer.timestamp_ns
        if kind == "bands":
            spacing = packet.trailer.bin_spacing_hz
            for name, low, high in (("line", 1e3, 3.2e3), ("rest", 3.2e3, 5e4)):
                within = (frequencies >= low) & (frequencies < high)
                assert told["bands"][name] == pytest.approx(values[within].sum() * spacing, 1e-12)
            assert told["unit"] == "counts^2" and told["over_range"] == 0
            assert told["rms"] == pytest.approx(packet.trailer.rms)
        elif kind == "peaks":
            ((peak, hz),) = numpy_peaks(frequencies, values, 1)
            (only,) = told["peaks"]
            assert only["bin_hz"] == frequencies[peak] and only["level"] == values[peak]
            assert only["hz"] == pytest.approx(hz, abs=1e-6)
            assert told["unit"] == "counts^2/Hz"
        checked[kind] += 1
    assert len(set(checked.values())) == 1 and checked["bands"] > 100
    # The tones of the default signal: 2 kHz on channel 0, 10 kHz more on each channel.
    for channel in (0, 2, 3):
        hz = json.loads(witness.of(f"lab/lines/peaks/{channel:05}")[0].payload)["peaks"][0]["hz"]
        assert hz == pytest.approx(2000 + 10000 * channel, abs=0.1 * 390.625)
    stat = json.loads(figures[-1].payload)
    assert stat["stat"]["frames"]["dropped"] == {} and stat["gateway"]["connection"]["connected"]
    assert json.loads(witness.of("lab/lines/event/end")[0].payload)["event"]["failure"] is None
    hello = json.loads(witness.of("lab/lines/hello")[0].payload)["hello"]
    assert hello["channels"] == 4 and hello["nperseg"] == 256


def test_coded_spectra_at_a_rate(place):
    broker = Broker(place)
    forms = {"psd16": "5", "psd8": "3.1.1"}  # with either version of MQTT
    witness = Subscriber(broker.port, "+/#")
    assert witness.subscribed.wait(20)
    several = [gateway(place, broker.uri, "--spectra", form, "--mqtt", protocol, "--rate", 5,
                       "--topic", form, report=f"{form}.json")
               for form, protocol in forms.items()]  # fmt: skip
    place.run(*CALM_ARGUMENTS, "--duration", 2)
    for started in several:
        assert started.finish().code == 0
    assert wait_until(lambda: sum(m.topic.endswith("/status") for m in witness.messages) == 4)
    witness.stop()
    broker.stop()
    for form, protocol in forms.items():
        packets = witness.of(f"{form}/{form}/")
        for channel in range(4):
            found = [m for m in packets if m.topic.endswith(f"/{channel:05}")]
            assert 5 <= len(found) <= 12, "5 a second for two seconds"
            assert all(echelle.decode_coded_packet(m.payload).channel_id == channel for m in found)
            if protocol == "5":
                assert [int(m.properties["sequence"]) for m in found] == list(range(len(found)))
            else:
                assert all(m.properties == {} for m in found)  # that version has none
        spectra = report_of(place, f"{form}.json")["feed"]["spectra"]
        assert spectra["used"] == len(packets) and spectra["rate_limited"] > 100


def test_a_gateway_that_is_kept_waits_for_the_next_run(place):
    """After a run that was killed, and one that ended: the numbers go on, nothing else is lost."""
    broker = Broker(place)
    witness = Subscriber(broker.port, "echelle/#")
    assert witness.subscribed.wait(20)
    started = gateway(place, broker.uri, "--keep", "--qos", 1, "--band", "all=0..5e4")
    killed = place.coordinator(*CALM_ARGUMENTS)
    assert wait_until(lambda: len(witness.of("echelle/echelle/bands/")) > 8)
    killed.send(signal.SIGKILL)
    killed.finish()
    assert wait_until(lambda: not (place.runtime / "echelle/echelle/feed").exists())
    time.sleep(1.2)  # it looks once a second whether a run is still there
    before = len(witness.of("echelle/echelle/bands/"))
    place.run(*CALM_ARGUMENTS, "--duration", 1)
    assert wait_until(lambda: witness.of("echelle/echelle/event/end"))
    assert len(witness.of("echelle/echelle/bands/")) > before
    started.send(signal.SIGTERM)
    finished = started.finish()
    assert finished.code == 0, finished.err
    assert wait_until(lambda: len(witness.of("echelle/echelle/status")) == 2)
    witness.stop()
    broker.stop()
    report = report_of(place)
    assert report["feed"]["runs"] == 2 and report["messages"]["dropped"] == {}
    data = [m for m in witness.messages if not m.topic.endswith("/status")]
    assert sequences_are_whole(data) == report["messages"]["made"] + 2  # and two of hello
    assert finished.err.count("waiting for the next one") == 2


def test_tls_user_and_password(place):
    certificates = place.output / "certificates"
    certificates.mkdir()
    make_certificates(certificates)
    passwords = place.output / "passwords"
    place.start("mosquitto_passwd", "-c", "-b", passwords, "lab", "right").finish()
    broker = Broker(place, f"cafile {certificates}/ca.pem", f"certfile {certificates}/broker.pem",
                    f"keyfile {certificates}/broker.key", "require_certificate true",
                    f"password_file {passwords}", access="allow_anonymous false")  # fmt: skip
    for name, word in (("right", "right"), ("wrong", "wrong")):
        (place.output / name).write_text(word + "\n")
        (place.output / name).chmod(0o600)

    def files(ours="gateway", ca="ca"):
        return ["--ca", f"{certificates}/{ca}.pem", "--cert", f"{certificates}/{ours}.pem",
                "--key", f"{certificates}/{ours}.key"]  # fmt: skip

    user = ["--user", "lab", "--password-file", place.output / "right"]
    secure = f"mqtts://localhost:{broker.port}"
    cases = [
        (secure, [*files(), *user], 0, "connected"),
        (secure, [*files(), "--user", "lab", "--password-file", place.output / "wrong"], 1,
         "see --user, --password-file"),
        (secure, [*files(ours="stranger"), *user], 1, "it may refuse our certificate"),
        (secure, [*files(ca="other"), *user], 1, "certificate verify failed"),
        # The certificate says localhost, and this is another name for the same place.
        (f"mqtts://127.0.0.1:{broker.port}", [*files(), *user], 1, "no secure connection"),
    ]  # fmt: skip
    run = place.coordinator(*CALM_ARGUMENTS, "--duration", 60)
    place.running_status()
    started = [gateway(place, uri, *arguments, "--linger", 0.5, report=f"{number}.json")
               for number, (uri, arguments, _, _) in enumerate(cases)]  # fmt: skip
    for number, (_, _, code, words) in enumerate(cases):
        if code == 0:
            assert wait_until(lambda: "New client connected" in broker.log.read_text())
            place.control("stop")
            assert run.finish().code == 0
    for number, (_, _, code, words) in enumerate(cases):
        finished = started[number].finish()
        assert (finished.code, words in finished.err) == (code, True), (words, finished.err)
        assert "right" not in finished.err and "wrong" not in finished.err.replace("wrong.key", "")
        assert (report_of(place, f"{number}.json")["failure"] is None) == (code == 0)
    broker.stop()


def test_wrong_usage_and_no_broker_are_told_in_one_line(place):
    for arguments, words in [
        (["--password-file", "/dev/null", "--user", "u"], "not a file with a password"),
        (["--band", "x"], "NAME=LOW..HIGH"),
        (["--name", "a/b"], "a/b"),
        (["--feed-key", "/no/such", "--feed-server", "/no/such"], "/no/such"),
        (["nonsense"], "nonsense"),
    ]:
        finished = place.start(GATEWAY, *arguments).finish()
        assert finished.code == 2 and words in finished.err, (arguments, finished.err)
        assert len(finished.error_lines) == 1
    cases = [(["--band", "x=100..110"], "holds no bin"),
             (["--linger", 0], "was never reached: Connection refused")]  # fmt: skip
    several = [gateway(place, "mqtt://127.0.0.1:1", *arguments, report=f"{number}.json")
               for number, (arguments, _) in enumerate(cases)]  # fmt: skip
    place.run(*CALM_ARGUMENTS, "--duration", 1)
    for number, (_, words) in enumerate(cases):
        finished = several[number].finish()
        assert finished.code == 1 and words in finished.err, finished.err
        assert words in report_of(place, f"{number}.json")["failure"]


def test_a_feed_of_strangers_is_refused_or_counted(place):
    """Another program publishes where a coordinator should: rubbish, wrong topics, wrong axes."""
    broker = Broker(place)
    witness = Subscriber(broker.port, "echelle/#")
    assert witness.subscribed.wait(20)
    endpoint = f"ipc://{place.path}/f"
    hello = {"feed": 1, "instance": "echelle", "channels": 2, "bins": 3, "first_bin_hz": 0.0,
             "bin_spacing_hz": 1.0, "unit": "counts^2/Hz", "scaling": "density"}  # fmt: skip
    good = (REPOSITORY / "tests/golden/packets/v1_1_real.bin").read_bytes()
    messages = [
        (b"psd/00000", b""), (b"psd/00000", good[:-1]), (b"psd/00000", bytes(200)),
        (b"psd/00000", good), (b"psd/99999", good), (b"psd/", good),
        (b"event/x", b"no JSON"), (b"event/x", b"[1]"), (b"event/../x", b"{}"),
        (b"event/+", b"{}"), (b"event/" + b"x" * 200, b"{}"), (b"event/big", b" " * (1 << 21)),
        (b"stat/", b"\xff\xfe"), (b"stat/", b"[" * 100_000),
        (b"stat/", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        (b"event/fine", b'{"a": 1}'), (b"nothing/of/ours", b"x"),
    ]  # fmt: skip
    publisher = zmq.Context.instance().socket(zmq.XPUB)
    publisher.set(zmq.LINGER, 0)
    publisher.set(zmq.RCVTIMEO, 20_000)
    publisher.bind(endpoint)
    try:
        started = gateway(place, broker.uri, "--feed", endpoint, "--spectra", "1.1", "--qos", 1)
        while publisher.recv() != b"\x01stat/":
            pass  # its last subscription
        publisher.send_multipart([b"hello/", json.dumps(hello).encode()])
        for topic, payload in messages:
            publisher.send_multipart([topic, payload])
        publisher.send_multipart([b"event/end", b"{}"])
        finished = started.finish()
        assert finished.code == 0, finished.err
        report = report_of(place)
        assert report["feed"]["spectra"]["bad"] == report["feed"]["spectra"]["in"] == 6
        assert report["feed"]["bad_texts"] == 9 and report["feed"]["events"] == 2
        names = {m.topic for m in witness.of("echelle/echelle/event")}
        assert wait_until(lambda: len(witness.of("echelle/echelle/event")) == 2), names
        for wrong in ({"feed": 2}, {"channels": 0}, {"channels": 1 << 40}, {"bins": -1},
                      {"instance": "a/#"}, {"bin_spacing_hz": 0.0}, {"unit": 7}):  # fmt: skip
            started = gateway(place, broker.uri, "--feed", endpoint)
            while publisher.recv() != b"\x01stat/":
                pass
            publisher.send_multipart([b"hello/", json.dumps({**hello, **wrong}).encode()])
            finished = started.finish()
            assert finished.code == 1 and len(finished.error_lines) == 1, (wrong, finished.err)
    finally:
        publisher.close()
    witness.stop()
    broker.stop()

