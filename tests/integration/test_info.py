"""echelle-info: what files are, said of files that others wrote, whole and damaged."""

import json
import struct
import wave
import zlib

import numpy as np
import pytest
from cluster import BINARIES
from packet_bytes import records
from packets import spead, vita49, write_pcap, write_pcapng
from recordings import DATA, NO_DATA, write_digital_rf
from signals import make_samples

INFO = BINARIES / "echelle-info"


def ask(place, file, code=0):
    """What it says of a file, as JSON and as text; or the line with which it refuses."""
    answer = place.start(INFO, "--json", file).finish()
    text = place.start(INFO, file).finish()
    assert (answer.code, text.code) == (code, code), answer.err
    if code:
        assert answer.out == text.out == "" and len(answer.error_lines) == 1
        assert answer.err == text.err and answer.err.startswith("echelle-info: ")
        return answer.err
    assert answer.err == text.err == ""
    return json.loads(answer.out), text.out


def test_a_wav_file(place):
    path = place.output / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(3)
        file.setsampwidth(2)
        file.setframerate(96000)
        file.writeframes(bytes(2 * 3 * 12_000))
    info, text = ask(place, path)
    assert (info["kind"], info["channels"], info["complex"]) == ("recording", 3, False)
    assert (info["rate"], info["samples_per_channel"], info["duration_s"]) == (
        "96000",
        12_000,
        0.125,
    )
    assert info["start"] is None and info["gaps"]["count"] == 0 and info["remarks"] == []
    for words in ("WAV", "a.wav", "96000 Hz", "12000 per channel, 0.125 s", "remarks      none"):
        assert words in text
    # A recorder that was killed leaves less than the header says.
    path.write_bytes(path.read_bytes()[:-6001])
    info, text = ask(place, path)
    assert info["samples_per_channel"] == 10_999
    assert "6001 of 72000 bytes are not there" in text


def test_a_recording_with_a_gap(place):
    rows = np.arange(300).reshape(300, 1)
    first, second = 1394368230 * 200, 1394368231 * 200 + 100  # 200 Hz; half a second is missing
    folder = write_digital_rf(
        place.output / "drf" / "ch0",
        (200, 1),
        "<i2",
        [(1394368230, [(first, 0)], rows[:200]), (1394368231, [(second, 0)], rows[200:])],
    )
    info, text = ask(place, folder)
    assert info["gaps"]["first"] == [{"after_sample": 200, "missing": 100}]
    assert info["start"] == "2014-03-09T12:30:30.000000000Z"
    assert info["longest_stretch"] == 200 and info["samples_per_channel"] == 300
    assert "1 gap, 100 samples missing: 100 after sample 200" in text


def test_samples_without_a_header(place):
    path = place.output / "a.bin"
    path.write_bytes(bytes(4000))
    assert "raw:FILE" in ask(place, path, code=2)
    info, _ = ask(place, f"raw:{path}?channels=2&rate=200/3&format=ci16&start=100&count=3s")
    assert (info["channels"], info["complex"], info["rate"]) == (2, True, "200/3")
    assert info["samples_per_channel"] == 200 and info["duration_s"] == pytest.approx(3)
    assert "sample-major assumed" in info["remarks"]


def test_a_packet_capture(place):
    """What goes where, in which framing: channels and rate no packet says."""
    samples = make_samples(2, 1000, False)
    datagrams = [*vita49(samples, 100, 48000), *spead(samples, 100, 5), bytes(300)]
    path = write_pcap(place.output / "a.pcap", datagrams)
    info, text = ask(place, path)
    assert info["kind"] == "packets" and info["datagrams"] == 10 + 11 + 1
    (flow,) = info["flows"]
    assert (flow["to"], flow["vita49"], flow["spead"]) == ("10.0.0.2:4991", 10, 10)
    assert (flow["bytes_least"], flow["bytes_most"]) == (16, 456)
    assert flow["stream_ids"] == ["0xABCD"] and info["left_out"] == {}
    assert info["start"] == "2020-01-01T00:00:00.000000000Z" and info["duration_s"] == 0.021
    assert "10.0.0.2:4991: 22 of 16 to 456 bytes, 10 VITA 49, 10 SPEAD, stream 0xABCD" in text
    info, text = ask(place, f"pcap:{write_pcapng(place.output / 'b', datagrams[-1:])}")
    assert [flow["to"] for flow in info["flows"]] == ["[ff05::4991]:53", "[ff05::4991]:4991"]
    assert info["left_out"] == {"not_udp": 1} and "framing=raw" in text
    path.write_bytes(path.read_bytes()[:-5])
    info, text = ask(place, path)
    assert info["datagrams"] == 21 and "truncated" in info["remarks"][0]
    assert "keys" in ask(place, f"pcap:{path}?rate=1", code=2)
    assert "names no file" in ask(place, "pcap:", code=2)
    path.write_bytes(path.read_bytes()[:24] + bytes(range(250)))
    assert "damaged" in ask(place, path, code=2)


