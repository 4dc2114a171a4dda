"""What an operator uses beside the coordinator: the live view `echellectl top` on a terminal, the
tuning script, the service unit."""

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

import pytest

from cluster import CONTROL, COORDINATOR, REPOSITORY, wait_until

LIVE = "sim:?channels=4&samples=256&rate=1e5"
TUNE = REPOSITORY / "deploy/tune.sh"
UNIT = REPOSITORY / "deploy/echelle@.service"


class Terminal:
    """A program on a pseudo-terminal of so many rows and columns."""

    def __init__(self, place, *command, rows=40, columns=160):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.theirs = theirs  # kept open, so that its state can be looked at afterwards
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(list(map(str, command)), env=place.environment,
                                        stdin=theirs, stdout=theirs, stderr=theirs,
                                        start_new_session=True, preexec_fn=self.control)
        os.set_blocking(self.ours, False)
        self.text = ""

    @staticmethod
    def control():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C is the terminal's to turn into a signal

    def read(self):
        try:
            self.text += os.read(self.ours, 65536).decode()
        except BlockingIOError:
            pass
        return self.text

    def pages(self):
        """The pages drawn so far, without control sequences."""
        drawn = self.read().split("\x1b[H")[1:]
        return [re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", page).replace("\r\n", "\n")
                for page in drawn if page.endswith("\x1b[J") or "\x1b[J" in page]

    def type(self, keys):
        os.write(self.ours, keys)

    def end(self, seconds=20):
        """Its exit code; fails if it doesn't end or leaves the terminal changed."""
        assert wait_until(lambda: (self.read(), self.process.poll())[1] is not None, seconds)
        self.read()
        assert termios.tcgetattr(self.theirs) == self.before
        assert self.text.endswith("\x1b[?25h") or "\x1b[?25h" in self.text, "the cursor is back"
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal(place):
    opened = []

    def start(*command, **size):
        opened.append(Terminal(place, *command, **size))
        return opened[-1]
    yield start
    for one in opened:
        one.close()


@pytest.fixture
def live(place):
    run = place.coordinator("--source", LIVE, "--workers", 2, "--nperseg", 256)
    place.running_status()
    yield run
    if not run.has_ended():
        place.control("stop")
        assert run.finish().code == 0


def frames_in(page):
    return int(re.search(r"frames +in (\d+)", page)[1])


def test_top_shows_what_a_run_does_and_keeps_up(place, live, terminal):
    top = terminal(CONTROL, "top")
    assert wait_until(lambda: len(top.pages()) >= 4), top.text
    pages = top.pages()
    assert frames_in(pages[3]) > frames_in(pages[0])
    page = pages[3]
    for words in (r"echelle echelle +\d+\.\d s", r"dropped: none", r"ring \d+ % full",
                  r"real-time factor \d", r"latency P50 \d+ +P90 \d+ +P99 \d+ +max \d+ us"):
        assert re.search(words, page), (words, page)
    header = next(line for line in page.splitlines() if line.startswith("worker"))
    assert header.split() == ["worker", "pid", "cpu", "node", "state", "blocks", "blocks/s", "share",
                              "busy", "restarts"]
    pids = {worker["id"]: worker["pid"] for worker in place.status()["workers"]}
    rows = [line.split() for line in page.splitlines() if re.match(r"\d+ ", line)]
    assert {int(row[0]): int(row[1]) for row in rows} == pids
    for row in rows:
        _, _, cpu, node, state, blocks, rate, share, busy, restarts = row
        assert int(cpu) in os.sched_getaffinity(0) and int(node) >= 0
        assert state == "running" and int(blocks) >= 0 and restarts == "0"
        assert share.endswith("%") and busy.endswith("%") and int(rate) >= 0
    assert 99 <= sum(float(row[7][:-1]) for row in rows) <= 101
    assert sum(int(row[6]) for row in rows) > 0, "blocks per second since the look before"
    top.type(b"q")
    assert top.end() == 0


def test_top_shows_restarts_drops_and_pauses(place, terminal):
    run = place.coordinator("--source", "sim:?channels=2&samples=512&rate=1e6", "--workers", 1,
                            "--ring-frames", 64)
    os.kill(place.running_status()["workers"][0]["pid"], signal.SIGKILL)
    top = terminal(CONTROL, "top")
    assert wait_until(lambda: re.search(r"^0 .* running .* 1$", top.pages()[-1] if top.pages() else "",
                                        re.MULTILINE)), top.text
    assert place.control("pause").code == 0
    assert wait_until(lambda: re.search(r"dropped: .*paused \d+", top.pages()[-1]))
    assert wait_until(lambda: "PAUSED" in top.pages()[-1])
    top.type(b"q")
    assert top.end() == 0
    place.control("stop")
    assert run.finish().code == 0


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM"])
def test_top_ends_cleanly(place, live, terminal, how):
    top = terminal(CONTROL, "top")
    assert wait_until(lambda: len(top.pages()) >= 1)
    if how == "Ctrl-C":
        top.type(b"\x03")
    else:
        top.process.send_signal(getattr(signal, how))
    assert top.end() == 0
    assert place.status()["failure"] is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_top_ends_when_the_coordinator_goes(place, terminal, number):
    run = place.coordinator("--source", LIVE, "--workers", 1)
    place.running_status()
    top = terminal(CONTROL, "top")
    assert wait_until(lambda: len(top.pages()) >= 2)
    run.send(number)
    run.finish()
    assert top.end() == 0
    assert top.text.endswith("the run has ended\r\n")


