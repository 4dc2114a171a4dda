"""Wrong usage and unreadable input: exit code 2, one line that names thing, value and remedy."""

import os
import resource

import numpy as np
import pytest
import scipy.io.wavfile
from bad_sources import dead_pid, garbage, ring_header, write_ring, write_sigmf
from cluster import BINARIES, CONTROL, COORDINATOR, SIMULATOR

QUICKLY_S = 10


def refuse(place, arguments, words, **options):
    """Runs a coordinator that must refuse; what it says must hold all these words."""
    record = place.output / "never"
    if "--record" not in arguments:
        arguments = [*arguments, "--record", record]
    # Plans that were searched for long enough are told on a line of their own, the first time.
    quick = [] if "--fft-effort" in arguments else ["--fft-effort", "estimate"]
    finished = place.start(COORDINATOR, *quick, *arguments, **options).finish(QUICKLY_S)
    check_refusal(finished, "echelle-coordinator", words)
    assert not record.exists()
    return finished


def check_refusal(finished, program, words):
    assert finished.code == 2, (finished.code, finished.err)
    assert len(finished.error_lines) == 1, finished.err
    assert finished.err.startswith(f"{program}: ") and finished.out == ""
    for word in words:
        assert word in finished.err, f"'{word}' is not in: {finished.err}"


# Options and URIs alone: what is typed, and words that the refusal must hold.
TYPED = [
    (["--source", "nosuch:x"], ["nosuch", "sim:", "raw:", "sigmf:", "ring:"]),
    (["--source", "capture.bin"], ["capture.bin", "no file", "scheme", "raw:"]),
    (["--source", "sim:?colour=red"], ["colour", "it takes"]),
    (["--source", "sim:?channels=0"], ["channels 0", "give 1 to"]),
    (["--source", "sim:?channels=2&channels=3"], ["channels", "twice"]),
    (["--source", "sim:?channels=many"], ["channels=many", "give"]),
    (["--source", "sim:?signal=tone("], ["signal", "character 6", "write a number"]),
    (["--source", "sim:?pace=slow"], ["pace=slow", "give realtime or asap"]),
    (["--source", "sim:/a/path"], ["/a/path", "sim:?key=value"]),
    (["--source", "sim:?channels=4", "--channels", "8"], ["--channels 8", "says 4", "leave"]),
    (["--source", "sim:?samples=64", "--samples", "128"], ["--samples 128", "says 64", "leave"]),
    (["--source", "sim:?rate=1e6", "--rate", "2e6"], ["--rate 2000000", "says 1000000", "leave"]),
    (["--source", "sim:?format=i16", "--format", "ci16"], ["--format ci16", "says i16", "leave"]),
    (["--source", "udp:127.0.0.1:45993?framing=vita49&rate=1&channels=2", "--channels", "3"],
     ["--channels 3", "says 2", "leave"]),
    (["--source", "udp:127.0.0.1:9?framing=vita49&rate=1&streams=1,2&channels=3"],
     ["3 channels", "2 streams"]),
    (["--source", "udp:127.0.0.1:9?framing=vita49&rate=1&streams=1,0x1"], ["streams", "twice"]),
    (["--source", "udp:127.0.0.1:9?framing=vita49&rate=1&streams=1,"], ["streams=1,", "0x1A"]),
    (["--source", "udp:127.0.0.1:9?framing=vita49&rate=1&streams=1&stream=1"], ["one of them"]),
    (["--source", "sim:?frames=3&duration=1"], ["frames", "duration", "give one"]),
    (["--source", "raw:?channels=1&rate=1"], ["names no file", "raw:capture.bin"]),
    (["--source", "raw:missing.bin?channels=1&rate=1"], ["missing.bin", "No such file"]),
    (["--source", "sigmf:missing"], ["missing.sigmf-meta", "No such file"]),
    (["--source", "sigmf:archive.sigmf"], ["archive.sigmf", "No such file"]),
    (["--source", "ring:no-such-ring"], ["no-such-ring", "start its producer"]),
    (["--source", "ring:"], ["names no ring", "ring:NAME"]),
    (["--source", "ring:a/b"], ["a/b", "letters"]),
    (["--nperseg", "0"], ["--nperseg '0'", "from 1 to"]),
    (["--nperseg", "-5"], ["--nperseg '-5'", "from 1 to"]),
    (["--nperseg", "12abc"], ["--nperseg '12abc'", "whole number"]),
    (["--nperseg", "99999999999999999999"], ["99999999999999999999", "from 1 to"]),
    (["--noverlap", "1024"], ["1024", "less than nperseg"]),
    (["--nperseg", "100", "--noverlap", "100"], ["noverlap is 100", "less than nperseg, 100"]),
    (["--window", "triangle"], ["triangle", "hann", "kaiser,BETA"]),
    (["--window", "kaiser"], ["kaiser", "kaiser,8.6"]),
    (["--window", "kaiser,nan"], ["kaiser,nan", "finite"]),
    (["--window", "tukey,1.5"], ["tukey,1.5", "1"]),
    (["--window", "hann,3"], ["hann,3"]),
    (["--detrend", "linear"], ["linear", "none or constant"]),
    (["--scaling", "power"], ["power", "density or spectrum"]),
    (["--average-mode", "mode"], ["'mode'", "mean, median or max"]),
    (["--average", "0"], ["--average '0'", "from 1"]),
    (["--average", "0s"], ["--average '0'", "above 0"]),
    (["--average", "some"], ["--average 'some'"]),
    (["--average", "all", "--average-mode", "median"], ["median", "give --average"]),
    (["--volts-per-count", "0"], ["--volts-per-count '0'", "above 0"]),
    (["--volts-per-count", "inf"], ["--volts-per-count 'inf'", "number"]),
    (["--workers", "0"], ["--workers '0'", "from 1 to"]),
    (["--workers", "70000"], ["--workers '70000'", "65535"]),
    (["--workers", "4..2"], ["4..2", "MIN..MAX"]),
    (["--workers", "two"], ["--workers 'two'", "whole number"]),
    (["--pin", "0-"], ["0-", "CPU"]),
    (["--pin", "4000"], ["4000", "CPU"]),
    (["--notify", "smoke"], ["smoke", "zmq", "futex"]),
    (["--fft-effort", "some"], ["some", "estimate"]),
    (["--on-overrun", "wait"], ["wait", "drop or block"]),
    (["--pair-channels", "yes"], ["yes", "on or off"]),
    (["--block-channels", "0"], ["--block-channels '0'", "from 1"]),
    (["--block-frames", "x"], ["--block-frames 'x'", "whole number"]),
    (["--ring-frames", "1"], ["--ring-frames '1'", "from 2"]),
    (["--ring-frames", "4"], ["--ring-frames 4", "at least"]),
    (["--ring-frames", "1048576"], ["ring", "MiB", "--ring-frames"]),  # 512 GiB of it
    (["--rate", "0"], ["--rate '0'", "positive number"]),
    (["--rate", "fast"], ["--rate 'fast'", "48000"]),
    (["--channels", "0"], ["--channels '0'", "from 1"]),
    (["--format", "float"], ["float", "i16 or ci16"]),
    (["--layout", "diagonal"], ["diagonal", "channel-major"]),
    (["--duration", "0"], ["--duration '0'", "above 0"]),
    (["--frames", "-1"], ["--frames '-1'", "from 1"]),
    (["--budget-us", "0"], ["--budget-us '0'", "above 0"]),
    (["--name", "a/b"], ["a/b", "letters"]),
    (["--name", "x" * 65], ["xxx", "1 to 64"]),
    (["--control", "nowhere"], ["nowhere", "--control"]),
    (["--no-such-option"], ["--no-such-option", "--help"]),
    (["stray"], ["stray", "--help"]),
    (["--config", "missing.toml"], ["missing.toml"]),
]


