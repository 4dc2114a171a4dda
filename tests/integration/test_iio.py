"""iio: by libiio and by a stock iiod, from a device that is made of files."""

import time

import numpy as np
import pytest
from cluster import COORDINATOR, check_books, read_report, wait_until
from iio_stand_in import ALONE, BEHIND_IIOD, IioDevice, is_possible, pack
from recordings import check_against_scipy, errors, settings_for
from signals import make_samples

from echelle import read_recording

pytestmark = pytest.mark.skipif(not is_possible(), reason="skipped: no mount namespaces here")

PLAIN = [(0, "le:s16/16>>0"), (1, "le:s16/16>>0")]
PLAIN_KINDS = [(2, 0, False)] * 2
QUICK = ["--quiet", "--fft-effort", "estimate", "--workers", 1, "--nperseg", 256]


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("iio: against scipy.signal.welch"))


@pytest.fixture
def device_of(place):
    made = []

    def make(elements, **more):
        made.append(IioDevice(place, elements, **more))
        return made[-1]

    yield make
    for device in made:
        device.close()


def source_facts(place):
    return read_report(place.output / "report.json")["source"]


# libiio PR#1010 and PR#198 among them: formats of several sizes, indices that begin at 4.
@pytest.mark.parametrize("script", [ALONE, BEHIND_IIOD], ids=["local", "ip"])
def test_any_scan_format_against_scipy(place, device_of, script):
    elements = [(4, "le:s16/32>>8"), (5, "be:s12/16>>4"), (9, "le:u10/16>>0"), (12, "le:s8/8>>0")]
    kinds = [(4, 8, False), (2, 4, True), (2, 0, False), (1, 0, False)]
    frames, length = 21, 500  # a whole number of refills
    samples = make_samples(4, frames * length, False)[..., 0].astype(int)
    samples //= np.array([[1], [16], [64], [256]])
    unsigned = samples.copy()
    unsigned[2] += 512
    device = device_of(elements, frequency="10000")
    context = "local:" if script is ALONE else "ip:127.0.0.1:30431"
    recording, report = place.output / "spectra", place.output / "report.json"
    run = device.start(
        COORDINATOR,
        *["--source", f"iio:{context}?device=stand-in&samples={length}&timeout=20", *QUICK],
        *["--frames", frames, "--average", "all", "--record", recording, "--report", report],
        script=script,
    )
    feeder = device.feed_beside(pack(unsigned, kinds))
    finished = run.finish()
    assert finished.code == 0, finished.err
    feeder.join(60)
    check_books(read_report(report))
    packets = list(read_recording(recording))
    check_against_scipy(packets, samples.astype(float), settings_for(10_000))
    facts = source_facts(place)
    assert facts["troubles"] == {} and facts["opened"] == 1 and facts["losses"] == "unverified"
    assert abs(packets[0].timestamp_ns / 1e9 - time.time()) < 600


# libiio #981: a refill that times out, after which the buffer is dead until it is opened again.
def test_libiio_981_a_time_out_is_a_gap_and_the_device_is_opened_again(place, device_of):
    samples = make_samples(2, 4000, False)[..., 0]
    device = device_of(PLAIN, frequency="4000")
    report = place.output / "report.json"
    run = device.start(
        COORDINATOR,
        *["--source", "iio:local:?samples=200&timeout=0.3", *QUICK, "--report", report],
        *["--frames", 15],
    )
    assert wait_until(lambda: (status := place.status()) and status["source"]["opened"] >= 1)
    scans = pack(samples, PLAIN_KINDS)
    # Each part is ten frames; in between the device is silent for longer than the time-out.
    device.feed(scans[: 2000 * 4])
    time.sleep(2)
    device.feed(scans[2000 * 4 :])
    finished = run.finish()
    assert finished.code == 0, finished.err
    written = read_report(report)
    check_books(written)
    facts = written["source"]
    assert facts["troubles"]["timed_out"] >= 1 and facts["opened"] >= 2 and facts["gaps"] == 1
    assert facts["last_trouble"].startswith("timed_out: ")
    assert written["frames"]["done"] == 15
    # What the clock says is missing is counted: two seconds less the half one that came at once,
    # at 20 frames a second.
    assert written["frames"]["dropped"]["lost_by_source"] >= 20
    assert "opened again" in finished.err


