"""``python -m echelle FILE``: one line per spectrum of a recording.

Exit codes: 0 done; 1 standard output failed; 2 wrong usage, an unreadable file or bad packets, each
with one line on stderr.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import sys
from typing import List, Optional

from .errors import PacketError, RecordingTruncated
from .packet import SpectrumPacket
from .recording import RecordingReader, read_recording
from .trailer import PacketFlag

_EPOCH = datetime.datetime(1970, 1, 1)


def _time(packet: SpectrumPacket) -> str:
    """UTC to the nanosecond; of 1.0 the 32 bits it has."""
    if packet.timestamp_ns is None:
        return f"{packet.timestamp_us} us mod 2^32"
    seconds, nanoseconds = divmod(packet.timestamp_ns, 1_000_000_000)
    return f"{_EPOCH + datetime.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


def _mean(packet: SpectrumPacket) -> str:
    if packet.trailer is None:
        return "-"
    unit = "V" if packet.trailer.flags & PacketFlag.volts else "counts"
    return f"{packet.trailer.mean:g} {unit}"


def _peak(packet: SpectrumPacket) -> str:
    """The strongest value that is a number, with its frequency (1.0: its index)."""
    values = packet.values().tolist()
    numbers = [index for index, value in enumerate(values) if not math.isnan(value)]
    if not numbers:
        return "-"
    index = max(numbers, key=values.__getitem__)
    if packet.trailer is None:
        return f"value {index}: {values[index]:.6g}"
    frequency = packet.trailer.first_bin_hz + index * packet.trailer.bin_spacing_hz
    return f"{frequency:.10g} Hz: {values[index]:.6g} {packet.unit()}"


def _flags(packet: SpectrumPacket) -> str:
    """The flags that tell of trouble."""
    return "".join(
        f"  {flag.name}"
        for flag in (
            PacketFlag.gap_before,
            PacketFlag.incomplete,
            PacketFlag.over_range,
            PacketFlag.partial,
        )
        if packet.flags is not None and packet.flags & flag
    )


def describe(packet: SpectrumPacket) -> str:
    """One line: channel, sequence, time, bins, mean, peak."""
    sequence = "-" if packet.sequence is None else packet.sequence
    return (
        f"channel {packet.channel_id}  sequence {sequence}  {_time(packet)}  "
        f"{packet.fft_size} bins  mean {_mean(packet)}  peak {_peak(packet)}{_flags(packet)}"
    )


def _report(name: str, message: object) -> None:
    print(f"echelle: {name}: {message}", file=sys.stderr)


def _report_unreadable(name: str, error: OSError) -> None:
    _report(name, f"{error.strerror or error}: give a recording that can be read")


def _print_all(name: str, recording: RecordingReader) -> int:
    """Prints every spectrum, and an error for each that is none."""
    exit_code = 0
    while True:
        try:
            packet = next(recording, None)
        except (PacketError, RecordingTruncated) as error:
            _report(name, error)
            exit_code = 2
            continue
        except OSError as error:
            _report_unreadable(name, error)
            return 2
        if packet is None:
            return exit_code
        print(describe(packet))


def _abandon_output() -> None:
    """Lets the interpreter flush what cannot be written to nowhere, when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command line; answers the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m echelle", description="Prints one line per spectrum of a recording."
    )
    parser.add_argument("file", metavar="FILE", help="a recording of spectra; - for stdin")
    name: str = parser.parse_args(arguments).file
    try:
        recording = read_recording(sys.stdin.buffer if name == "-" else name)
    except OSError as error:
        _report_unreadable(name, error)
        return 2
    try:
        with recording:
            exit_code = _print_all(name, recording)
        sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        _abandon_output()  # whoever read the lines has seen enough
        return 0
    except OSError as error:
        _abandon_output()
        _report("standard output", f"{error.strerror or error}: the lines are not complete")
        return 1


if __name__ == "__main__":
    sys.exit(main())