@pytest.mark.parametrize("arguments, words", TYPED, ids=lambda value: " ".join(value)[:50])
def test_what_was_typed(place, arguments, words):
    refuse(place, arguments, words)


RAW = [
    ("channels=2&rate=48000", 1001, ["1001 bytes", "tail=drop"]),
    ("channels=2&rate=48000", 2, ["2 bytes", "tail=drop"]),
    ("channels=2&rate=48000&tail=drop", 2, ["2 bytes", "less than one sample", "check channels"]),
    ("rate=48000", 1000, ["how many channels", "--channels"]),
    ("channels=1", 1000, ["sample rate", "--rate"]),
    ("channels=1&rate=-3", 1000, ["rate '-3'", "positive"]),
    ("channels=1&rate=1/0", 1000, ["1/0", "zero"]),
    ("channels=1&rate=48000", 0, ["empty", "give a file"]),
    ("channels=1&rate=48000", 2046, ["--nperseg 1024", "1023 samples", "give 1023"]),
    ("channels=1&rate=48000&offset=5000", 4000, ["offset=5000", "4000", "smaller"]),
    ("channels=99999&rate=48000", 4000, ["channels 99999", "1 to 65536"]),
    ("channels=1&rate=48000&format=f32", 4000, ["format=f32", "i16"]),
    ("channels=1&rate=48000&endian=middle", 4000, ["endian=middle", "little or big"]),
    ("channels=1&rate=48000&samples=0", 4000, ["samples", "0", "give 1"]),
    ("channels=1&rate=48000&tail=keep", 4000, ["tail=keep", "tail=drop"]),
]


