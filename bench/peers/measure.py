#!/usr/bin/env python3
"""Echelle and its peers over one recording, in turns; microseconds of core time per frame.

Echelle is the whole cluster with one worker, all its processes counted, replaying in real frames
of the same signal; its own spectra of the recording are checked like everybody's.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "clients/python/src")]
import check  # noqa: E402
import echelle  # noqa: E402
import numpy  # noqa: E402
import recording  # noqa: E402
from chain import measure_chain  # noqa: E402
from programs import (  # noqa: E402
    BINARIES, ENVIRONMENT, Cluster, kernel_alone, median, remove_runtime_folder, run_bench,
    run_json,
)

PYTHON = "/usr/bin/python3"  # Debian's: the one that scipy and GNU Radio are installed for
LARGEST_ERROR = 1e-3


def record(path, frames):
    subprocess.run(
        [str(BINARIES / "echelle-fpga-sim"), "--frames", str(frames), "--write-raw", str(path)],
        env=ENVIRONMENT, check=True, stderr=subprocess.DEVNULL,
    )


def python_peer(file_name, raw, psd):
    return run_json(PYTHON, HERE / file_name, "--raw", raw, "--psd", psd)


def run_peer(name, raw, psd):
    if name == "scipy":
        return python_peer("scipy_welch.py", raw, psd)
    if name == "gnuradio":
        return python_peer("gnuradio_fft.py", raw, psd)
    if name == "liquid":
        return run_bench("liquid_spgram", "--raw", raw, "--psd", psd)
    return run_bench("naive_cluster", "--raw", raw, "--psd", psd, "--workers", 2,
                     "--frames", 8 * Path(raw).stat().st_size // (512 * 1024))


PEERS = ("scipy", "gnuradio", "liquid", "naive_cluster")


def echelle_error(raw, folder, rows):
    """Our own spectra of the recording, through the whole cluster."""
    spectra = folder / "echelle.spectra"
    source = (f"raw:{raw}?channels={recording.CHANNELS}&samples={recording.SAMPLES}"
              f"&rate={int(recording.RATE_HZ)}&format=i16&layout=channel-major")
    with Cluster("--source", source, "--workers", 2, "--average", "all",
                 "--record", spectra) as cluster:
        cluster.finish()
    psd = folder / "echelle.psd"
    numpy.stack([packet.values() for packet in echelle.read_recording(spectra)]).tofile(psd)
    return check.worst_relative_error("echelle", psd, rows)


def measure_round(raw, folder, seconds):
    """name -> microseconds of core time per frame; echelle with --average 16 and 1."""
    figures = {
        "bare_fft": kernel_alone(1, seconds)["bare_fft_us"],
        "echelle": measure_chain(1, "channel-major", 16, seconds)["core_us"],
        "echelle, 1 frame a spectrum": measure_chain(2, "channel-major", 1, seconds)["core_us"],
    }
    for name in PEERS:
        figures[name] = run_peer(name, raw, folder / f"{name}.psd")["core_us_per_frame"]
    return figures


def measure(repeats, seconds, frames):
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        raw = folder / "recording.raw"
        record(raw, frames)
        rows = recording.channel_rows(raw)
        rounds = [measure_round(raw, folder, seconds) for _ in range(repeats)]
        errors = {name: check.worst_relative_error(name, folder / f"{name}.psd", rows)
                  for name in PEERS}
        errors["echelle"] = echelle_error(raw, folder, rows)
    wrong = {name: error for name, error in errors.items() if not error <= LARGEST_ERROR}
    if wrong:
        raise RuntimeError(f"wrong spectra, worst relative error: {wrong}")
    core_us = {name: median(each[name] for each in rounds) for name in rounds[0]}
    ours = {name: "echelle, 1 frame a spectrum" if name == "naive_cluster" else "echelle"
            for name in PEERS}
    return {
        "frames": frames,
        "core_us": core_us,
        "worst_relative_error": errors,
        "times_echelle": {
            name: median(each[name] / each[ours[name]] for each in rounds) for name in PEERS
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run of Echelle (2)")
    parser.add_argument("--frames", type=int, default=64, help="of the recording (64)")
    given = parser.parse_args()
    print(json.dumps(measure(given.repeats, given.seconds, given.frames), indent=2))


if __name__ == "__main__":
    try:
        main()
    finally:
        remove_runtime_folder()