def test_top_fits_its_terminal(place, terminal):
    run = place.coordinator("--source", LIVE, "--workers", 12)
    place.running_status()
    top = terminal(CONTROL, "top", rows=10, columns=50)
    assert wait_until(lambda: len(top.pages()) >= 2)
    lines = top.pages()[1].splitlines()
    assert len(lines) == 9 and max(map(len, lines)) <= 50
    assert lines[-1] == "... 9 more lines"  # of 4 + a header + 12 workers, 8 are shown
    top.type(b"q")
    assert top.end() == 0
    run.send(signal.SIGINT)
    assert run.finish().code == 0


def test_top_without_a_coordinator_leaves_the_terminal_alone(place, terminal):
    top = terminal(CONTROL, "--name", "nobody", "top")
    assert wait_until(lambda: top.process.poll() is not None, 20)
    assert top.process.returncode == 1
    assert "no coordinator answers" in top.read() and "\x1b" not in top.text


def test_top_on_a_pipe_is_one_page(place, live):
    answer = place.control("top")
    assert answer.code == 0 and answer.err == ""
    assert answer.out.count("blocks/s") == 1 and "\x1b" not in answer.out


# ---- deploy/tune.sh

def tune(*arguments):
    return subprocess.run(["bash", str(TUNE), *arguments], capture_output=True, text=True, timeout=60)


def tunable():
    """What the script could change, as it is now."""
    files = ["/proc/sys/vm/nr_hugepages"]
    for folder, name in [("/sys/devices/system/cpu", "cpufreq/scaling_governor"),
                         ("/proc/irq", "smp_affinity_list")]:
        if os.path.isdir(folder):
            files += [f"{folder}/{entry}/{name}" for entry in sorted(os.listdir(folder))]
    found = {}
    for file in files:
        try:
            with open(file) as opened:
                found[file] = opened.read()
        except OSError:
            pass
    return found


def test_the_tuning_script_changes_nothing_unless_told():
    before = tunable()
    told = tune("--ring-mib", "64", "--irq-cpus", "0")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.endswith("nothing was changed; --apply does it\n")
    assert "huge pages of 2 MiB" in told.stdout and "governors:" in told.stdout
    assert "interrupts on CPUs 0:" in told.stdout
    assert "  done:" not in told.stdout
    # 64 MiB are 32 pages, and one more is for the header and the table.
    pages = re.search(r"would: +/proc/sys/vm/nr_hugepages: (\d+) -> (\d+)", told.stdout)
    if pages:
        free = int(open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").read())
        assert int(pages[1]) == int(before["/proc/sys/vm/nr_hugepages"])
        assert int(pages[2]) == int(pages[1]) + 33 - free
    assert tunable() == before


def test_the_tuning_script_leaves_interrupts_alone_unless_named():
    assert "interrupts" not in tune().stdout


@pytest.mark.parametrize("arguments, words", [(["--dance"], "--dance"), (["--ring-mib"], "number"),
                                              (["--ring-mib", "x"], "'x' is not a number")])
def test_the_tuning_script_refuses_what_it_does_not_know(arguments, words):
    before = tunable()
    refused = tune(*arguments)
    assert refused.returncode != 0 and words in refused.stderr and refused.stdout == ""
    assert tunable() == before


def test_the_tuning_script_needs_root_to_apply():
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become somebody else with setpriv(1)")
    script = TUNE.read_text()  # its folder may be closed to others
    refused = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "bash", "-s", "--",
                              "--apply"], input=script, capture_output=True, text=True, cwd="/")
    assert refused.returncode == 2 and "--apply needs root" in refused.stderr


# ---- the service unit

def verify(folder, text):
    path = folder / UNIT.name
    path.write_text(text)
    return subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True,
                          text=True, timeout=60)


@pytest.fixture
def systemd_analyze():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the service unit goes unchecked")


def test_the_service_unit_is_sound(tmp_path, systemd_analyze):
    # As it would be installed, but for the program's folder: what it names has to exist.
    text = UNIT.read_text()
    assert "ExecStart=/usr/bin/echelle-coordinator " in text
    text = text.replace("/usr/bin/echelle-coordinator", str(COORDINATOR))
    checked = verify(tmp_path, text)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "Umsk" in verify(tmp_path, text.replace("UMask=", "Umsk=")).stderr, "it would be found"


def test_the_service_unit_is_hardened(systemd_analyze):
    """`systemd-analyze security` weighs what a service could still do, from 0 to 10: under 2."""
    checked = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                              "--no-pager", str(UNIT)], capture_output=True, text=True, timeout=60)
    if "unrecognized option" in checked.stderr or "Unknown" in checked.stderr:
        pytest.skip("this systemd-analyze cannot weigh a unit that is not installed")
    assert checked.returncode == 0, checked.stdout[-300:] + checked.stderr
