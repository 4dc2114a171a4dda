"""Brokers that refuse, stall, vanish, die and lie, and what echelle-mqtt makes of them.

Tests that reproduce a fault reported in public are named after it. Most brokers are Debian's
mosquitto; where a broker has to do what none should it is one of our own (mqtt_wire.py).
"""

import json
import os
import signal
import time

import pytest
from cluster import wait_until
from mosquitto import Broker
from mqtt_gateway import CALM_ARGUMENTS, gateway, report_of, sequences_are_whole
from mqtt_wire import StandInBroker, Subscriber, blackhole, never_read, packet, say, serve

LONG = os.environ.get("ECHELLE_LONG_TESTS") == "1"
QUICK = ["--reconnect", "0.02..0.2"]
BANDS = ["--band", "all=0..5e4", "--quiet"]
ENDLESS = ["--duration", 600]
# 1,000 messages a second: 4 channels, 250 spectra a second of each.
LIVELY_ARGUMENTS = ["--source", "sim:?channels=4&samples=400&rate=1e5", "--workers", 2,
                    "--nperseg", 400, "--average", 1]  # fmt: skip


def started_run(place, arguments=CALM_ARGUMENTS):
    run = place.coordinator(*arguments, *ENDLESS)
    place.running_status()
    return run


def stop_run(place, run):
    """Ends the run; nothing was lost on its data path meanwhile."""
    status = place.status()
    assert status["frames"]["dropped"] == {}, status["frames"]
    assert place.control("stop").code == 0
    assert run.finish().code == 0


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def data_of(messages):
    return [m for m in messages if not m.topic.endswith(("/status", "/hello"))]


def test_broker_killed_again_and_again_at_qos_1_loses_nothing(place, report_figure):
    """Ten times, with kill -9: every message made arrives, at least once, and memory stays flat."""
    times, pause_s = (200, 1.0) if LONG else (10, 0.15)
    # The witness' session, and it alone, is on the broker's disk: it survives each kill, and
    # nothing else does. A message is written to it before the gateway is told that it has come.
    broker = Broker(place, "persistence true", "autosave_interval 0", "queue_qos0_messages true",
                    "max_queued_messages 0")  # fmt: skip
    witness = Subscriber(broker.port, "echelle/#")
    assert witness.subscribed.wait(20)
    broker.stop()
    broker.start()
    run = started_run(place, LIVELY_ARGUMENTS)
    started = gateway(place, broker.uri, "--qos", 1, "--rate", "all", *BANDS, *QUICK,
                      "--queue", 20_000)  # fmt: skip
    assert wait_until(lambda: len(witness.of("echelle/echelle/bands")) > 100)
    memory = []
    for _ in range(times):
        broker.kill()
        time.sleep(pause_s)
        seen, sessions = len(witness.messages), witness.sessions
        broker.start()
        assert wait_until(lambda: witness.sessions > sessions)
        assert wait_until(lambda: len(witness.messages) > seen + 200)
        memory.append(resident_bytes(started.pid))
    stop_run(place, run)
    finished = started.finish()
    assert finished.code == 0, finished.err
    report = report_of(place)
    messages, connection = report["messages"], report["connection"]
    assert messages["dropped"] == {} and messages["delivered"] == messages["made"]
    assert connection["made"] >= times + 1 and sum(connection["lost"].values()) >= times
    assert wait_until(lambda: len(witness.of("echelle/echelle/status")) > connection["made"])
    witness.stop()
    broker.stop()
    unique = {(m.topic, json.loads(m.payload)["sequence"]): m for m in data_of(witness.messages)}
    in_order = [unique[key] for key in sorted(unique)]
    assert sequences_are_whole(in_order) == messages["made"] > times * 200
    half = len(memory) // 2
    growth = max(memory[half:]) - max(memory[:half])
    assert growth < 2 << 20, memory
    report_figure(f"mqtt: {messages['made']} messages, broker killed {times} times: 0 lost, "
                  f"{messages['repeated']} sent again, memory grew by {growth >> 10} KiB")


