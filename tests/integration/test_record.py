"""echelle-record: what stands in the file, while it grows, after a death, and on a full disk.

Packets are taken apart with struct, files are read with h5py: neither is code of ours.
"""

import shutil
import signal
import struct
import subprocess
import time
import zlib

import h5py
import numpy as np
import pytest
import zmq
from cluster import BINARIES, Workplace, read_report, wait_until
from packet_bytes import records

RECORD = BINARIES / "echelle-record"
# 98 spectra a second of each of 4 channels, with room for a busy machine.
CALM = ["--source", "sim:?channels=4&samples=256&rate=1e5", "--workers", 1, "--nperseg", 256,
        "--average", 4]  # fmt: skip
BINS, MISSING = 129, 0x8000
WINDOW_CODES = {1: "hann"}


def fields(packet):
    """docs/packet.md, by hand."""
    channel, bins = struct.unpack_from(">II", packet, 8)
    at = 20 + 4 * bins
    (flags, sequence, time_ns, first, numerator, denominator, first_hz, spacing_hz, nperseg,
     noverlap, averaged, expected, window) = struct.unpack_from(">HQqQQQddIIIIH", packet, at + 6)  # fmt: skip
    mean, rms, over_range = struct.unpack_from(">ffI", packet, at + 88)
    return {
        "channel": channel, "values": np.frombuffer(packet, "<f4", bins, 20), "flags": flags,
        "sequence": sequence, "time": time_ns, "first_sample": first, "segments_averaged": averaged,
        "segments_expected": expected, "rate": numerator / denominator, "nperseg": nperseg,
        "noverlap": noverlap, "window": WINDOW_CODES[window], "mean": mean, "rms": rms,
        "over_range_count": over_range,
        "frequency": first_hz + np.arange(bins) * spacing_hz,
    }  # fmt: skip


def by_key(packets):
    found = map(fields, packets)
    return {(packet["channel"], packet["sequence"]): packet for packet in found}


def check_equal(file, made):
    """Every spectrum of the file is that packet; gives how many there are."""
    rows = {name: dataset[:] for name, dataset in file.items()}
    count = len(rows["time"])
    assert all(len(rows[name]) == count for name in rows if name not in ("channel", "frequency"))
    seen = 0
    for row in range(count):
        for place, channel in enumerate(rows["channel"]):
            if rows["flags"][row, place] & MISSING:
                assert np.isnan(rows["spectra"][row, place]).all()
                continue
            packet = made[channel, rows["sequence"][row, place]]
            assert np.array_equal(rows["spectra"][row, place], packet["values"])
            for name in ("flags", "segments_averaged", "over_range_count", "mean", "rms"):
                assert rows[name][row, place] == np.asarray(packet[name], rows[name].dtype), name
            for name in ("time", "first_sample", "segments_expected"):
                assert rows[name][row] == packet[name], name
            seen += 1
    return seen


def opened(path):
    """A file that is being written; the recorder locks it for a moment when it opens it."""
    found = []

    def try_to_open():
        try:
            found.append(h5py.File(path, "r", swmr=True))
        except (BlockingIOError, FileNotFoundError):
            return False
        return True

    assert wait_until(try_to_open)
    return found[0]


def check_sums(report):
    spectra = report["spectra"]
    assert spectra["received"] == spectra["written"] + sum(spectra["dropped"].values()), report
    assert sum(file["rows"] for file in report["files"]) == report["rows"]["written"]
    return spectra


def record(place, *arguments, code=0):
    finished = place.start(RECORD, *arguments).finish()
    assert finished.code == code, finished.err
    if code:
        assert len(finished.error_lines) == 1 and finished.out == ""
    return finished


@pytest.fixture(scope="module")
def recording(cache):
    """A recording of 300 spectra of each of 4 channels, and its packets."""
    place = Workplace(cache)
    try:
        path = place.output / "all.rec"
        place.run("--source", "sim:?channels=4&samples=256&rate=1e5&pace=asap", "--workers", 1,
                  "--nperseg", 256, "--average", 4, "--frames", 1200, "--on-overrun", "block",
                  "--record", path)  # fmt: skip
        packets = list(records(path.read_bytes()))
        assert len(packets) == 1200
        yield path, packets
    finally:
        place.leave()