@pytest.mark.parametrize("keys, size, words", RAW, ids=lambda value: str(value)[:40])
def test_raw_files(place, keys, size, words):
    path = place.output / "x.raw"
    path.write_bytes(bytes(size))
    refuse(place, ["--source", f"raw:{path}?{keys}"], words)


def test_what_is_no_regular_file(place):
    os.mkfifo(place.output / "fifo")
    for path, kind in [(place.output / "fifo", "FIFO"), ("/dev/zero", "device"), ("/", "directory")]:
        refuse(place, ["--source", f"raw:{path}?channels=1&rate=1"], [kind, "regular file"])


METADATA = [
    ({"core:datatype": "rf32_le"}, None, ["core:datatype", "rf32_le", "convert"]),
    ({"core:datatype": "nonsense"}, None, ["core:datatype", "nonsense", "ri16_le"]),
    ({"core:datatype": 16}, None, ["core:datatype", "16", "string"]),
    ({"core:version": "7.0"}, None, ["core:version", "7.0", "1.x"]),
    ({"core:num_channels": "two"}, None, ["core:num_channels", "two", "whole number"]),
    ({"core:num_channels": 0}, None, ["core:num_channels", "1 to 65536"]),
    ({"core:num_channels": 3}, None, ["8000 bytes", "tail=drop"]),
    ({"core:sample_rate": "fast"}, None, ["core:sample_rate", "fast", "positive number"]),
    ({"core:sample_rate": -1}, None, ["core:sample_rate", "-1"]),
    ({"core:sample_rate": None}, None, ["core:sample_rate", "null"]),
    ({"core:dataset": "../secret"}, None, ["core:dataset", "../secret", "without a folder"]),
    ({"core:dataset": "/etc/passwd"}, None, ["core:dataset", "/etc/passwd", "without a folder"]),
    ({"core:dataset": "absent.bin"}, None, ["absent.bin", "No such file"]),
    ({"core:trailing_bytes": 9000}, None, ["core:trailing_bytes", "9000", "8000"]),
    ({"core:extensions": [{"name": "x", "optional": False}]}, None, ["extension", "x"]),
    (None, [{}], ["core:sample_start", "captures[0]"]),
    (None, [{"core:sample_start": 5000}], ["captures[0]", "5000", "8000"]),
    (None, [{"core:sample_start": 0, "core:datetime": "now"}], ["core:datetime", "now", "UTC"]),
    (None, "none", ["captures", "not an array"]),
]


@pytest.mark.parametrize("changes, captures, words", METADATA, ids=lambda value: str(value)[:40])
def test_sigmf_metadata(place, changes, captures, words):
    meta = write_sigmf(place.output, changes, captures)
    refuse(place, ["--source", f"sigmf:{meta}"], words)


TEXTS = ["", "{", "[]", "42", '"text"', "null", "{}", '{"global": 3}', "[" * 100_000, "\0\0\0"]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
def test_metadata_that_are_none(place, text):
    meta = write_sigmf(place.output, text=text)
    refuse(place, ["--source", f"sigmf:{meta}"], ["x.sigmf-meta"])


@pytest.mark.parametrize("seed", range(5))
def test_garbage_as_metadata(place, seed):
    meta = write_sigmf(place.output)
    meta.write_bytes(garbage(seed, 3000))
    refuse(place, ["--source", f"sigmf:{meta}"], ["x.sigmf-meta", "JSON"])


def test_metadata_contradicted(place):
    meta = write_sigmf(place.output)
    refuse(place, ["--source", f"sigmf:{meta}", "--channels", 64], ["--channels 64", "says 1"])
    refuse(place, ["--source", f"sigmf:{meta}", "--rate", 50], ["rate 50", "48000", "leave"])