# libiio #1359: no answer at all. The run waits for the device, and ends when it is told to.
@pytest.mark.parametrize("script", [ALONE, BEHIND_IIOD], ids=["local", "ip"])
def test_libiio_1359_a_device_that_never_answers_does_not_hold_the_run(place, device_of, script):
    device = device_of(PLAIN)
    context = "local:" if script is ALONE else "ip:127.0.0.1"
    report = place.output / "report.json"
    run = device.start(
        COORDINATOR,
        *["--source", f"iio:{context}?timeout=0.2", *QUICK, "--report", report],
        script=script,
    )

    def has_been_opened_again():
        status = place.status()
        return status and status["source"]["opened"] >= 2

    assert wait_until(has_been_opened_again), run.has_ended() and run.finish().err
    troubles = place.status()["source"]["troubles"]
    assert set(troubles) <= {"timed_out", "stuck", "io_error"} and sum(troubles.values()) >= 1
    began = time.monotonic()
    assert place.control("stop").code == 0
    finished = run.finish()
    assert finished.code == 0, finished.err
    assert time.monotonic() - began < 20
    assert read_report(report)["frames"]["in"] == 0


# libiio #888: the library says that nothing is lost, whatever is. The clock says what it can.
def test_libiio_888_half_the_samples_are_missing(place, device_of):
    device = device_of(PLAIN, frequency="4000")
    report = place.output / "report.json"
    run = device.start(
        COORDINATOR,
        *["--source", "iio:local:?samples=200&timeout=10", *QUICK, "--report", report],
        *["--frames", 36],
    )
    assert wait_until(lambda: (status := place.status()) and status["source"]["opened"] == 1)
    scans = pack(make_samples(2, 7200, False)[..., 0], PLAIN_KINDS)
    began = time.monotonic()
    for first in range(0, 7200, 100):
        time.sleep(max(0, began + first / 2000 - time.monotonic()))  # half as fast as it says
        device.feed(scans[first * 4 : (first + 100) * 4])
    finished = run.finish()
    assert finished.code == 0, finished.err
    facts = source_facts(place)
    assert facts["losses"] == "unverified" and facts["rate_hz"] == 4000
    assert facts["measured_rate_hz"] < 2200  # a busy machine may have fed it slower
    assert facts["rate_deviation"] == pytest.approx(facts["measured_rate_hz"] / 4000 - 1)


@pytest.mark.parametrize(
    "keys, elements, frequency, words",
    [
        ("device=other", PLAIN, "1000", ["no device 'other'", "'stand-in'", "device="]),
        ("channels=voltage7", PLAIN, "1000", ["no channel 'voltage7'", "'voltage0'", "'voltage1'"]),
        ("", PLAIN, None, ["stand-in", "sampling_frequency", "--rate"]),
        ("", PLAIN, "none", ["sampling_frequency", "none"]),
        ("", [(0, "le:s24/32>>8")], "1000", ["24 bits", "drop-bits=8"]),
        ("format=ci16", PLAIN[:1], "1000", ["1 values", "pairs of re and im"]),
        ("timeout=0", PLAIN, "1000", ["timeout", "0.01"]),
        ("colour=red", PLAIN, "1000", ["colour", "it takes"]),
    ],
)
def test_what_is_refused(place, device_of, keys, elements, frequency, words):
    device = device_of(elements, frequency=frequency)
    finished = device.start(COORDINATOR, "--source", f"iio:?{keys}", *QUICK).finish()
    assert finished.code == 2 and len(finished.error_lines) == 1, finished.err
    for word in words:
        assert word in finished.err


def test_a_machine_without_iio(place):
    finished = place.run("--source", "iio:ip:127.0.0.1:1", code=2)
    assert "ip:127.0.0.1:1" in finished.err and len(finished.error_lines) == 1
