"""A real recording of two channels against scipy."""

import datetime
import json

import numpy as np
import pytest
import scipy.signal
from cluster import REPOSITORY
from signals import Errors

from echelle import read_recording

META = REPOSITORY.parent / "shared/data/sigmf_logo.sigmf-meta"
SAMPLES = 288_000  # per channel, at 48 kS/s


@pytest.mark.skipif(not META.exists(), reason="skipped: no real recordings here")
@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_both_channels(place, report_figure, notify):
    recording = place.output / "spectra"
    report = place.run_with_report(
        *["--source", f"sigmf:{META}", "--workers", 2, "--notify", notify],
        *["--nperseg", 1024, "--average", "all", "--record", recording],
    )
    samples = np.fromfile(META.with_suffix(".sigmf-data"), "<i2").reshape(SAMPLES, 2)
    axis, expected = scipy.signal.welch(samples.T.astype(float), 48000, nperseg=1024)
    began = json.loads(META.read_text())["captures"][0]["core:datetime"]
    whole, fraction = began.rstrip("Z").split(".")
    second = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()

    packets = list(read_recording(recording))
    assert [packet.channel_id for packet in packets] == [0, 1]
    errors = Errors()
    for packet, spectrum, channel in zip(packets, expected, samples.T):
        segments = (SAMPLES - 512) // 512
        errors.check(packet.values(), spectrum, expected.max(), segments)
        assert np.allclose(packet.frequencies(), axis)
        assert packet.segments_averaged == packet.segments_expected == segments
        assert packet.timestamp_ns == int(second) * 10**9 + int(fraction.ljust(9, "0"))
        assert packet.mean == pytest.approx(channel.mean(), rel=1e-6)
        assert packet.rms == pytest.approx(np.sqrt(np.mean(channel.astype(float) ** 2)), rel=1e-6)
    frames = -(-SAMPLES // 2048)
    assert report["frames"] == {"in": frames, "done": frames, "dropped": {}, "in_flight": 0}
    report_figure(errors.line(f"sigmf_logo, {notify}"))