RINGS = {
    "not a ring": ({"magic": b"NOTRING\0"}, ["magic", "ECHRING"]),
    "another version": ({"version": 0x00020003}, ["2.3", "1.0"]),
    "no channels": ({"channels": 0}, ["geometry", "channels 0"]),
    "unknown format": ({"format": 9}, ["format number 9", "i16"]),
    "unknown layout": ({"layout": 3}, ["layout number 3", "channel-major"]),
    "a huge frame": ({"channels": 65536, "samples": 16777216}, ["1 GiB", "fewer samples"]),
    "no rate": ({"rate_den": 0}, ["48000/0 Hz"]),
    "no rails": ({"low": 0, "high": 0}, ["over-range limits 0 and 0"]),
    "cut off": ({"region_bytes": 1 << 40}, ["cut off"]),
    "too many slots": ({"slot_count": 1 << 40}, ["slots", "do not fit"]),
    "overlapping slots": ({"slot_stride": 0}, ["8 slots of 0 bytes", "do not fit"]),
    "a stride off the page": ({"slot_stride": 4097}, ["4097", "do not fit"]),
    "frames in the table": ({"frames_offset": 0}, ["from byte 0", "do not fit"]),
    "a wrapping stride": ({"slot_stride": (1 << 64) - 4096}, ["do not fit"]),
    "ended": ({"producer_state": 2}, ["producer is not running", "start it"]),
    "too short for us": ({"samples": 1, "slot_count": 8}, ["8 frames", "at least"]),
}


@pytest.mark.parametrize("kind", RINGS)
def test_rings(place, kind):
    changes, words = RINGS[kind]
    uri = write_ring(place.output / "ring", ring_header(**changes))
    refuse(place, ["--source", uri], ["ring", *words])


def test_a_ring_of_a_dead_producer(place):
    pid = dead_pid()
    uri = write_ring(place.output / "ring", ring_header(producer_pid=pid))
    refuse(place, ["--source", uri], [str(pid), "start it again"])


@pytest.mark.parametrize("seed", range(5))
def test_garbage_as_a_ring(place, seed):
    uri = write_ring(place.output / "ring", garbage(seed, 36_864))
    refuse(place, ["--source", uri], ["ring", "magic"])
    header = bytearray(garbage(seed, 36_864))
    header[:12] = ring_header()[:12]  # magic and version are right, all else is not
    uri = write_ring(place.output / "ring2", bytes(header))
    refuse(place, ["--source", uri], ["ring"])


@pytest.mark.parametrize("size", [0, 10, 255])
def test_a_ring_that_is_too_small(place, size):
    (place.output / "ring").write_bytes(ring_header()[:size])
    refuse(place, ["--source", f"ring:{place.output / 'ring'}"], ["ring"])


@pytest.mark.parametrize("option", ["--record", "--report"])
def test_outputs_that_cannot_be_written(place, option):
    source = ["--source", "sim:?channels=1&frames=9&pace=asap"]
    missing = place.output / "no-such-folder/x"
    refuse(place, [*source, option, missing], [str(missing), "No such file"])
    refuse(place, [*source, option, place.output], [str(place.output), "directory"])


def to_full_disk(place, program, *arguments):
    """Runs it with /dev/full as standard output."""
    return place.start("/bin/sh", "-c", 'exec "$0" "$@" > /dev/full', program, *arguments).finish()


def test_standard_output_on_a_full_disk_is_exit_code_1(place):
    wav = place.output / "a.wav"
    scipy.io.wavfile.write(wav, 48000, np.arange(2000, dtype=np.int16))
    run = place.coordinator("--source", "sim:?channels=1&rate=1e5", "--workers", 1)
    place.running_status()
    asked = [
        (CONTROL, "--json", "status"), (CONTROL, "status"), (CONTROL, "--help"),
        (BINARIES / "echelle-info", wav), (BINARIES / "echelle-info", "--json", wav),
        (BINARIES / "echelle-info", "--version"), (COORDINATOR, "--help"),
        (COORDINATOR, "--source", wav, "--name", "second", "--fft-effort", "estimate"),
    ]
    for program, *arguments in asked:
        finished = to_full_disk(place, program, *arguments)
        assert finished.code == 1, (program, arguments)
        last = finished.error_lines[-1]
        assert last.startswith(program.name + ": ") and "No space left on device" in last
    assert place.control("stop").code == 0
    assert run.finish().code == 0


def test_a_limit_on_open_files(place):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    words = ["--workers 40", "open files", "200", "ulimit -n"]
    refuse(place, ["--workers", 40], words, preexec_fn=few_files)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], ["--ring", "--write-raw"]),
        (["--ring", "a/b"], ["a/b", "letters"]),
        (["--write-raw", "x.raw"], ["--frames", "--duration"]),
        (["--ring", "r", "--channels", "none"], ["channels=none", "whole number"]),
        (["--ring", "r", "--signal", "hum(1)"], ["hum"]),
        (["--ring", "r", "--ring-frames", "1"], ["ring", "2 to"]),
        (["--ring", "r", "--drop", "2"], ["drop", "2"]),
        (["--nonsense"], ["--nonsense", "--help"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_the_simulator(place, arguments, words):
    finished = place.start(SIMULATOR, *arguments).finish(QUICKLY_S)
    check_refusal(finished, "echelle-fpga-sim", words)