def test_mosquitto_2153_a_broker_that_stays_away_costs_a_bounded_queue(place, report_figure):
    """QoS 1 without a broker: the queue is full and no longer, what it loses is counted."""
    seconds = 600 if LONG else 1
    broker = Broker(place)
    witness = Subscriber(broker.port, "echelle/echelle/bands/#")
    run = started_run(place, LIVELY_ARGUMENTS)
    started = gateway(place, broker.uri, "--qos", 1, "--rate", "all", *BANDS, *QUICK,
                      "--queue", 300, "--queue-bytes", 1 << 20)  # fmt: skip
    assert wait_until(lambda: len(witness.messages) > 100)
    broker.kill()
    time.sleep(seconds / 2)
    before = resident_bytes(started.pid)
    time.sleep(seconds / 2)
    growth = resident_bytes(started.pid) - before
    assert growth < 1 << 20
    seen, sessions = len(witness.messages), witness.sessions
    broker.start()
    assert wait_until(lambda: len(witness.messages) > seen + 300)
    stop_run(place, run)
    assert started.finish().code == 0
    witness.stop()
    broker.stop()
    messages = report_of(place)["messages"]
    assert set(messages["dropped"]) == {"queue_full"} and messages["most"] == 300
    assert messages["dropped"]["queue_full"] > 200 * seconds
    assert witness.sessions > sessions
    dropped = messages["dropped"]["queue_full"]
    report_figure(f"mqtt: {seconds} s without a broker, {dropped} dropped and counted, memory grew "
                  f"by {growth >> 10} KiB")


def test_paho_c_373_a_broker_that_stalls_gets_the_latest_and_holds_nobody_up(place):
    """QoS 0: a stopped broker, with packets enough to fill every buffer on the way."""
    broker = Broker(place)
    witness = Subscriber(broker.port, "echelle/#")
    assert witness.subscribed.wait(20)
    run = started_run(place, ["--source", "sim:?channels=4&samples=4096&rate=1e6&generate=once",
                              "--workers", 2, "--nperseg", 4096, "--average", 1])  # fmt: skip
    # 8 MB a second. A packet has 8.3 KB; a loopback's buffers take some MB.
    started = gateway(place, broker.uri, "--spectra", "1.1", "--rate", "all", "--quiet")
    assert wait_until(lambda: len(witness.of("echelle/echelle/psd/")) > 100)
    os.kill(broker.running.pid, signal.SIGSTOP)
    try:
        time.sleep(0.6)
        before = resident_bytes(started.pid)
        time.sleep(0.6)
        assert resident_bytes(started.pid) - before < 1 << 20
        stopped_at = time.time_ns()
    finally:
        os.kill(broker.running.pid, signal.SIGCONT)
    seen = len(witness.messages)
    assert wait_until(lambda: len(witness.messages) > seen + 1000)
    stop_run(place, run)
    assert started.finish().code == 0
    messages = report_of(place)["messages"]
    witness.stop()
    broker.stop()
    assert set(messages["dropped"]) == {"replaced"} and messages["dropped"]["replaced"] > 200
    assert messages["most"] < 20  # one of each topic
    # What was lost shows: sequences are in order and have a gap, right before what is new.
    one = witness.of("echelle/echelle/psd/00001")
    numbers = [int(m.properties["sequence"]) for m in one]
    assert numbers == sorted(set(numbers))
    gaps = [b - a - 1 for a, b in zip(numbers, numbers[1:]) if b - a > 1]
    assert max(gaps) > 50 and stopped_at


def test_paho_c_429_a_link_cut_with_a_full_window_goes_on_without_loss(place):
    """A broker that acknowledges nothing and hangs up when the window is full, three times."""
    window = 10
    cut = serve(limit=window, acknowledge=False)
    broker = StandInBroker(cut, cut, cut, serve())
    run = started_run(place)
    started = gateway(place, f"127.0.0.1:{broker.port}", "--qos", 1, "--rate", "all", *BANDS,
                      *QUICK, "--in-flight", window)  # fmt: skip
    assert wait_until(lambda: len(broker.accepted_at) == 4 and len(data_of(broker.messages)) > 200)
    stop_run(place, run)
    assert started.finish().code == 0
    broker.stop()
    report = report_of(place)
    assert report["messages"]["dropped"] == {} and report["messages"]["repeated"] == 3 * window
    received = data_of(broker.messages)
    first = [(m.topic, m.payload) for m in received[:window]]
    for again in (1, 2, 3):  # the same ones, in their order
        assert [(m.topic, m.payload) for m in received[again * window :][:window]] == first
    assert sequences_are_whole(received[3 * window :]) == report["messages"]["made"]
    assert broker.disconnects == 1


