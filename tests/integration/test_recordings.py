"""Recordings by independent writers, and real ones, against scipy on independently decoded samples."""

import gzip
import hashlib
import json
import tarfile
import wave

import numpy as np
import pytest
import scipy.io.wavfile
from recordings import (
    DATA,
    NO_DATA,
    blue_header,
    check_against_scipy,
    errors,
    read_digital_rf,
    read_puppi,
    settings_for,
    spectra_of,
    welch_of_stretches,
    write_digital_rf,
)
from signals import Errors, make_samples

from echelle import PacketFlag

COUNT = 20_011


@pytest.fixture(scope="module", autouse=True)
def largest_errors(report_figure):
    yield
    report_figure(errors.line("recordings against scipy.signal.welch"))


def real_samples(channels, seed=1):
    """[channel][sample] int16."""
    return make_samples(channels, COUNT, False, seed)[..., 0]


def write_wave(path, frames, width, rate):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(frames.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(frames.tobytes())


@pytest.mark.parametrize("channels", [1, 2, 9])
def test_wav_by_pythons_wave(place, channels):
    samples = real_samples(channels)
    path = place.output / "a.wav"
    write_wave(path, np.ascontiguousarray(samples.T), 2, 48000)
    _, packets = spectra_of(place, path, "--nperseg", 256)  # by its content: no scheme
    check_against_scipy(packets, samples.astype(float), settings_for(48000))


def test_wav_of_8_bits_by_pythons_wave(place):
    samples = np.clip(real_samples(2) // 256, -128, 127)
    path = place.output / "a.wav"
    write_wave(path, (samples.T + 128).astype(np.uint8), 1, 8000)
    _, packets = spectra_of(place, f"wav:{path}", "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(8000))
    at_rails = ((samples == 127) | (samples == -128)).sum(axis=1)
    assert [packet.over_range_count for packet in packets] == at_rails.tolist()


def test_wav_by_scipy(place):
    samples = real_samples(3, seed=2)
    path = place.output / "a.wav"
    scipy.io.wavfile.write(path, 96000, samples.T)
    _, packets = spectra_of(place, f"wav:{path}", "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(96000))


def test_wav_of_iq_pairs(place):
    pairs = make_samples(2, COUNT, True, 3)
    path = place.output / "iq.wav"
    scipy.io.wavfile.write(path, 96000, pairs.swapaxes(0, 1).reshape(COUNT, 4))
    _, packets = spectra_of(place, f"wav:{path}?format=ci16", "--nperseg", 256)
    signal = pairs[..., 0] + 1j * pairs[..., 1].astype(float)
    check_against_scipy(packets, signal, settings_for(96000))


@pytest.mark.parametrize("dtype, words", [(np.int32, "32 bit"), (np.float32, "float")])
def test_wider_wav_is_refused_in_words(place, dtype, words):
    path = place.output / "a.wav"
    scipy.io.wavfile.write(path, 96000, real_samples(1).T.astype(dtype))
    finished = place.run("--source", path, code=2)
    assert len(finished.error_lines) == 1
    assert words in finished.err and "sox" in finished.err and str(path) in finished.err


def test_the_remedy_for_a_wav_without_a_size_works(place):
    """What the message says is what to type."""
    samples = real_samples(2)
    path = place.output / "a.wav"
    write_wave(path, np.ascontiguousarray(samples.T), 2, 48000)
    content = bytearray(path.read_bytes())
    content[40:44] = bytes(4)
    path.write_bytes(content)
    finished = place.run("--source", path, code=2)
    source = finished.err.split("--source '")[1].split("'")[0]
    _, packets = spectra_of(place, source, "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(48000))


def test_a_recording_shorter_than_a_segment_is_refused(place):
    """scipy issue 25608: 100 samples with nperseg 256."""
    path = place.output / "a.wav"
    scipy.io.wavfile.write(path, 48000, np.arange(100, dtype=np.int16))
    finished = place.run("--source", path, "--nperseg", 256, code=2)
    assert "--nperseg 256" in finished.err and "100 samples" in finished.err


def test_the_lowest_value_is_converted_before_arithmetic(place):
    """scipy issue 3655: the absolute value of int16 -32768 is no int16."""
    path = place.output / "a.wav"
    samples = np.full((1, 4096), -32768, np.int16)
    scipy.io.wavfile.write(path, 48000, samples.T)
    _, packets = spectra_of(place, path, "--nperseg", 256, "--detrend", "none")
    setting = settings_for(48000)._replace(detrend="none")
    check_against_scipy(packets, samples.astype(float), setting)
    assert packets[0].mean == -32768 and packets[0].rms == 32768


@pytest.mark.parametrize("form, dtype", [(b"SI", "<i2"), (b"CI", "<i2"), (b"SB", "i1")])
def test_blue(place, form, dtype):
    is_complex = form[:1] == b"C"
    samples = make_samples(1, COUNT, is_complex, 4)[0]
    samples = samples if dtype == "<i2" else np.clip(samples // 256, -128, 127)
    content = samples.astype(dtype).tobytes()
    path = place.output / "a.tmp"
    path.write_bytes(blue_header(len(content), 1e-6, form) + content)
    _, packets = spectra_of(place, path, "--nperseg", 256)
    signal = samples[:, 0] + (1j * samples[:, 1].astype(float) if is_complex else 0.0)
    check_against_scipy(packets, signal[np.newaxis], settings_for(1e6))


def test_a_dada_sequence_with_a_missing_file(place):
    samples = np.clip(make_samples(2, 3 * 4000, True, 5) // 256, -128, 127).astype(np.int8)
    for number in (0, 2):
        part = samples[:, 4000 * number : 4000 * (number + 1)].swapaxes(0, 1).tobytes()
        header = "HDR_VERSION 1.0\nHDR_SIZE 4096\nNBIT 8\nNDIM 2\nNPOL 2\nNCHAN 1\nTSAMP 0.5\n"
        header += f"UTC_START 2013-07-02-01:37:40\nOBS_OFFSET {16000 * number}\n"
        (place.output / f"x_{number}.dada").write_bytes(header.encode().ljust(4096, b"\0") + part)
    report, packets = spectra_of(place, f"dada:{place.output}/x_*.dada", "--nperseg", 256)
    assert report["recording"]["gaps"] == {
        "count": 1,
        "samples_missing": 4000,
        "first": [{"after_sample": 4000, "missing": 4000}],
    }
    signal = samples[..., 0] + 1j * samples[..., 1].astype(float)
    stretches = [signal[:, :4000], signal[:, 8000:]]
    _, expected, count = welch_of_stretches(stretches, settings_for(2e6), True)
    for packet, spectrum in zip(packets, expected):
        errors.check(packet.values(), spectrum, expected.max(), count)
        assert packet.segments_averaged == count


@pytest.mark.parametrize("kind", ["i2", "i1", "ci2", "ci1", ">i2"])
def test_digital_rf_by_h5py(place, kind):
    is_complex, width = kind.startswith("c"), kind.lstrip("c")
    samples = make_samples(3, 2000, is_complex, 6).swapaxes(0, 1)
    if width == "i1":
        samples = np.clip(samples // 256, -128, 127)
    dtype = np.dtype([("r", width), ("i", width)]) if is_complex else np.dtype(width)
    data = np.zeros(samples.shape[:2], dtype)
    if is_complex:
        data["r"], data["i"] = samples[..., 0], samples[..., 1]
    else:
        data[:] = samples[..., 0]
    files = [
        (1394368230, [[1000, 0], [1900, 700]], data[:1200]),
        (1394368231, [[2400, 0]], data[1200:]),
    ]
    folder = write_digital_rf(place.output / "rec/ch0", (200, 3), dtype, files)
    report, packets = spectra_of(place, f"digital_rf:{folder}", "--nperseg", 256)
    assert report["config"]["rate"] == "200/3"
    assert report["recording"]["gaps"]["first"] == [{"after_sample": 700, "missing": 200}]
    signal = samples[..., 0].T + (1j * samples[..., 1].T.astype(float) if is_complex else 0.0)
    stretches = [signal[:, :700], signal[:, 700:]]
    _, expected, count = welch_of_stretches(stretches, settings_for(200 / 3), is_complex)
    for packet, spectrum in zip(packets, expected):
        errors.check(packet.values(), spectrum, expected.max(), count)
        assert packet.segments_averaged == count
        assert packet.timestamp_ns == 15 * 10**9  # sample 1000 at 200/3 Hz


def test_digital_rf_of_floats_is_refused_in_words(place):
    data = np.zeros((100, 1))
    folder = write_digital_rf(place.output / "ch0", (1, 1), "f4", [(1394368230, [[0, 0]], data)])
    finished = place.run("--source", folder, code=2)
    assert len(finished.error_lines) == 1
    assert "signed integers" in finished.err and "int16" in finished.err


def check_real(place, report_figure, source, stretches, setting):
    """A real recording against scipy on `stretches`, decoded here; prints a row for docs/sources.md."""
    report, packets = spectra_of(place, source, "--nperseg", setting.nperseg)
    is_complex = np.iscomplexobj(stretches[0])
    axis, expected, count = welch_of_stretches(stretches, setting, is_complex)
    own = Errors()
    for channel, (packet, spectrum) in enumerate(zip(packets, expected, strict=True)):
        own.check(packet.values(), spectrum, expected.max(), count)
        own.note(np.abs(packet.values() - spectrum), spectrum, expected.max())
        assert packet.channel_id == channel and packet.segments_averaged == count
        assert np.allclose(packet.frequencies(), axis, rtol=1e-12, atol=1e-9 * setting.rate)
    samples = sum(stretch.shape[1] for stretch in stretches)
    assert report["recording"]["samples_per_channel"] == samples
    gaps = report["recording"]["gaps"]
    assert gaps["count"] == len(stretches) - 1
    kind = "complex" if is_complex else "real"
    line = f"{source.name}: {len(expected)} {kind}, {samples} samples, {gaps['count']} gaps, "
    report_figure(line + own.line(f"{count} segments"))
    return gaps, packets


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_dada_sample(place, report_figure):
    path = DATA / "sample.dada"
    values = np.frombuffer(path.read_bytes(), np.int8, offset=4096).astype(float)
    signal = (values[0::2] + 1j * values[1::2]).reshape(-1, 2).T
    _, packets = check_real(place, report_figure, path, [signal], settings_for(16e6))
    assert packets[0].timestamp_ns == 1372729160 * 10**9


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_puppi_sample(place, report_figure):
    path = DATA / "sample_puppi.raw"
    check_real(place, report_figure, path, [read_puppi(path)], settings_for(250))


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_digital_rf_sample_with_its_missing_second(place, report_figure):
    folder = DATA / "digital_rf/synthetic/sc16_x1_n200_d3_10s_1000ms_c0"
    stretches = read_digital_rf(folder)
    assert len(stretches) == 4  # the index has three gaps, one of them of more than a second
    signals = [part for _, part in stretches]
    gaps, packets = check_real(place, report_figure, folder, signals, settings_for(200 / 3, 32))
    missing = [
        after - before - part.shape[1]
        for (before, part), (after, _) in zip(stretches, stretches[1:])
    ]
    assert [gap["missing"] for gap in gaps["first"]] == missing
    assert packets[0].timestamp_ns == 1394368230 * 10**9
    assert packets[0].flags & PacketFlag.gap_before and packets[0].flags & PacketFlag.incomplete


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_digital_rf_example(place, report_figure):
    folder = DATA / "digital_rf/example/ch0"
    [(_, signal)] = read_digital_rf(folder)
    check_real(place, report_figure, folder, [signal], settings_for(10_000))
    _, packets = spectra_of(place, f"drf:{folder.parent}?channel=ch0", "--nperseg", 256)
    check_against_scipy(packets, signal, settings_for(10_000))


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_sigmf_logo(place, report_figure):
    path = DATA / "sigmf_logo.sigmf-meta"
    signal = np.fromfile(path.with_suffix(".sigmf-data"), "<i2").reshape(-1, 2).T.astype(float)
    check_real(place, report_figure, path, [signal], settings_for(48_000, 1024))


def sigmf_metadata(channels, datatype, **more):
    fields = {"core:datatype": datatype, "core:version": "1.2.0", "core:sample_rate": 48000}
    return {
        "global": {**fields, "core:num_channels": channels, **more},
        "captures": [{"core:sample_start": 0}],
        "annotations": [{"core:sample_start": 5, "core:label": "burst"}],
    }


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_sigmf_archive_by_pythons_tarfile(place, form):
    samples = real_samples(2, seed=7)
    folder = place.output / ("night-" + "x" * 120)  # longer than a tar header's field
    folder.mkdir()
    content = samples.T.astype("<i2").tobytes()
    (folder / "a.sigmf-data").write_bytes(content)
    meta = sigmf_metadata(2, "ri16_le", **{"core:sha512": hashlib.sha512(content).hexdigest()})
    (folder / "a.sigmf-meta").write_text(json.dumps(meta))
    path = place.output / "night.sigmf"
    with tarfile.open(path, "w", format=form) as archive:
        name = folder.name if form != tarfile.USTAR_FORMAT else "night"
        archive.add(folder, arcname=name)
    report, packets = spectra_of(place, f"sigmf:{path}?verify=sha512", "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(48000))
    assert report["recording"]["annotations"] == meta["annotations"]
    # By its content, whatever its name.
    path = path.rename(place.output / "night.wav")
    _, packets = spectra_of(place, path, "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(48000))
    with gzip.open(place.output / "night.sigmf", "wb") as compressed:
        compressed.write(path.read_bytes())
    finished = place.run("--source", f"sigmf:{place.output}/night.sigmf", code=2)
    assert "compressed" in finished.err and "tar -xf" in finished.err


@pytest.mark.parametrize("datatype, dtype, zero", [("ru8", "u1", 128), ("ru16_be", ">u2", 32768)])
def test_unsigned_sigmf_is_offset_binary(place, datatype, dtype, zero):
    samples = real_samples(2, seed=8)
    samples = samples if zero > 128 else np.clip(samples // 256, -128, 127)
    path = place.output / "a.sigmf-meta"
    path.write_text(json.dumps(sigmf_metadata(2, datatype)))
    path.with_suffix(".sigmf-data").write_bytes((samples.T + np.int32(zero)).astype(dtype).tobytes())
    _, packets = spectra_of(place, path, "--nperseg", 256)
    check_against_scipy(packets, samples.astype(float), settings_for(48000))
    assert [packet.mean for packet in packets] == pytest.approx(samples.mean(axis=1))


@pytest.mark.skipif(not DATA.exists(), reason=NO_DATA)
def test_the_sigmf_logo_is_verified(place):
    report, _ = spectra_of(place, f"sigmf:{DATA}/sigmf_logo.sigmf-meta?verify=sha512")
    assert "SHA-512 verified" in report["config"]["source_description"]
    labels = [note["core:comment"] for note in report["recording"]["annotations"]]
    assert labels == ["logo warmup", "logo spinup", "logo steady"]
