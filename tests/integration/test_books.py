"""Every frame is done, dropped for one reason, or in flight; gaps and losses show in the spectra."""

import json
import os
import re
from collections import defaultdict

import pytest
from cluster import CONTROL, SIMULATOR, check_books, wait_until
from packet_bytes import without_worker

from echelle import PacketFlag, read_recording

QUICK = ["--nperseg", 256]
# No machine of today computes a frame of this in the 2 us that it lasts.
TOO_FAST = "sim:?channels=32&samples=2048&rate=1e9&signal=tone(f=1MHz, a=8000)"
OVERRUN = {"overrun", "overwritten"}


def of_channel_0(path):
    return [packet for packet in read_recording(path) if packet.channel_id == 0]


@pytest.mark.parametrize("average", [1, 4])
def test_faults_of_the_source_are_counted_exactly(place, average):
    """Worked out by hand for 100 frames with the indices 0 to 99.

    drop-every=7 loses 6, 13, … 97: 14 frames. repeat-every=5 gives 4, 9, … 99 twice, 20 frames, of
    which 34 and 69 are lost: 18. over-range-every=4 marks 3, 7, … 99, 25 frames with 64 samples
    each, of which 27, 55 and 83 are lost: 22.
    """
    recording = place.output / "spectra"
    faults = "drop-every=7&repeat-every=5&over-range-every=4"
    report = place.run_with_report(
        *["--source", f"sim:?channels=4&samples=1024&frames=100&pace=asap&{faults}"],
        *["--workers", 2, "--average", average, "--record", recording, *QUICK],
    )
    check_books(report)
    frames = report["frames"]
    assert frames["in"] == 100 + 18 and frames["done"] == 86 and frames["in_flight"] == 0
    assert frames["dropped"] == {"lost_by_source": 14, "repeated": 18}

    lost = set(range(6, 100, 7))
    spectra = of_channel_0(recording)
    assert sum(packet.over_range_count for packet in spectra) == 22 * 64
    seen = {packet.first_sample // 1024: packet for packet in spectra}
    if average == 1:
        assert sorted(seen) == sorted(set(range(100)) - lost)
        for index, packet in seen.items():
            assert bool(packet.flags & PacketFlag.gap_before) == (index - 1 in lost), index
            assert bool(packet.flags & PacketFlag.over_range) == (index % 4 == 3), index
            assert not packet.flags & PacketFlag.incomplete
        return
    assert [packet.sequence for packet in spectra] == list(range(25))
    for number, packet in enumerate(spectra):
        own = set(range(4 * number, 4 * number + 4))
        first = min(own - lost)
        assert packet.first_sample == first * 1024
        assert bool(packet.flags & PacketFlag.incomplete) == bool(own & lost), number
        # A frame lost at the very end of an integration may be told there or in the next one.
        inside = any(index in lost for index in range(4 * number - 1, 4 * number + 3))
        assert bool(packet.flags & PacketFlag.gap_before) == inside, number
        # 1024 samples end 8 segments of 256 by 128, the first 7 of a stretch; sound frames only.
        assert packet.segments_averaged == sum(
            7 if index == 0 or index - 1 in lost else 8 for index in own - lost
        )
        assert (packet.segments_averaged < packet.segments_expected) == bool(own & lost)
    assert report["spectra"]["incomplete"] == 4 * sum(
        bool(set(range(4 * n, 4 * n + 4)) & lost) for n in range(25)
    )


def test_random_losses_are_counted(place):
    report = place.run_with_report(
        *["--source", "sim:?channels=2&samples=256&frames=5000&pace=asap&drop=0.1&seed=9"],
        *["--workers", 2, *QUICK],
    )
    check_books(report)
    lost = report["frames"]["dropped"]["lost_by_source"]
    assert 350 < lost < 650  # 500 expected, 21 is their standard deviation
    trailing = 5000 - report["frames"]["in"]  # losses at the very end leave no trace
    assert 0 <= trailing < 10
    assert report["frames"]["done"] == 5000 - lost - trailing


@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_overrun_drops_and_tells(place, notify):
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", TOO_FAST, "--workers", 2, "--duration", 0.5, "--notify", notify],
        *["--average", 1, "--record", recording],
    )
    check_books(report)
    frames = report["frames"]
    assert frames["done"] > 0 and frames["in_flight"] == 0
    assert set(frames["dropped"]) <= OVERRUN and frames["dropped"]["overrun"] > 0
    previous = -1
    packets = of_channel_0(recording)
    for packet in packets:
        index, rest = divmod(packet.first_sample, 2048)
        assert rest == 0
        if previous >= 0:
            # Never silent. (A frame of which some channels were lost has no spectrum in others.)
            assert bool(packet.flags & PacketFlag.gap_before) == (index != previous + 1)
        previous = index
    assert any(packet.flags & PacketFlag.gap_before for packet in packets)
    assert len(packets) >= frames["done"]


def test_a_worker_that_never_runs_out_of_work_is_not_taken_for_a_hung_one(place):
    report = place.run_with_report(
        *["--source", "sim:?channels=2&samples=64&rate=4e7", "--nperseg", 32, "--workers", 1],
        *["--duration", 3],
    )
    check_books(report)
    assert report["frames"]["dropped"]["overrun"] > 0
    assert report["recoveries"] == []


