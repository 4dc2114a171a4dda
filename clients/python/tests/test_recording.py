"""Recordings put together from golden packets, and the command line that prints them."""

import io
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc

import golden
import pytest

import echelle
from echelle import PacketBadCrc, PacketTooShort, RecordingTruncated, read_recording

REAL = golden.read("v1_1_real")
COMPLEX = golden.read("v1_1_complex")
OLD = golden.read("v1_0_real")
DAMAGED = golden.read("bad_crc_data")


def recording_of(*packets):
    return b"".join(struct.pack(">I", len(packet)) + packet for packet in packets)


class ShortReads(io.RawIOBase):
    """A file that gives a few bytes at a time, as a pipe may."""

    def __init__(self, content, most):
        self.content, self.most = io.BytesIO(content), most

    def read(self, count=-1):
        return self.content.read(min(count, self.most))


def test_every_packet_in_order(tmp_path):
    path = tmp_path / "spectra"
    path.write_bytes(recording_of(REAL, COMPLEX, OLD))
    for source in (path, str(path), io.BytesIO(path.read_bytes())):
        assert [packet.channel_id for packet in read_recording(source)] == [3, 127, 3]


def test_an_empty_recording_holds_nothing():
    assert list(read_recording(io.BytesIO())) == []


def test_packets_outlive_their_recording():
    first, second = read_recording(io.BytesIO(recording_of(REAL, OLD)))
    assert first.values().tolist() == second.values().tolist()


@pytest.mark.parametrize("most", [1, 3, 7])
def test_short_reads_are_put_together(most):
    content = recording_of(REAL, COMPLEX)
    assert [p.channel_id for p in read_recording(ShortReads(content, most))] == [3, 127]
    with pytest.raises(RecordingTruncated):
        list(read_recording(ShortReads(content[:-1], most)))


def test_cut_off_anywhere():
    content = recording_of(REAL, COMPLEX)
    second = 4 + len(REAL)
    for length in range(1, len(content)):
        if length == second:
            continue
        recording = read_recording(io.BytesIO(content[:length]))
        seen = []
        with pytest.raises(RecordingTruncated) as caught:
            for packet in recording:
                seen.append(packet.channel_id)
        assert seen == ([] if length < second else [3])
        assert caught.value.offset == (0 if length < second else second)
        assert str(caught.value.offset) in str(caught.value)
        assert list(recording) == []


def test_a_bad_packet_does_not_hide_the_next():
    recording = read_recording(io.BytesIO(recording_of(REAL, DAMAGED, b"", COMPLEX)))
    assert next(recording).channel_id == 3
    with pytest.raises(PacketBadCrc, match="record at byte 156: ") as caught:
        next(recording)
    assert caught.value.offset == 4 + len(REAL)
    with pytest.raises(PacketTooShort):
        next(recording)
    assert next(recording).channel_id == 127
    with pytest.raises(StopIteration):
        next(recording)


def test_a_false_length_reserves_no_memory():
    content = b"\xff\xff\xff\xff" + bytes(100)
    tracemalloc.start()
    try:
        with pytest.raises(RecordingTruncated, match="100 of 4294967295 bytes"):
            next(read_recording(io.BytesIO(content)))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_packet_above_the_size_of_one_read():
    fft_size = 600_000
    golden_1_0 = struct.pack(">4I", 0x00010000, 0, 5, fft_size)
    packet = golden_1_0 + struct.pack(">I", crc32(golden_1_0)) + bytes(4 * fft_size)
    (read,) = read_recording(io.BytesIO(recording_of(packet)))
    assert read.fft_size == fft_size and len(read.values()) == fft_size


def crc32(content):
    """Bit by bit, from the polynomial."""
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB88320 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def test_files_given_open_stay_open_and_paths_are_closed(tmp_path):
    file = io.BytesIO(recording_of(REAL))
    list(read_recording(file))
    assert not file.closed
    path = tmp_path / "spectra"
    path.write_bytes(recording_of(REAL, REAL))
    with read_recording(path) as recording:
        next(recording)
    assert list(recording) == []
    assert recording._file.closed