def test_what_is_no_broker_is_named_and_left_in_time(place):
    """Silence, HTTP, random bytes, impossible lengths, a door that closes at once."""
    brokers = [StandInBroker(behaviour) for behaviour in (
        blackhole, say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), say(bytes(range(256)) * 40),
        say(b"\x20\xff\xff\xff\xff\xff"), say(b""))]  # fmt: skip
    run = started_run(place)
    several = [gateway(place, f"127.0.0.1:{broker.port}", *BANDS, *QUICK, "--linger", 0.5,
                       report=f"{number}.json")
               for number, broker in enumerate(brokers)]  # fmt: skip
    assert wait_until(lambda: brokers[0].accepted_at
                      and all(len(broker.accepted_at) > 2 for broker in brokers[1:]))  # fmt: skip
    begun = time.monotonic()
    for started in several:
        started.send(signal.SIGTERM)
    for number, started in enumerate(several):
        finished = started.finish()
        assert finished.code == 1 and "was never reached" in finished.err, finished.err
        report = report_of(place, f"{number}.json")
        assert report["connection"]["made"] == 0 and report["messages"]["dropped"]["stopped"] > 0
        brokers[number].stop()
    assert time.monotonic() - begun < 4
    assert report_of(place, "0.json")["connection"]["failed"] == {"no_answer": 1}
    stop_run(place, run)


def test_a_broker_that_reads_nothing_more_does_not_keep_the_gateway_from_ending(place):
    broker = StandInBroker(never_read)
    run = started_run(place, LIVELY_ARGUMENTS)
    started = gateway(place, f"127.0.0.1:{broker.port}", "--qos", 1, "--rate", "all", "--quiet",
                      "--spectra", "1.1", "--linger", 600)  # fmt: skip
    assert wait_until(lambda: broker.client_ids)
    time.sleep(0.5)
    started.send(signal.SIGINT)
    time.sleep(0.3)
    assert not started.has_ended()  # it lingers
    begun = time.monotonic()
    started.send(signal.SIGINT)
    finished = started.finish()
    assert time.monotonic() - begun < 4 and finished.code == 0
    assert "stopped" in finished.err
    stop_run(place, run)
    broker.stop()
    assert report_of(place)["messages"]["dropped"]["stopped"] > 0


def farewell(code):
    """A behaviour: lets in, and then disconnects with this reason."""

    def behave(broker, stream):
        if broker.welcome(stream):
            time.sleep(0.1)
            stream.connection.sendall(packet(14, bytes([code, 0])))

    return behave


def test_another_client_with_our_id_is_named_and_not_fought(place):
    """Session take-over: a warning that names it, and no coming back before the longest wait.

    mosquitto 2.0.11 just closes the connection; a broker that says why is one of our own."""
    mosquitto = Broker(place)
    telling = StandInBroker(farewell(142), serve())
    run = started_run(place)
    status = Subscriber(mosquitto.port, "echelle/echelle/status")
    waits = ["--reconnect", "0.05..1.5", "--client-id", "twin", "--band", "all=0..5e4"]
    told = gateway(place, f"127.0.0.1:{telling.port}", *waits, report="told.json")
    started = gateway(place, mosquitto.uri, *waits, "--mqtt", "3.1.1")
    assert wait_until(lambda: status.messages)
    twin = Subscriber(mosquitto.port, "nothing", client_id="twin", clean=True)  # comes back at once
    assert wait_until(lambda: twin.sessions == 3)
    at = len(status.messages)
    time.sleep(1.2)
    assert len(status.messages) == at and twin.sessions == 3  # the gateway has left it alone
    twin.stop()
    assert wait_until(lambda: len(status.messages) > at, 10)  # and comes back when it may
    assert wait_until(lambda: data_of(telling.messages))
    assert telling.accepted_at[1] - telling.accepted_at[0] > 1.5
    stop_run(place, run)
    finished, told_finished = started.finish(), told.finish()
    for one in (status, telling, mosquitto):
        one.stop()
    assert finished.code == told_finished.code == 0
    assert "another client has connected with our client id" in told_finished.err
    assert "another client may have our client id" in finished.err
    connection = report_of(place, "told.json")["connection"]
    assert connection["taken_over"] == 1 and connection["lost"] == {"taken_over": 1}
    connection = report_of(place)["connection"]
    assert connection["lost"] == {"connection_lost": 2, "closed_again": 1}
    assert connection["taken_over"] == 1 and connection["made"] == 4
    words = [json.loads(m.payload)["status"] for m in status.messages]
    assert words == ["online", "offline"] * 4  # last wills, and a goodbye