def test_a_file_that_grows_equals_the_packets(place):
    made_path = place.output / "all.rec"
    run = place.coordinator(*CALM, "--record", made_path)
    paths = {name: place.output / f"{name}.h5" for name in ("ring", "feed")}
    recorders = {}
    recorders["ring"] = place.start(RECORD, paths["ring"], "--report", place.output / "ring.json",
                                    "--flush-seconds", 0.2)  # fmt: skip
    # A file is there with its first row: only then is all that the other one does not want wanted.
    assert wait_until(paths["ring"].exists)
    recorders["feed"] = place.start(RECORD, paths["feed"], "--report", place.output / "feed.json",
                                    "--channels", "3,1", "--compression", 0,
                                    "--flush-seconds", 0.2)  # fmt: skip
    assert wait_until(paths["feed"].exists)
    lengths = []
    with opened(paths["ring"]) as growing:
        deadline = time.monotonic() + 30
        while (not lengths or lengths[-1] < 100) and time.monotonic() < deadline:
            growing["time"].refresh()
            growing["spectra"].refresh()
            lengths.append(len(growing["time"]))
            # It may have begun in the midst of a row.
            assert np.isfinite(growing["spectra"][1 : lengths[-1]]).all()
            assert (growing["time"][: lengths[-1]] > 0).all()
            time.sleep(0.05)
    assert lengths[-1] >= 100 and len(set(lengths)) > 3
    recorders["feed"].send(signal.SIGTERM)
    assert recorders["feed"].finish().code == 0
    assert place.control("stop").code == 0
    assert run.finish().code == 0
    assert recorders["ring"].finish().code == 0
    packets = list(records(made_path.read_bytes()))
    made = by_key(packets)
    for name, path in paths.items():
        report = read_report(place.output / f"{name}.json")
        spectra = check_sums(report)
        assert report["input"] == name and spectra["missed"] == 0 and spectra["dropped"] == {}
        with h5py.File(path, "r") as file:
            assert check_equal(file, made) == spectra["written"] > 100
            assert list(file["channel"]) == ([0, 1, 2, 3] if name == "ring" else [1, 3])
            # From the first one on, nothing is missing.
            assert (np.diff(file["sequence"][1:], axis=0) == 1).all()
    # The run's last spectra, that ended it, are there.
    with h5py.File(paths["ring"], "r") as file:
        assert file["sequence"][-1, 0] == max(key[1] for key in made)
        first = fields(packets[0])
        assert file["spectra"].shape[2] == BINS
        assert file["spectra"].attrs["units"] == "counts^2/Hz"
        assert [list(dim.keys()) for dim in file["spectra"].dims] == [
            ["time"], ["channel"], ["frequency"]]  # fmt: skip
        assert np.array_equal(file["frequency"][:], first["frequency"])
        assert file["frequency"].attrs["units"] == "Hz"
        assert file.attrs["sample_rate_hz"] == first["rate"] == 1e5
        assert (file.attrs["nperseg"], file.attrs["noverlap"]) == (256, 128)
        assert (file.attrs["window"], file.attrs["scaling"]) == (first["window"], "density")
        assert (file.attrs["detrend"], file.attrs["average"]) == ("constant", "mean")


def test_killed_recorders_leave_what_they_flushed_and_are_continued(place):
    made_path, path = place.output / "all.rec", place.output / "a.h5"
    run = place.coordinator(*CALM, "--record", made_path)

    def rows():
        with opened(path) as file:
            return len(file["time"])

    before = 0
    for _ in range(3):
        recorder = place.start(RECORD, path, "--flush-seconds", 0.1)
        assert wait_until(lambda: rows() > before + 5)
        before = rows()
        recorder.send(signal.SIGKILL)
        recorder.finish()
        with pytest.raises(OSError):
            h5py.File(path, "r+")  # it says that it is being written
        left = rows()
        assert left >= before  # all that was seen is still there
        before = left
    report_path = place.output / "report.json"
    finished = record(place, path, "--spectra", 20, "--report", report_path)
    assert f"was left open by a writer that was killed; it goes on behind row {before}" in finished.err
    assert place.control("stop").code == 0
    assert run.finish().code == 0
    report = read_report(report_path)
    check_sums(report)
    assert report["files"][0]["rows_before"] == before and report["rows"]["written"] == 20
    with h5py.File(path, "r+") as file:  # nothing is left to be repaired
        seen = check_equal(file, by_key(records(made_path.read_bytes())))
        missing = (file["flags"][:] & MISSING != 0).sum()  # where it began in the midst of a row
        assert seen + missing == 4 * (before + 20) and missing < 4 * 4
        assert (np.diff(file["time"][:]) > 0).all()
        assert set(file["run"][:]) == {0, 1, 2, 3}


