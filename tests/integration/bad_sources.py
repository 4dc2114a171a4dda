"""Broken inputs, made from the documents alone: SigMF metadata and ring regions."""

import json
import os
import random
import struct

SIGMF = {
    "global": {
        "core:datatype": "ri16_le",
        "core:version": "1.2.0",
        "core:sample_rate": 48000,
        "core:num_channels": 1,
    },
    "captures": [{"core:sample_start": 0}],
}


def write_sigmf(folder, changes=None, captures=None, text=None):
    """A recording of 4000 samples, with these fields of `global` or these captures instead."""
    meta = json.loads(json.dumps(SIGMF))
    meta["global"].update(changes or {})
    if captures is not None:
        meta["captures"] = captures
    (folder / "x.sigmf-data").write_bytes(bytes(8000))
    path = folder / "x.sigmf-meta"
    path.write_text(json.dumps(meta) if text is None else text)
    return path


def ring_header(**changes):
    """The 256 bytes of docs/ring.md for 8 slots of 2 channels x 64 samples."""
    fields = {
        "magic": b"ECHRING\0",
        "version": 0x00010000,
        "header_bytes": 256,
        "channels": 2,
        "samples": 64,
        "format": 1,
        "layout": 1,
        "rate_num": 48000,
        "rate_den": 1,
        "epoch_ns": 0,
        "slot_count": 8,
        "slot_stride": 4096,
        "frames_offset": 4096,
        "region_bytes": 4096 + 8 * 4096,
        "low": -32768,
        "high": 32767,
        "producer_pid": 0,
        "producer_wakes": 1,
        "producer_start": 0,
        "head": 0,
        "head_futex": 0,
        "producer_state": 1,
    }
    assert set(changes) <= set(fields), changes
    fields.update(changes)
    packed = struct.pack("<8s6I2Qq4Q2i2IQ16xQ2I", *fields.values())
    return packed.ljust(256, b"\0")


def write_ring(path, content):
    path.write_bytes(content.ljust(4096 + 8 * 4096, b"\0"))
    return f"ring:{path}"


def garbage(seed, count):
    """Bytes of no meaning, the same in every run."""
    return random.Random(seed).randbytes(count)


def dead_pid():
    """The pid of a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
