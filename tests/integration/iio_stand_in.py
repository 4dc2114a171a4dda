"""A machine with an IIO device, made of files: libiio's local backend and a stock iiod take it.

The tree of attributes is bound over /sys/bus in a mount namespace of the program's own; the
device's node is a FIFO, which this process fills. What a kernel would do and files don't: nothing
checks what is written into an attribute.
"""

import os
import shutil
import subprocess
import threading
import time

NAMESPACE = ["unshare", "-m", "-n", "bash", "-e", "-c"]

# Runs "$@" where /sys/bus is $1 and /dev/iio:device0 is $2; $3 is a folder for the old /dev.
SCRIPT = """
tree=$1 fifo=$2 old=$3; shift 3
mount --make-rprivate /
mount --bind "$tree" /sys/bus
mount --rbind /dev "$old"
mount -t tmpfs none /dev
for name in null zero full random urandom shm; do ln -s "$old/$name" /dev/$name; done
ln -s "$fifo" /dev/iio:device0
"""
ALONE = SCRIPT + 'exec "$@"\n'
# The same with a stock iiod beside it, that is asked over the loopback.
BEHIND_IIOD = SCRIPT + """
ip link set lo up
iiod >/dev/null 2>&1 &
disown
iiod=$!
for try in $(seq 200); do
    (exec 3<>/dev/tcp/127.0.0.1/30431) 2>/dev/null && break
    sleep 0.05
done
set +e
"$@"
code=$?
kill -9 $iiod
exit $code
"""


def is_possible():
    """Whether this process may have mount and network namespaces."""
    if not shutil.which("unshare"):
        return False
    probe = subprocess.run([*NAMESPACE, "mount --make-rprivate /"], capture_output=True)
    return probe.returncode == 0


class IioDevice:
    """`elements` are (index, type), as sysfs has them: (4, "le:s12/16>>4")."""

    def __init__(self, place, elements, frequency="1000"):
        self.place = place
        self.tree, self.fifo = place.path / "bus", place.path / "fifo"
        (place.path / "dev").mkdir()
        device = self.tree / "iio/devices/iio:device0"
        (device / "scan_elements").mkdir(parents=True)
        (device / "buffer").mkdir()
        self.write(device / "name", "stand-in")
        if frequency:
            self.write(device / "sampling_frequency", frequency)
        self.write(device / "buffer/length", "0")
        self.write(device / "buffer/enable", "0")
        for index, kind in elements:
            name = f"in_voltage{index}"
            self.write(device / f"{name}_raw", "0")
            self.write(device / f"scan_elements/{name}_en", "0")
            self.write(device / f"scan_elements/{name}_index", index)
            self.write(device / f"scan_elements/{name}_type", kind)
        os.mkfifo(self.fifo)
        self.pipe = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)

    @staticmethod
    def write(path, value):
        path.write_text(f"{value}\n")

    def start(self, program, *arguments, script=ALONE):
        """Starts a program that finds the device."""
        inside = [script, "stand-in", self.tree, self.fifo, self.place.path / "dev"]
        return self.place.start(*NAMESPACE, *inside, program, *arguments)

    def feed(self, content, seconds=60):
        """Writes all of it as fast as it is read; gives up after a while."""
        deadline = time.monotonic() + seconds
        while content and time.monotonic() < deadline:
            try:
                content = content[os.write(self.pipe, content[:4096]) :]
            except BlockingIOError:
                time.sleep(0.001)
        assert not content, f"{len(content)} bytes were not read"

    def feed_beside(self, *contents, pause_s=0.0):
        """The same from a thread, with a pause before every further part."""

        def body():
            for number, content in enumerate(contents):
                time.sleep(pause_s if number else 0)
                self.feed(content)

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def close(self):
        os.close(self.pipe)


def pack(samples, kinds):
    """The kernel's scans of [channel][sample] integers: (storage bytes, shift, big-endian) each."""
    count = samples.shape[1]
    columns, offset = [], 0
    for size, _, _ in kinds:
        offset = -(-offset // size) * size
        columns.append(offset)
        offset += size
    largest = max(size for size, _, _ in kinds)
    scan_bytes = -(-offset // largest) * largest
    scans = bytearray(b"\xa5" * (scan_bytes * count))  # padding is whatever was there
    for channel, ((size, shift, is_big), column) in enumerate(zip(kinds, columns)):
        for sample in range(count):
            value = (int(samples[channel, sample]) << shift) % (1 << 8 * size)
            at = sample * scan_bytes + column
            scans[at : at + size] = value.to_bytes(size, "big" if is_big else "little")
    return bytes(scans)