@pytest.mark.parametrize("options", [[], ["--compression", 0], ["--compression", 9],
                                     ["--flush-seconds", 0.01], ["--channels", "2"]])  # fmt: skip
def test_a_recording_becomes_the_same_file(place, recording, options):
    source, packets = recording
    path = place.output / "a.h5"
    record(place, "--from", source, path, *options)
    with h5py.File(path, "r") as file:
        channels = [2] if "--channels" in options else [0, 1, 2, 3]
        assert list(file["channel"]) == channels
        assert check_equal(file, by_key(packets)) == 300 * len(channels)
        level = options[1] if "--compression" in options else 1
        assert file["spectra"].compression_opts == (level or None)
        assert file["spectra"].shuffle == (level > 0)


@pytest.mark.parametrize("options", [["--roll-seconds", 1], ["--roll-bytes", 262144]])
def test_rolling_files_share_all_rows(place, recording, options):
    """And a recorder that comes back goes on in the last one."""
    source, packets = recording
    made = by_key(packets)
    report = place.output / "report.json"
    arguments = [place.output / "a.h5", *options, "--compression", 0, "--report", report,
                 "--flush-seconds", 0.1]  # fmt: skip
    record(place, "--from", source, *arguments)
    spectra = check_sums(read_report(report))
    assert spectra["written"] == 1200 and spectra["dropped"] == {}
    paths = sorted(place.output.glob("a-*.h5"))
    assert [path.name for path in paths] == [f"a-{i:05}.h5" for i in range(len(paths))]
    # 300 spectra of 10.24 ms; 624 KiB, and the files' own structure.
    if "--roll-seconds" in options:
        assert len(paths) == 4
    else:
        assert len(paths) > 1 and all(path.stat().st_size >= 262144 for path in paths[:-1])
    times = []
    for path in paths:
        with h5py.File(path, "r") as file:
            times.append(file["time"][:])
            check_equal(file, made)
            if "--roll-seconds" in options:
                assert times[-1][-1] - times[-1][0] < 1_000_000_000
    assert (np.diff(np.concatenate(times)) > 0).all() and sum(map(len, times)) == 300
    record(place, "--from", source, *arguments, "--spectra", 1)
    assert read_report(report)["files"][0]["path"] == str(paths[-1])


def test_files_that_cannot_be_used(place, recording):
    source, _ = recording
    path = place.output / "a.h5"
    record(place, "--from", source, path, "--spectra", 10)
    whole = path.read_bytes()

    def refused(*words, arguments=()):
        finished = record(place, "--from", source, path, *arguments, code=2)
        assert all(word in finished.err for word in words), finished.err

    refused("another shape", "number of channels 4 there and 1 here", arguments=["--channels", "1"])
    assert path.read_bytes() == whole
    path.write_bytes(b"no HDF5" * 100)
    refused("is not a file of echelle-record")
    damaged = bytearray(whole)
    damaged[30] ^= 1  # in the superblock's end-of-file address
    path.write_bytes(damaged)
    refused("is damaged", "superblock")
    assert path.read_bytes() == damaged
    path.unlink()
    with h5py.File(path, "w", libver="latest") as foreign:
        foreign["x"] = 1
    refused("is not a file of echelle-record")
    path.unlink()
    path.mkdir()
    refused("cannot write")
    path.rmdir()
    finished = record(place, "--from", source, place.output / "none/a.h5", code=2)
    assert "No such file or directory" in finished.err
    for text, words in ((["--spectra", "0"], "--spectra"), (["--compression", "10"], "--compression"),
                        (["--name", "a/b"], "a/b"), (["--endpoint", "nowhere"], "ipc:///path"),
                        (["--key", "x"], "--server-key"), (["--roll-byte", "1"], "--roll-byte"),
                        (["--from", "/dev/null"], "not a regular file")):  # fmt: skip
        finished = record(place, path, *text, code=2)
        assert words in finished.err, finished.err
    finished = record(place, path, "--wait", "0.2", code=1)
    assert "no feed says hello" in finished.err and "--wait" in finished.err


