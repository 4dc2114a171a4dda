"""Starts the real binaries in a private place, and looks for what they leave behind.

Each Workplace has its own runtime directory, so that its instances, sockets and locks meet no
other's. Its path stands in the environment of every process that it starts, and a forked worker
inherits it: so all of a run's processes are found in /proc, whoever their parent is by then.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("ECHELLE_BIN", REPOSITORY / "build/release/bin"))
COORDINATOR = BINARIES / "echelle-coordinator"
SIMULATOR = BINARIES / "echelle-fpga-sim"
CONTROL = BINARIES / "echellectl"
PATIENCE_S = 60  # for what should take a second: the machine may be busy
MARK = "ECHELLE_TEST_PLACE"


def wait_until(condition, seconds=PATIENCE_S, pause_s=0.005):
    """The first true value of condition(), or its last false one when the time is over."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return found


class Finished:
    """What an ended program said."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def error_lines(self):
        return self.err.splitlines()


class Running:
    """A program that runs; ended, if need be, when its Workplace is left."""

    def __init__(self, place, program, arguments, **options):
        self.place = place
        self.process = subprocess.Popen(
            [str(program), *map(str, arguments)],
            env=place.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.pid = self.process.pid

    def send(self, number):
        self.process.send_signal(number)

    def finish(self, seconds=PATIENCE_S):
        """Waits for the end. A program that hangs fails the test."""
        out, err = self.process.communicate(timeout=seconds)
        return Finished(self.process.returncode, out, err)

    def has_ended(self):
        return self.process.poll() is not None


class Workplace:
    """A private directory with everything that a test's processes may write to."""

    def __init__(self, cache):
        self.path = Path(tempfile.mkdtemp(prefix="ech-", dir="/tmp"))  # short: sockets lie in it
        self.runtime = self.path / "run"
        self.output = self.path / "out"
        self.runtime.mkdir(mode=0o700)
        self.output.mkdir()
        self.environment = dict(
            os.environ,
            XDG_RUNTIME_DIR=str(self.runtime),
            XDG_CACHE_HOME=str(cache),
            **{MARK: str(self.path)},
        )
        self.started = []
        self.shared_memory_before = shared_memory_names()

    def start(self, program, *arguments, **options):
        self.started.append(Running(self, program, arguments, **options))
        return self.started[-1]

    def coordinator(self, *arguments, prefix=(), **options):
        """Starts a coordinator that says nothing but errors and, unless told, plans quickly.

        `prefix` is a command that executes it, as `ip netns exec NAME`.
        """
        quick = [] if "--fft-effort" in arguments else ["--fft-effort", "estimate"]
        return self.start(*prefix, COORDINATOR, "--quiet", *quick, *arguments, **options)

    def run(self, *arguments, code=0, **options):
        """Runs a coordinator to its end, which must have this exit code."""
        finished = self.coordinator(*arguments, **options).finish()
        assert finished.code == code, f"exit code {finished.code}: {finished.err}"
        return finished

    def run_with_report(self, *arguments, code=0, **options):
        """Runs a coordinator to its end and returns its report."""
        report = self.output / "report.json"
        report.unlink(missing_ok=True)
        self.run("--report", report, *arguments, code=code, **options)
        return read_report(report)

    def control(self, *arguments):
        return self.start(CONTROL, *arguments).finish()

    def status(self, name="echelle"):
        """The running coordinator's status, or None when none answers."""
        answer = self.control("--name", name, "--json", "status")
        return json.loads(answer.out) if answer.code == 0 else None

    def running_status(self, name="echelle"):
        """Waits until frames are being worked on; returns that status."""
        def at_work():
            status = self.status(name)
            return status if status and status["frames"]["done"] > 0 else None
        status = wait_until(at_work)
        assert status, "the coordinator never got to work"
        return status

    def processes(self):
        """pid -> name of all living processes that began here, whoever their parent is now."""
        mark = f"{MARK}={self.path}".encode()
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "comm").read_text().strip()
            except OSError:
                pass  # it has ended meanwhile, or is a zombie
        return found

    def pid_of(self, name):
        """The one living process here of that name."""
        found = [pid for pid, comm in self.processes().items() if comm == name]
        assert len(found) == 1, f"{name}: {found}"
        return found[0]

    def leftovers(self):
        """What should not be there once everything has ended; empty when all is well."""
        left = [f"process {pid} {name}" for pid, name in self.processes().items()]
        left += [f"file {path}" for path in sorted(self.runtime.rglob("*"))]
        left += [
            f"shared memory {name}"
            for name in sorted(shared_memory_names() - self.shared_memory_before)
            if "echelle" in name and not is_mapped_elsewhere(name, self.processes())
        ]
        left += [f"output {path.name}" for path in self.output.iterdir() if ".part" in path.name]
        return left

    def nothing_is_left(self, seconds=PATIENCE_S):
        """Fails unless everything is gone, soon."""
        left = []

        def all_gone():
            left[:] = self.leftovers()
            return not left

        assert wait_until(all_gone, seconds), left

    def leave(self):
        for running in self.started:
            if not running.has_ended():
                running.process.kill()
                running.process.communicate()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in shared_memory_names():
            if self.path.name in name:  # rings that the tests name after their place
                os.unlink(f"/dev/shm/{name}")
        shutil.rmtree(self.path, ignore_errors=True)


def shared_memory_names():
    return set(os.listdir("/dev/shm"))


def is_mapped_elsewhere(name, ours):
    """True when a living process that is not ours uses it: another test of this machine."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if int(maps.parent.name) not in ours and f"/dev/shm/{name}\n" in maps.read_text():
                return True
        except OSError:
            pass  # it has ended meanwhile
    return False


def read_report(path):
    return json.loads(Path(path).read_text())


def check_books(report):
    """frames.in = done + all drops + in flight, and the same for blocks."""
    frames, blocks = report["frames"], report["blocks"]
    dropped = sum(frames["dropped"].values())
    assert frames["in"] == frames["done"] + dropped + frames["in_flight"], frames
    assert (
        blocks["made"]
        == blocks["done"] + blocks["dropped"] + blocks["failed"] + blocks["in_flight"]
    ), blocks
    assert all(count > 0 for count in frames["dropped"].values()), "a reason without a frame"