def test_a_text_file_is_refused():
    with pytest.raises(TypeError, match="'rb'"):
        next(read_recording(io.StringIO("text")))


def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_recording(tmp_path / "none")


def test_truncation_survives_pickling():
    error = pickle.loads(pickle.dumps(RecordingTruncated(7, "cut off")))
    assert error.offset == 7 and str(error) == "record at byte 7: cut off"


def run(*arguments, stdin=b""):
    return subprocess.run(
        [sys.executable, "-m", "echelle", *map(str, arguments)],
        input=stdin,
        env=dict(os.environ, PYTHONPATH=os.path.dirname(echelle.__path__[0])),
        capture_output=True,
    )


def test_the_command_prints_a_line_per_spectrum(tmp_path):
    path = tmp_path / "spectra"
    path.write_bytes(recording_of(REAL, COMPLEX, OLD, golden.read("v1_1_no_values")))
    answer = run(path)
    assert answer.returncode == 0 and answer.stderr == b""
    assert answer.stdout.decode().splitlines() == [
        "channel 3  sequence 41  2024-05-01T12:34:56.123456789Z  5 bins  mean -0.25 counts"
        "  peak 2500000 Hz: 1.04858e+06 counts^2/Hz  over_range",
        "channel 127  sequence 9223372036854775813  1930-11-18T00:28:29.876543211Z  8 bins"
        "  mean 0.125 V  peak 0 Hz: 1 V^2  gap_before  incomplete  partial",
        "channel 3  sequence -  305419896 us mod 2^32  5 bins  mean -"
        "  peak value 2: 1.04858e+06",
        "channel 4  sequence 41  2024-05-01T12:34:56.123456789Z  0 bins  mean -0.25 counts"
        "  peak -  over_range",
    ]
    assert run("-", stdin=path.read_bytes()).stdout == answer.stdout


def test_the_command_prints_any_golden_packet():
    content = recording_of(*(golden.read(entry) for entry in golden.VALID))
    answer = run("-", stdin=content)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == len(golden.VALID)


def test_the_command_reports_what_is_bad_and_prints_the_rest(tmp_path):
    path = tmp_path / "spectra"
    path.write_bytes(recording_of(REAL, DAMAGED, COMPLEX) + b"\0\0")
    answer = run(path)
    assert answer.returncode == 2
    assert len(answer.stdout.splitlines()) == 2
    errors = answer.stderr.decode().splitlines()
    assert errors[0].startswith(f"echelle: {path}: record at byte 156: bad CRC")
    assert errors[1:] == [
        f"echelle: {path}: record at byte 480: "
        "the recording ends after 2 of 4 bytes of its length"
    ]


def test_the_command_refuses_what_it_cannot_read(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        answer = run(path)
        assert answer.returncode == 2 and answer.stdout == b""
        (line,) = answer.stderr.decode().splitlines()
        assert line.startswith(f"echelle: {path}: ")
    assert run().returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_the_command_reports_a_full_disk(tmp_path):
    path = tmp_path / "spectra"
    path.write_bytes(recording_of(REAL))
    with open("/dev/full", "wb") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "echelle", str(path)],
            env=dict(os.environ, PYTHONPATH=os.path.dirname(echelle.__path__[0])),
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert answer.returncode == 1
    (line,) = answer.stderr.decode().splitlines()
    assert line.startswith("echelle: standard output: No space left on device")


def test_the_command_ends_quietly_when_its_reader_has_gone():
    content = recording_of(*[REAL] * 5000)
    process = subprocess.Popen(
        [sys.executable, "-m", "echelle", "-"],
        env=dict(os.environ, PYTHONPATH=os.path.dirname(echelle.__path__[0])),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, stderr = process.communicate(content)
    assert process.returncode == 0 and stderr == b""