def test_the_last_will_and_the_goodbye_are_seen_by_mosquitto_sub(place):
    broker = Broker(place)
    run = started_run(place)
    for end, reason in ((signal.SIGKILL, "the connection was lost"), (signal.SIGTERM, "stopped")):
        subscribed = broker.subscribe("-t", "echelle/echelle/status", "-C", 2, "-W", 20, "-R")
        assert wait_until(lambda: broker.log.read_text().count("Sending SUBACK") == 1)
        started = gateway(place, broker.uri, *BANDS)
        assert wait_until(lambda: "Received PUBLISH from echelle" in broker.log.read_text())
        started.send(end)
        started.finish()
        first, second = map(json.loads, subscribed.finish().out.splitlines())
        assert (first["status"], second["status"]) == ("online", "offline")
        assert first["boot"] == second["boot"] and second["reason"] == reason
        retained = broker.subscribe("-t", "echelle/echelle/status", "-C", 1, "-W", 20).finish()
        assert json.loads(retained.out) == second
        broker.log.write_text("")
    stop_run(place, run)
    broker.stop()


def test_what_the_broker_refuses_is_counted_by_cause(place):
    """Packets above the broker's limit, and topics that we may not write to."""
    rules = place.output / "rules"
    rules.write_text("topic write echelle/echelle/status\ntopic write echelle/echelle/bands/#\n"
                     "topic write echelle/echelle/psd/#\ntopic read #\n")  # fmt: skip
    broker = Broker(place, f"acl_file {rules}", "max_packet_size 500")
    witness = Subscriber(broker.port, "echelle/echelle/#", clean=True)
    assert witness.subscribed.wait(20)
    run = started_run(place)
    started = gateway(place, broker.uri, "--qos", 1, "--band", "all=0..5e4", "--spectra", "1.1")
    assert wait_until(lambda: len(witness.of("echelle/echelle/bands")) > 20)
    stop_run(place, run)
    finished = started.finish()
    assert finished.code == 0, finished.err
    witness.stop()
    broker.stop()
    messages = report_of(place)["messages"]
    assert set(messages["dropped"]) == {"too_large", "refused"}
    assert messages["dropped"]["refused"] >= 1  # event/end, at least
    assert messages["delivered"] == len(witness.of("echelle/echelle/bands"))
    assert "is larger than the broker allows" in finished.err
    assert "Not authorized" in finished.err


def test_a_keepalive_without_an_answer_ends_the_connection(place):
    """A broker that falls silent behind an open connection; 5 s is the least that MQTT's library
    asks for, so only with ECHELLE_LONG_TESTS=1."""
    if not LONG:
        pytest.skip("takes 15 seconds: ECHELLE_LONG_TESTS=1")
    broker = StandInBroker(never_read, serve())
    run = started_run(place)
    started = gateway(place, f"127.0.0.1:{broker.port}", *BANDS, *QUICK, "--keepalive", 5)
    assert wait_until(lambda: len(broker.accepted_at) == 2, 30)
    assert broker.accepted_at[1] - broker.accepted_at[0] < 12  # twice the keepalive, and a look
    stop_run(place, run)
    assert started.finish().code == 0
    broker.stop()
    assert report_of(place)["connection"]["lost"] == {"keepalive": 1}


def test_packets_that_no_broker_sends_do_not_end_the_gateway(place):
    """After the handshake: a property that libmosquitto asserts on, a length beyond all bounds, an
    acknowledgement of nothing."""

    def rude(content):
        def behave(broker, stream):
            if broker.welcome(stream):
                stream.connection.sendall(content)
                broker.stopping.wait(0.05)

        return behave

    broker = StandInBroker(rude(packet(15, b"x" * 50)), rude(b"\x30\xff\xff\xff\x7f" + b"x" * 99),
                           rude(packet(4, b"\x12\x34")), rude(packet(2, b"")), serve())  # fmt: skip
    run = started_run(place)
    started = gateway(place, f"127.0.0.1:{broker.port}", "--qos", 1, *BANDS, *QUICK)
    assert wait_until(lambda: started.has_ended() or len(data_of(broker.messages)) > 50)
    stop_run(place, run)
    finished = started.finish()
    assert finished.code == 0, finished.err
    broker.stop()
    report = report_of(place)
    assert report["messages"]["dropped"] == {} and report["connection"]["made"] == 5