@pytest.mark.parametrize(
    "name, words",
    [
        ("sim:", ["live source"]),
        ("ring:card0", ["live source"]),
        ("missing.wav", ["missing.wav"]),
        ("/", ["folder", "drf_properties.h5"]),
        ("/dev/null", ["device"]),
        ("", ["''"]),
    ],
)
def test_what_is_no_recording(place, name, words):
    message = ask(place, name, code=2)
    for word in words:
        assert word in message


def spectra_file(place, *options):
    path = place.output / "spectra"
    source = "sim:?channels=3&samples=512&frames=40&pace=asap&rate=51200&seed=2&drop-every=15"
    place.run("--source", source, "--average", 10, "--nperseg", 256, "--record", path, *options)
    return path


def test_a_recording_of_spectra(place):
    path = spectra_file(place, "--window", "blackman", "--volts-per-count", "1e-3")
    info, text = ask(place, path)
    packets = list(records(path.read_bytes()))
    flags = [struct.unpack_from(">H", packet, len(packet) - 112 + 6)[0] for packet in packets]
    assert info["kind"] == "spectra" and info["spectra"] == len(packets) == 12
    assert (info["channels"], info["first_channel"], info["last_channel"]) == (3, 0, 2)
    assert (info["bins"], info["nperseg"], info["noverlap"]) == (129, 256, 128)
    assert (info["window"], info["scaling"], info["average"]) == ("blackman", "density", "mean")
    assert (info["unit"], info["bin_spacing_hz"]) == ("V^2/Hz", 200)
    assert info["gaps"] == sum(flag & 1 for flag in flags) == 6
    assert info["incomplete"] == sum(flag >> 1 & 1 for flag in flags) == 6
    assert (info["start"], info["last_start"]) == (
        "1970-01-01T00:00:00.000000000Z",
        "1970-01-01T00:00:00.300000000Z",
    )
    for words in ("SpectrumPacket 1.1", "12 of 3 channels (0 to 2), 129 bins", "51200 Hz"):
        assert words in text
    assert "6 spectra have samples missing" in text and "6 spectra are of fewer segments" in text


def test_damaged_spectra(place):
    path = spectra_file(place)
    whole = path.read_bytes()
    record = 4 + 20 + 4 * 129 + 112
    assert len(whole) == 12 * record
    damaged = bytearray(whole)
    damaged[2 * record + 100] ^= 1
    damaged[5 * record + 100] ^= 1
    path.write_bytes(damaged[:-7])
    info, _ = ask(place, path)
    assert info["spectra"] == 9 and info["damaged"] == 2
    remarks = "\n".join(info["remarks"])
    assert f"record 2 at byte {2 * record} is no packet" in remarks
    assert "2 records are damaged in all" in remarks
    assert f"the last {record - 7} bytes, from byte {11 * record} on" in remarks
    # Nothing but a header: its checksum says what the file is.
    path.write_bytes(whole[:24])
    assert "ends inside a record" in ask(place, path, code=2)
    # A length beyond the file costs no memory.
    path.write_bytes(b"\xff\xff\xff\xff" + whole[4:])
    assert "ends inside a record" in ask(place, path, code=2)
    # A major version that nobody knows yet.
    header = struct.pack(">4I", 0x00020000, 0, 0, 0)
    header += struct.pack(">I", zlib.crc32(header))
    path.write_bytes(struct.pack(">I", 20) + header)
    assert "unknown" in ask(place, path, code=2)


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
@pytest.mark.parametrize(
    "name, words",
    [
        ("sigmf_logo.sigmf-meta", ["2, 16-bit", "48000 Hz", "288000 per channel, 6 s"]),
        ("sample.dada", ["PSRDADA"]),
        ("sample_puppi.raw", ["GUPPI", "complex"]),
        ("digital_rf/example", ["10000 Hz", "2019-08-29T19:08:20"]),
        ("digital_rf/synthetic/sc16_x1_n200_d3_10s_1000ms_c0", ["200/3 Hz", "samples missing"]),
    ],
)
def test_real_recordings(place, name, words):
    _, text = ask(place, DATA / name)
    for word in words:
        assert word in text
