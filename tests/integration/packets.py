"""Datagrams of samples, written with struct from the standards, and ways to send and capture them."""

import json
import socket
import struct
import time
from pathlib import Path

import numpy as np
from cluster import SIMULATOR, wait_until

UNIX_2020 = 1577836800


def parts_of(samples, per_packet):
    """[channel][sample][re, im] cut into [(first sample, [sample][channel][re, im])]."""
    interleaved = samples.swapaxes(0, 1)
    starts = range(0, len(interleaved) - per_packet + 1, per_packet)
    return [(start, interleaved[start : start + per_packet]) for start in starts]


def vita49(samples, per_packet, rate, second=UNIX_2020, stream=0xABCD):
    """ANSI/VITA 49.0 figure 6.1-1: signal data with stream id, class id, UTC, sample count, trailer."""
    datagrams = []
    for number, (first, part) in enumerate(parts_of(samples, per_packet)):
        payload = part.astype(">i2").tobytes()
        words = 1 + 1 + 2 + 1 + 2 + len(payload) // 4 + 1
        header = 1 << 28 | 1 << 27 | 1 << 26 | 1 << 22 | 1 << 20 | number % 16 << 16 | words
        datagrams.append(
            struct.pack(
                ">IIIIIQ", header, stream, 0x0012A2, 0x00010002, second + first // rate, first % rate
            )
            + payload
            + struct.pack(">I", 1 << 30 | 1 << 18)  # the data are valid
        )
    return datagrams


def spead(samples, per_packet, packets_per_heap):
    """SPEAD-64-48 as spead2 sends it: a descriptor first, then heaps of several packets."""
    datagrams = [struct.pack(">BBBBHHQ", 0x53, 4, 2, 6, 0, 1, 5 << 48)]
    parts = parts_of(samples, per_packet)
    heap_bytes = packets_per_heap * parts[0][1].size * 2
    for number, (_, part) in enumerate(parts):
        payload = part.astype(">i2").tobytes()
        offset = number % packets_per_heap * len(payload)
        heap = number // packets_per_heap + 1
        items = [(1, heap), (2, heap_bytes), (3, offset), (4, len(payload)), (0x1600, number)]
        datagrams.append(
            struct.pack(">BBBBHH", 0x53, 4, 2, 6, 0, len(items) + 1)
            + b"".join(struct.pack(">Q", 1 << 63 | name << 48 | value) for name, value in items)
            + struct.pack(">Q", 0x3300 << 48)
            + payload
        )
    return datagrams


def raw(samples, per_packet, sequence="<I", first=0):
    """A sequence number and little-endian samples."""
    return [
        struct.pack(sequence, (first + number) % 2 ** (8 * struct.calcsize(sequence)))
        + part.astype("<i2").tobytes()
        for number, (_, part) in enumerate(parts_of(samples, per_packet))
    ]


def write_pcap(path, datagrams, port=4991, second=UNIX_2020):
    """A classic capture (pcap-savefile(5)) of Ethernet frames, a millisecond apart."""
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    for number, datagram in enumerate(datagrams):
        udp = struct.pack(">HHHH", 1000, port, 8 + len(datagram), 0) + datagram
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0,
                         b"\x0a\0\0\1", b"\x0a\0\0\2")
        frame = bytes(12) + b"\x08\0" + ip + udp
        time_ms = number
        content += struct.pack("<IIII", second + time_ms // 1000, time_ms % 1000 * 1000,
                               len(frame), len(frame)) + frame
    Path(path).write_bytes(content)
    return path


def pcapng_block(kind, body):
    """draft-ietf-opsawg-pcapng section 3: type, length, body padded to 4 bytes, length again."""
    body += bytes(-len(body) % 4)
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def write_pcapng(path, datagrams, port=4991, second=UNIX_2020):
    """Datagrams by IPv6 in a VLAN, on an interface that counts nanoseconds; besides, TCP and DNS."""

    def packet(protocol, payload):
        ip = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + bytes(15) + b"\1"
        ip += bytes.fromhex("ff05") + bytes(12) + b"\x49\x91"
        return bytes(12) + bytes.fromhex("8100 0064 86dd") + ip + payload

    def enhanced(number, content):
        time_ns = second * 10**9 + number * 1_000_000 + 7
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(content),
                           len(content))
        return pcapng_block(6, head + content)

    resolution = struct.pack("<HHB3x", 9, 1, 9) + bytes(4)  # if_tsresol: 10^-9 s; end of options
    content = pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += pcapng_block(1, struct.pack("<HHI", 1, 0, 262144) + resolution)
    content += enhanced(0, packet(6, bytes(20)))
    content += enhanced(0, packet(17, struct.pack(">HHHH", 53, 53, 12, 0) + b"name"))
    content += pcapng_block(5, struct.pack("<III", 0, 0, 0))  # interface statistics: passed over
    for number, datagram in enumerate(datagrams):
        udp = struct.pack(">HHHH", 1000, port, 8 + len(datagram), 0) + datagram
        content += enhanced(number, packet(17, udp))
    Path(path).write_bytes(content)
    return path


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_bound(port, pid="self"):
    """Whether a socket of the network namespace of that process receives at the port."""
    lines = [line for kind in ("udp", "udp6")
             for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]]
    return any(int(line.split()[1].split(":")[1], 16) == port for line in lines)


class Receiver:
    """A coordinator that receives packets until it is told to stop."""

    def __init__(self, place, address, port, keys, *options, prefix=()):
        self.place, self.port = place, port
        self.report = place.output / "report.json"
        source = f"udp:{address}:{port}?{keys}"
        arguments = ["--source", source, "--workers", 1, "--report", self.report, *options]
        self.run = place.coordinator(*arguments, prefix=prefix)
        # The socket is open for a moment before, to see whether it can be.
        place_is_ready = wait_until(lambda: self.run.has_ended() or place.status() is not None)
        assert place_is_ready and not self.run.has_ended(), self.run.finish().err
        assert wait_until(lambda: is_bound(port, self.run.pid))

    def facts(self):
        status = self.place.status()
        return status["source"] if status else None

    def wait_for(self, datagrams, seconds=30):
        """Until so many have been received; fails after a while."""
        seen = []

        def enough():
            facts = self.facts()
            seen[:] = [facts["datagrams"]["received"]] if facts else seen
            return seen and seen[0] >= datagrams

        assert wait_until(enough, seconds, 0.05), f"{seen} of {datagrams} datagrams"

    def stop(self):
        """The report, once what is held has been given out."""
        time.sleep(0.15)
        assert self.place.control("stop").code == 0
        finished = self.run.finish()
        assert finished.code == 0, finished.err
        return json.loads(self.report.read_text()), finished


def send(datagrams, port, address="127.0.0.1", rate=20_000):
    """Paced, so that no queue overflows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        start = time.monotonic()
        for number, datagram in enumerate(datagrams):
            while time.monotonic() < start + number / rate:
                time.sleep(0.001)
            sender.sendto(datagram, (address, port))


def simulate(place, target, *options, prefix=()):
    """Runs echelle-fpga-sim --send to its end; what it says that it did."""
    report = place.output / "sent.json"
    report.unlink(missing_ok=True)
    arguments = ["--send", target, "--send-report", report, "--layout", "sample-major", *options]
    finished = place.start(*prefix, SIMULATOR, *arguments).finish()
    assert finished.code == 0, finished.err
    return json.loads(report.read_text())


def as_int16(samples):
    return np.clip(np.rint(samples), -32768, 32767).astype(np.int16)
