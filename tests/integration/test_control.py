"""echellectl and the control socket: answers, refusals, and garbage that must not matter."""

import json

import pytest
from bad_sources import garbage
from cluster import check_books
from packet_bytes import without_worker
from zmtp import GREETING, Dealer, command, connect, frame, ready

# Some seconds of work at the pace of the generator, so that all happens while it runs.
LIVE = "sim:?channels=4&samples=256&rate=1e5"


@pytest.fixture
def live(place):
    """A coordinator that runs until it is stopped."""
    run = place.coordinator("--source", LIVE, "--workers", 2, "--nperseg", 256)
    place.running_status()
    yield run
    if not run.has_ended():
        place.control("stop")
        assert run.finish().code == 0


def test_status(place, live):
    status = place.status()
    check_books(status)
    assert status["config"]["channels"] == 4 and status["config"]["source"] == LIVE
    assert [worker["id"] for worker in status["workers"]] == [0, 1]
    pids = {pid for pid, name in place.processes().items() if name == "echelle-worker"}
    assert {worker["pid"] for worker in status["workers"]} == pids
    assert all(worker["state"] == "running" for worker in status["workers"])
    for key in ("wall_s", "blocks", "spectra", "frame_us", "realtime_factor", "budget", "memory"):
        assert key in status
    later = place.running_status()
    assert later["frames"]["in"] >= status["frames"]["in"] > 0

    text = place.control("status")
    assert text.code == 0 and text.err == ""
    assert "frames" in text.out and "worker 0" in text.out and "worker 1" in text.out


@pytest.mark.parametrize("style", [[], ["--json"]])
def test_stop(place, live, style):
    answer = place.control(*style, "stop")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == {"stopping": True}
    assert live.finish().code == 0


def test_names_tell_coordinators_apart(place):
    runs = {
        name: place.coordinator("--source", LIVE, "--workers", count, "--name", name)
        for name, count in [("one", 1), ("three", 3)]
    }
    assert len(place.running_status("one")["workers"]) == 1
    assert len(place.running_status("three")["workers"]) == 3
    assert place.control("--name", "one", "stop").code == 0
    assert runs["one"].finish().code == 0
    assert place.status("three")["frames"]["done"] > 0
    assert place.control("--name", "three", "stop").code == 0
    assert runs["three"].finish().code == 0


def test_an_endpoint_of_ones_own(place):
    endpoint = f"ipc://{place.output}/mine"
    run = place.coordinator("--source", LIVE, "--workers", 1, "--control", endpoint)
    place_of_it = ["--control", endpoint]
    answer = place.control(*place_of_it, "--json", "status")
    while answer.code != 0 and not run.has_ended():
        answer = place.control(*place_of_it, "--json", "status")
    assert json.loads(answer.out)["config"]["channels"] == 4
    assert place.control(*place_of_it, "stop").code == 0
    assert run.finish().code == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["dance"], ["dance"]),
        ([], ["required"]),
        (["--json"], ["required"]),
        (["scale"], ["N"]),
        (["scale", "many"], ["many"]),
        (["--name", "a/b", "status"], ["a/b", "letters"]),
        (["--control", "nowhere", "status"], ["nowhere"]),
        (["--no-such", "status"], ["--no-such"]),
    ],
)
def test_wrong_usage(place, arguments, words):
    answer = place.control(*arguments)
    assert (answer.code, answer.out, len(answer.error_lines)) == (2, "", 1), answer.err
    for word in words:
        assert word in answer.err


def test_no_coordinator(place):
    for name in ("echelle", "other"):
        answer = place.control("--name", name, "status")
        assert (answer.code, answer.out, len(answer.error_lines)) == (1, "", 1)
        assert "no coordinator answers" in answer.err and "--name" in answer.err


def test_what_a_coordinator_refuses(place, live):
    answer = place.control("scale", 100_000)
    assert (answer.code, answer.out, len(answer.error_lines)) == (1, "", 1)
    assert "whole number from 1 to" in answer.err
    dealer = Dealer(place.runtime / "echelle/echelle/control")
    requests = {
        b"": "bad-request",
        b"{": "bad-request",
        b"[]": "bad-request",
        b"42": "bad-request",
        b"{}": "bad-request",
        b'{"command": 7}': "bad-request",
        b'{"command": "\xff\xfe"}': "bad-request",
        b'{"command": "dance"}': "unknown-command",
        b'{"command": "scale"}': "bad-number",
        b'{"command": "scale", "workers": -1}': "bad-number",
        b'{"command": "scale", "workers": 1.5}': "bad-number",
        b'{"command": "drain", "id": "x"}': "bad-number",
        b"[" * 60_000: "bad-request",
        garbage(1, 5000): "bad-request",
    }
    for request, name in requests.items():
        dealer.send(request)
        (reply,) = dealer.receive()
        reply = json.loads(reply)
        assert reply["ok"] is False and reply["error"]["name"] == name, request[:40]
        assert reply["error"]["message"]
    # A REQ socket's empty delimiter comes back as it went.
    dealer.send(b"", b'{"command": "status"}')
    delimiter, reply = dealer.receive()
    assert delimiter == b"" and json.loads(reply)["ok"] is True
    dealer.close()


def bombard(path):
    """Everything but a request, from one connection after the other."""
    for seed in range(20):
        connection = connect(path)
        connection.sendall(garbage(seed, 500))
        connection.close()
    for opening in [b"", GREETING[:30], GREETING, GREETING + ready(b"PUB"), GREETING + ready()[:9]]:
        connection = connect(path)
        connection.sendall(opening)
        connection.close()
    for rest in [
        command(b"NONSENSE", b"x" * 100),
        frame(b"x" * 70_000),  # more than a request may have: the connection is closed
        b"\x02" + b"\xff" * 8,  # a frame of 2^64 - 1 bytes
        frame(garbage(1, 3000)) * 20,
        frame(b"part", more=True) * 50,
    ]:
        dealer = Dealer(path)
        try:
            dealer.socket.sendall(rest)
        except OSError:
            pass  # closed by the other end, rightly
        dealer.close()
    # Asks, and never reads the answers.
    dealer = Dealer(path)
    for _ in range(300):
        dealer.send(b'{"command": "status"}')
    dealer.close()


def test_garbage_does_not_disturb_the_run(place):
    source = "sim:?channels=8&samples=512&pace=asap&frames=40000&seed=4"
    options = ["--source", source, "--workers", 2, "--nperseg", 256, "--average", 1000]
    calm, bombarded = place.output / "calm", place.output / "bombarded"
    place.run(*options, "--record", calm)
    report = place.output / "report.json"
    run = place.coordinator(*options, "--record", bombarded, "--report", report)
    place.running_status()
    bombard(place.runtime / "echelle/echelle/control")
    assert place.status() or run.has_ended()
    assert run.finish().code == 0
    assert without_worker(bombarded) == without_worker(calm)