def test_overrun_makes_integrations_incomplete(place):
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", TOO_FAST, "--workers", 2, "--duration", 0.5],
        *["--average", 100, "--record", recording],
    )
    check_books(report)
    packets = list(read_recording(recording))
    assert len(packets) == report["spectra"]["out"]
    incomplete = [packet for packet in packets if packet.flags & PacketFlag.incomplete]
    assert len(incomplete) == report["spectra"]["incomplete"] > 0
    for packet in packets:
        is_short = packet.segments_averaged < packet.segments_expected
        assert bool(packet.flags & PacketFlag.incomplete) == is_short
    # A gap that is told is a loss in this spectrum, or between it and the one before it.
    by_channel = defaultdict(list)
    for packet in packets:
        by_channel[packet.channel_id].append(packet)
    for spectra in by_channel.values():
        for before, packet in zip(spectra, spectra[1:]):
            if packet.flags & PacketFlag.incomplete:
                assert (packet.flags | before.flags) & PacketFlag.gap_before


def test_books_close_at_every_moment(place):
    """As echellectl sees them while frames are dropped and others computed."""
    run = place.coordinator("--source", TOO_FAST, "--workers", 2, "--average", 16)
    place.running_status()
    for _ in range(10):
        status = json.loads(place.start(CONTROL, "--json", "status").finish().out)
        check_books(status)
    assert status["frames"]["dropped"]["overrun"] > 0
    run.process.terminate()
    assert run.finish().code == 0


def test_pauses_of_the_source_lose_nothing(place):
    """2.56 ms to a frame; those that fall due in a pause come in a burst afterwards."""
    faults = "pause-every=20&pause-ms=15&over-range-every=10"
    report = place.run_with_report(
        *["--source", f"sim:?channels=4&samples=256&rate=1e5&frames=200&{faults}"],
        *["--workers", 2, *QUICK],
    )
    check_books(report)
    assert report["frames"] == {"in": 200, "done": 200, "dropped": {}, "in_flight": 0}
    assert report["wall_s"] > 0.5  # 200 x 2.56 ms: it did keep the pace


def test_a_source_that_can_wait_loses_nothing(place):
    """The slowest coordinator there is: one worker, a short ring, wide medians."""
    for source in ["sim:?channels=8&frames=600&pace=asap&generate=once", f"{TOO_FAST}&frames=400"]:
        report = place.run_with_report(
            *["--source", source, "--workers", 1, "--ring-frames", 40, "--on-overrun", "block"],
            *["--average", 8, "--average-mode", "median"],
        )
        check_books(report)
        assert report["frames"]["dropped"] == {}
        assert report["frames"]["in"] == report["frames"]["done"] in (600, 400)


def producer(place, ring, *arguments):
    """A simulator of its own, with a ring that has come into being."""
    started = place.start(SIMULATOR, "--ring", ring, *arguments)
    region = f"/dev/shm/echelle-{ring}"
    assert wait_until(lambda: os.path.exists(region) or started.has_ended())
    assert not started.has_ended(), started.finish().err
    return started


def counts_of(finished):
    """published, dropped, repeated, late: the simulator's last words."""
    assert finished.code == 0, finished.err
    return [int(number) for number in re.findall(r"\d+", finished.err)]


def test_a_ring_whose_producer_waits(place):
    keys = ["--channels", 6, "--samples", 512, "--frames", 700, "--seed", 3, "--drop-every", 50]
    ring = place.path.name
    simulator = producer(place, ring, "--pace", "asap", "--ring-frames", 64, *keys)
    outside, inside = place.output / "outside", place.output / "inside"
    report = place.run_with_report(
        *["--source", f"ring:{ring}", "--on-overrun", "block", "--workers", 2],
        *["--record", outside, *QUICK],
    )
    assert counts_of(simulator.finish())[:3] == [686, 14, 0]
    check_books(report)
    # The last one lost is frame 699 itself, which nothing follows.
    assert report["frames"]["dropped"] == {"lost_by_source": 13}
    assert (report["frames"]["in"], report["frames"]["done"]) == (699, 686)

    uri = "&".join(f"{k[2:]}={v}" for k, v in zip(keys[::2], keys[1::2]))
    place.run(
        *["--source", f"sim:?pace=asap&{uri}", "--workers", 2, "--record", inside, *QUICK]
    )
    assert without_worker(outside) == without_worker(inside)


def test_a_ring_whose_producer_never_waits(place):
    ring = place.path.name
    keys = ["--channels", 32, "--rate", "1e9", "--frames", 200_000, "--ring-frames", 64]
    simulator = producer(place, ring, *keys)
    report = place.run_with_report("--source", f"ring:{ring}", "--workers", 2)
    published = counts_of(simulator.finish())[0]
    check_books(report)
    frames = report["frames"]
    assert set(frames["dropped"]) <= OVERRUN and frames["dropped"]["overrun"] > 0
    assert 0 < frames["in"] <= published == 200_000
    assert frames["in_flight"] == 0


def test_a_ring_in_real_time(place):
    ring = place.path.name
    keys = ["--channels", 4, "--samples", 256, "--rate", "1e5", "--frames", 500, "--ring-frames", 1000]
    simulator = producer(place, ring, *keys)
    report = place.run_with_report("--source", f"ring:{ring}", "--workers", 2, *QUICK)
    assert counts_of(simulator.finish())[0] == 500
    check_books(report)
    frames = report["frames"]
    assert frames["dropped"] == {} and 0 < frames["done"] == frames["in"] <= 500


def test_only_as_many_frames_as_asked(place):
    report = place.run_with_report("--source", "sim:?channels=4&pace=asap", "--frames", 123)
    check_books(report)
    assert report["frames"]["done"] == report["frames"]["in"] == 123