def test_two_recorders_on_one_file(place):
    run = place.coordinator(*CALM)
    path = place.output / "a.h5"
    first = place.start(RECORD, path)
    assert wait_until(path.exists)
    finished = record(place, path, code=2)
    assert f"another echelle-record writes {path}" in finished.err
    assert place.control("stop").code == 0
    assert run.finish().code == 0 and first.finish().code == 0
    with h5py.File(path, "r") as file:
        assert len(file["time"]) > 0


def repacked(packet, offset=None, value=b""):
    """The packet with bytes of its trailer changed, and the CRC over it made right."""
    packet = bytearray(packet)
    at = len(packet) - 112
    if offset is not None:
        packet[at + offset : at + offset + len(value)] = value
    packet[-4:] = struct.pack(">I", zlib.crc32(packet[at:-4]))
    return bytes(packet)


def without_trailer(packet):
    header = struct.pack(">I", 0x00010000) + packet[4:16]
    return header + struct.pack(">I", zlib.crc32(header)) + packet[20:-112]


def test_rubbish_from_a_false_publisher(place, recording):
    """Each packet that is none, or does not fit, is counted by its cause; the rest stands there."""
    rows = [recording[1][4 * row : 4 * row + 4] for row in range(6)]
    of_channel_9 = bytearray(rows[0][0])
    of_channel_9[8:12] = struct.pack(">I", 9)
    of_channel_9[16:20] = struct.pack(">I", zlib.crc32(of_channel_9[:16]))
    flipped = bytearray(rows[1][1])
    flipped[100] ^= 4
    sent = [
        *rows[0],
        b"", b"rubbish", rows[1][0][:-1], bytes(flipped), rows[1][0] + b"x",  # 5 bad
        without_trailer(rows[1][0]),
        repacked(rows[1][0], 64, struct.pack(">I", 512)),  # another nperseg
        bytes(of_channel_9),
        rows[1][0], rows[1][0],  # repeated
        rows[0][2],  # late
        *rows[2],  # row 1 is over, with one channel of four
        *rows[4],  # row 3 never comes: 4 missed, beside the 3 of row 1
        *rows[5][:2],
    ]  # fmt: skip
    endpoint = f"ipc://{place.output}/false"
    publisher = zmq.Context.instance().socket(zmq.XPUB)
    publisher.set(zmq.XPUB_VERBOSE, 1)
    publisher.set(zmq.LINGER, 0)
    publisher.set(zmq.SNDHWM, 0)
    publisher.set(zmq.RCVTIMEO, 30_000)
    publisher.bind(endpoint)
    path, report = place.output / "a.h5", place.output / "report.json"
    recorder = place.start(RECORD, path, "--endpoint", endpoint, "--report", report)
    while publisher.recv() != b"\1psd/":
        publisher.send_multipart([b"hello/", b'{"feed": 1, "channels": 4}'])
    for packet in sent:
        publisher.send_multipart([b"psd/00000", packet])
    publisher.send_multipart([b"other/", b"\0" * 1000])
    publisher.send_multipart([b"event/end", b"no JSON"])
    finished = recorder.finish()
    publisher.close()
    assert finished.code == 0, finished.err
    spectra = check_sums(read_report(report))
    assert spectra == {
        "received": len(sent), "written": 15, "missed": 7,
        "dropped": {"bad_packet": 5, "no_trailer": 1, "other_shape": 1, "unknown_channel": 1,
                    "late": 1, "repeated": 1},
    }  # fmt: skip
    with h5py.File(path, "r") as file:
        assert check_equal(file, by_key(recording[1])) == 15
        missing = file["flags"][:] & MISSING != 0
        assert missing.sum(axis=1).tolist() == [0, 3, 0, 0, 2]


@pytest.mark.parametrize("hello", [b"", b"{}", b"[1]", b'{"feed": 2, "channels": 4}',
                                   b'{"feed": 1, "channels": 99999999}', b"\xff\x00"])  # fmt: skip
def test_a_false_hello(place, hello):
    endpoint = f"ipc://{place.output}/false"
    publisher = zmq.Context.instance().socket(zmq.XPUB)
    publisher.set(zmq.LINGER, 0)
    publisher.bind(endpoint)
    recorder = place.start(RECORD, place.output / "a.h5", "--endpoint", endpoint, "--wait", 1)
    while not recorder.has_ended():
        if publisher.poll(50):
            publisher.recv()
            publisher.send_multipart([b"hello/", hello])
    publisher.close()
    finished = recorder.finish()
    assert finished.code == 1 and len(finished.error_lines) == 1
    assert ("not a feed" if hello else "no feed says hello") in finished.err
    assert not (place.output / "a.h5").exists()


def test_a_cut_recording(place, recording):
    source, packets = recording
    cut = place.output / "cut.rec"
    cut.write_bytes(source.read_bytes()[:-10])
    report = place.output / "report.json"
    record(place, "--from", cut, place.output / "a.h5", "--report", report)
    spectra = check_sums(read_report(report))
    assert spectra == {"received": 1200, "written": 1199, "missed": 0, "dropped": {"bad_packet": 1}}
    with h5py.File(place.output / "a.h5", "r") as file:
        assert check_equal(file, by_key(packets)) == 1199


# ---- no room

@pytest.fixture
def small_disk(place):
    """The words before a command that runs with an own 4.5 MiB at PLACE/disk, which is then copied."""
    disk = place.path / "disk"
    disk.mkdir()
    script = (f'mount -t tmpfs -o size=4608k none {disk} && "$@"; code=$?; '
              f"cp {disk}/* {place.output}; exit $code")  # fmt: skip
    program = shutil.which("unshare")
    for more in ([], ["--user", "--map-root-user"]):
        words = [program, *more, "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
        if program and subprocess.run([*words, "touch", f"{disk}/x"], capture_output=True).returncode == 0:
            return disk, words
    pytest.skip("no mount namespace can be made here")


def test_a_full_disk_costs_rows_and_each_is_counted(place, recording, small_disk):
    source, packets = recording
    disk, words = small_disk
    report = place.output / "report.json"
    finished = place.start(*words, RECORD, "--from", source, disk / "a.h5", "--compression", 0,
                           "--flush-seconds", 0.2, "--report", report).finish()  # fmt: skip
    assert finished.code == 0, finished.err
    assert [line for line in finished.error_lines if "disk full" in line]
    assert len(finished.error_lines) <= 2
    spectra = check_sums(read_report(report))
    assert spectra["received"] == 1200 and spectra["dropped"].keys() == {"disk_full"}
    assert 0 < spectra["written"] < 1200
    with h5py.File(place.output / "a.h5", "r") as file:
        assert check_equal(file, by_key(packets)) == spectra["written"]


def test_a_write_that_fails_ends_it_and_leaves_what_was_flushed(place, recording):
    source, packets = recording
    report, path = place.output / "report.json", place.output / "a.h5"
    finished = place.start("prlimit", f"--fsize={300 * 1024}", RECORD, "--from", source, path,
                           "--compression", 0, "--flush-seconds", 0.2, "--report", report).finish()  # fmt: skip
    assert finished.code == 1 and len(finished.error_lines) == 1
    assert f"cannot write {path}: File too large" in finished.err
    found = read_report(report)
    spectra = check_sums(found)
    assert "File too large" in found["failure"]
    assert spectra["dropped"].keys() == {"write_failed"}
    made = by_key(packets)
    with h5py.File(path, "r", swmr=True) as file:
        rows = len(file["time"])
        assert rows <= 300
    record(place, "--from", source, path)  # and it is continued
    with h5py.File(path, "r") as file:
        assert check_equal(file, made) == 4 * (rows + 300)
