"""Machines that give less: system calls refused by a seccomp filter, CPUs, memory and capabilities
taken away. Each costs one warning at most, and the work is done all the same."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cluster import COORDINATOR, SIMULATOR, check_books, read_report, wait_until
from control_group import control_group

RESTRICT = Path(__file__).with_name("restrict.py")
CAP_SYS_NICE = 23
MIB = 2**20
SMALL = "sim:?channels=8&samples=512&pace=asap"  # its ring has 8 MiB
FULL = "sim:?channels=128&samples=2048&pace=asap&generate=once&signal=dc(5)"  # its ring has 128 MiB
LIVE = "sim:?channels=4&samples=256&rate=1e5"
WARNING = "echelle-coordinator: warning: "


def start(place, restrictions, *arguments, program=COORDINATOR):
    quick = ["--fft-effort", "estimate"] if program == COORDINATOR else []
    return place.start("/usr/bin/python3", RESTRICT, *restrictions, "--", program, *quick, *arguments)


def run(place, restrictions, *arguments, source=SMALL, frames=400):
    """Runs it to its end; answers the report, its books checked, and the warnings."""
    report_path = place.output / "report.json"
    finished = start(place, restrictions, "--source", f"{source}&frames={frames}", "--workers", 2,
                     "--report", report_path, *arguments).finish()
    assert finished.code == 0, finished.err
    lines = [line for line in finished.error_lines if " frames/s, " not in line]
    assert all(line.startswith(WARNING) for line in lines), lines
    report = read_report(report_path)
    check_books(report)
    assert report["frames"]["done"] == frames and report["frames"]["dropped"] == {}
    assert report["blocks"]["failed"] == 0 and report["spectra"]["out"] > 0
    assert place.leftovers() == []
    return report, [line.removeprefix(WARNING) for line in lines]


def refuse(*calls):
    return [word for call in calls for word in ("--refuse", call)]


def start_at_work(place, restrictions, *arguments, source=LIVE):
    started = start(place, restrictions, "--quiet", "--source", source, "--workers", 2, *arguments)
    place.running_status()
    return started


def workers_of(place):
    return [pid for pid, comm in place.processes().items() if comm == "echelle-worker"]


def test_with_everything_there_is_nothing_to_warn_of(place):
    _, warnings = run(place, [])
    assert warnings == []


# ---- pidfd_open: deaths are learnt from the nursery, the coordinator's from a pipe

@pytest.fixture(params=["zmq", "futex"])
def notify(request):
    return ["--notify", request.param]


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_pidfd_open_refused(place, error):
    _, warnings = run(place, refuse(f"pidfd_open={error}"))
    assert len(warnings) == 1
    assert warnings[0].startswith("pidfd_open is refused (")


def test_without_pidfds_a_killed_worker_is_replaced_and_nothing_is_lost(place, notify):
    frames = 10_000
    report_path = place.output / "report.json"
    started = start(place, refuse("pidfd_open"), "--quiet", "--report", report_path, *notify,
                    "--source", f"{SMALL}&generate=each&frames={frames}", "--workers", 2)
    status = place.running_status()
    os.kill(status["workers"][0]["pid"], signal.SIGKILL)
    finished = started.finish()
    assert finished.code == 0
    report = read_report(report_path)
    check_books(report)
    assert report["frames"]["done"] == frames and report["blocks"]["failed"] == 0
    ours = [recovery for recovery in report["recoveries"] if recovery["worker"] == 0]
    assert ours and ours[0]["respawned_us"] > 0
    assert ours[0]["cause"] == "killed by signal 9 (SIGKILL)"
    assert report["workers"][0]["incarnations"] == 1 + len(ours)


@pytest.mark.parametrize("call", ["pidfd_open", "pidfd_send_signal"])
def test_a_stopped_worker_is_killed_with_plain_signals(place, call):
    # A hop of 8 samples: blocks take long, so that a worker nearly always holds one.
    started = start_at_work(place, refuse(call), "--nperseg", 1024, "--noverlap", 1016, source=SMALL)

    def killed_for_hanging():
        before = len(place.status()["recoveries"])
        victim = place.status()["workers"][0]["pid"]
        os.kill(victim, signal.SIGSTOP)
        if not wait_until(lambda: len(place.status()["recoveries"]) > before, 3):
            os.kill(victim, signal.SIGCONT)
        return any(r["cause"].startswith("hung") for r in place.status()["recoveries"])
    assert wait_until(killed_for_hanging)
    started.send(signal.SIGINT)
    assert started.finish().code == 0


def test_without_pidfds_nothing_outlives_a_killed_coordinator(place, notify, report_figure):
    started = start_at_work(place, refuse("pidfd_open"), *notify)
    started.send(signal.SIGKILL)
    began = time.monotonic()
    started.finish()
    place.nothing_is_left(5)
    report_figure(f"without pidfds, {notify[1]}: all gone {time.monotonic() - began:.2f} s after the "
                  "coordinator's SIGKILL")


def test_without_pidfds_workers_die_with_coordinator_and_nursery(place):
    started = start_at_work(place, refuse("pidfd_open"))
    for pid in (place.pid_of("echelle-nursery"), started.pid):
        os.kill(pid, signal.SIGKILL)
    started.finish()
    assert wait_until(lambda: not place.processes(), 5)
    place.run("--source", f"{SMALL}&frames=20", "--name", "echelle")  # removes what they left


def test_without_pidfds_the_nursery_and_workers_die_at_once(place):
    """A worker's death that the nursery could not tell of any more is noticed all the same."""
    started = start_at_work(place, refuse("pidfd_open"))
    for restarts in (1, 2, 3):
        victims = [place.pid_of("echelle-nursery"), *workers_of(place)]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

        def all_new():
            status = place.status()
            return status["nursery"] == {"alive": True, "restarts": restarts} and all(
                w["state"] == "running" and w["pid"] not in victims for w in status["workers"])
        assert wait_until(all_new), place.status()["workers"]
        done = place.status()["frames"]["done"]
        assert wait_until(lambda: place.status()["frames"]["done"] > done)
    started.send(signal.SIGKILL)  # the nurseries that were executed anew watch it as well
    started.finish()
    place.nothing_is_left(5)


# ---- CPUs

MEMORY_POLICY = ["mbind", "set_mempolicy", "get_mempolicy", "migrate_pages", "move_pages"]
PRIORITY = ["setpriority", "sched_setparam", "sched_setscheduler", "sched_setattr",
            "sched_getparam", "sched_getscheduler"]
LOCKING = ["mlock", "mlock2", "mlockall"]


@pytest.mark.parametrize("calls, error", [(MEMORY_POLICY, "EPERM"), (MEMORY_POLICY, "ENOSYS"),
                                          (PRIORITY, "EPERM"), (PRIORITY, "ENOSYS"),
                                          (LOCKING, "EPERM")])
def test_what_it_does_without_costs_not_even_a_warning(place, calls, error):
    _, warnings = run(place, refuse(*[f"{call}={error}" for call in calls]))
    assert warnings == []


def test_no_cap_sys_nice(place):
    if os.geteuid() == 0:
        restrictions = ["--no-capability", CAP_SYS_NICE]
    else:
        restrictions = []  # nobody but root has it anyway
    report, warnings = run(place, restrictions)
    assert warnings == []
    assert all(worker["cpu"] is not None for worker in report["workers"])


def test_no_capability_at_all(place):
    if os.geteuid() != 0:
        pytest.skip("only root has capabilities to lose")
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    _, warnings = run(place, [w for n in range(last + 1) for w in ("--no-capability", n)])
    assert warnings == []


@pytest.mark.parametrize("calls", [["sched_setaffinity"], ["sched_setaffinity", "sched_getaffinity"]])
def test_binding_refused(place, calls):
    report, warnings = run(place, refuse(*calls))
    assert len(warnings) == 1
    assert "could not be bound to its CPU" in warnings[0]
    assert [worker["cpu"] for worker in report["workers"]] == [None, None]
    _, warnings = run(place, refuse(*calls), "--pin", "none")
    assert warnings == []


def test_fewer_cpus_than_the_machine_has(place):
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("this machine gives one CPU anyway")
    report, warnings = run(place, ["--cpus", usable[-1]])
    assert len(warnings) == 1
    assert warnings[0].startswith("this program may use 1 of the ")
    assert [worker["cpu"] for worker in report["workers"]] == [usable[-1]] * 2
    refused = start(place, ["--cpus", usable[-1]], "--source", SMALL, "--pin", usable[0]).finish()
    assert refused.code == 2 and len(refused.error_lines) == 1
    assert f"CPU {usable[0]} is not among those" in refused.err


# ---- memory

def test_no_huge_pages(place):
    restrictions = refuse("memfd_create-huge")
    report, warnings = run(place, restrictions, source=FULL, frames=200)
    if report["memory"]["page_kind"] == "THP":
        assert warnings == []
        pytest.skip("this machine gives transparent huge pages to shared memory")
    assert report["memory"]["page_kind"] == "4K"
    assert len(warnings) == 1
    assert warnings[0].startswith("no huge pages for the ring of ")


def check_short_ring(report, warnings):
    """The one about small pages aside, where the ring is still large enough for it."""
    warnings = [warning for warning in warnings if not warning.startswith("no huge pages")]
    assert len(warnings) == 1
    frames = report["config"]["ring_frames"]
    assert 16 < frames < 256  # of 512 KiB each
    assert warnings[0].startswith(f"the ring has {frames} frames instead of 256: ")


@pytest.mark.parametrize("limit", [f"AS={240 * MIB}", f"FSIZE={100 * MIB}"])
def test_a_limit_on_memory(place, limit):
    """Address space, and the size of files, which counts for memory that is shared as well."""
    report, warnings = run(place, ["--limit", limit], "--notify", "futex", source=FULL, frames=200)
    check_short_ring(report, warnings)


@pytest.fixture
def memory_group():
    with control_group("memory", str(120 * MIB), str(120 * MIB)) as group:
        yield group


def test_a_control_group_with_little_memory(place, memory_group):
    report, warnings = run(place, ["--group", memory_group], source=FULL, frames=200)
    check_short_ring(report, warnings)


def test_a_ring_of_ones_own_length_is_refused_where_memory_lacks(place):
    refused = start(place, ["--limit", f"FSIZE={100 * MIB}"], "--source", FULL,
                    "--ring-frames", 256).finish()
    assert refused.code == 2 and len(refused.error_lines) == 1
    assert "no memory for the ring of 256 frames" in refused.err and "--ring-frames" in refused.err


def test_limits_on_locked_memory_and_priorities_matter_not(place):
    limits = ["MEMLOCK=0", "NICE=0", "RTPRIO=0"]
    _, warnings = run(place, [word for limit in limits for word in ("--limit", limit)])
    assert warnings == []


# ---- /dev/shm

SMALL_SHM = ["--mount", "--propagation", "private", "sh", "-c",
             'mount -t tmpfs -o size=256k none /dev/shm && exec "$@"', "sh"]


@pytest.fixture
def unshare():
    """The words before a program that gives it a /dev/shm of 256 KiB; skips where it can't be."""
    program = shutil.which("unshare")
    if program is None:
        pytest.skip("there is no unshare(1)")
    for more in ([], ["--user", "--map-root-user"]):
        words = [program, *more, *SMALL_SHM]
        if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    pytest.skip("no mount namespace can be made here")


def test_a_full_dev_shm(place, unshare):
    """A ring of its own is not in /dev/shm; a ring by name that finds no room is refused in words
    instead of dying of SIGBUS, and leaves nothing."""
    run_in_little = [*unshare, COORDINATOR, "--fft-effort", "estimate", "--source",
                     f"{SMALL}&frames=100", "--report", place.output / "report.json"]
    finished = place.start(*run_in_little).finish()
    assert (finished.code, finished.err) == (0, "")
    assert read_report(place.output / "report.json")["frames"]["done"] == 100
    simulate = f'"$0" --ring {place.path.name} --channels 8 --samples 512; code=$?; ls /dev/shm; exit $code'
    finished = place.start(*unshare, "sh", "-c", simulate, SIMULATOR).finish()
    assert finished.code == 2 and len(finished.error_lines) == 1
    assert "no memory for /dev/shm/echelle-" in finished.err and "--ring-frames" in finished.err
    assert finished.out == ""


# ---- all of it

def test_everything_at_once_is_a_line_each(place):
    usable = sorted(os.sched_getaffinity(0))
    restrictions = ["--limit", f"FSIZE={40 * MIB}", "--limit", "MEMLOCK=0", "--cpus", usable[-1],
                    *refuse("pidfd_open", "pidfd_send_signal", "sched_setaffinity",
                            "memfd_create-huge", *MEMORY_POLICY, *PRIORITY, *LOCKING)]
    _, warnings = run(place, restrictions, "--notify", "futex", source=FULL, frames=100)
    expected = ["pidfd_open is refused", "the ring has ", "could not be bound to its CPU"]
    if len(usable) > 1:
        expected.append("this program may use 1 of the ")
    assert len(warnings) == len(expected), warnings
    for words in expected:
        assert sum(words in warning for warning in warnings) == 1, (words, warnings)


# ---- --realtime and --lock-memory

SCHED_FIFO_IN_STAT = "1"


def policies(pid):
    """Name of each thread -> its policy, field 41 of proc(5)'s stat."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, rest = (task / "stat").read_text().rsplit(")", 1)
        found.setdefault(name.split("(", 1)[1], set()).add(rest.split()[38])
    return found


@pytest.mark.parametrize("notify", ["zmq", "futex"])
def test_real_time_is_for_those_who_pass_work_on_alone(place, notify):
    started = start_at_work(place, [], "--realtime", 10, "--lock-memory", "--notify", notify)
    coordinator = policies(started.pid)
    assert coordinator["ingest"] == coordinator["collector"] == {SCHED_FIFO_IN_STAT}
    assert coordinator["source"] == coordinator["echelle-coordin"] == {"0"}
    if notify == "zmq":
        assert SCHED_FIFO_IN_STAT in coordinator["ZMQbg/IO/0"]
    for pid in [*workers_of(place), place.pid_of("echelle-nursery")]:
        assert set.union(*policies(pid).values()) == {"0"}
    locked = Path(f"/proc/{started.pid}/status").read_text().split("VmLck:")[1].split()[0]
    assert int(locked) > 8 * 1024  # kB: the ring is among it
    os.kill(place.pid_of("echelle-nursery"), signal.SIGKILL)
    assert wait_until(lambda: place.running_status()["nursery"]["restarts"] == 1)
    new = wait_until(lambda: [pid for pid, comm in place.processes().items()
                              if comm == "echelle-nursery"])
    assert set.union(*policies(new[0]).values()) == {"0"}
    started.send(signal.SIGINT)
    assert started.finish().code == 0


def test_real_time_and_locked_memory_that_are_refused(place):
    restrictions = [*refuse("sched_setscheduler", "mlockall")]
    _, warnings = run(place, restrictions, "--realtime", 10, "--lock-memory")
    assert len(warnings) == 2
    assert "--realtime 10 is refused" in warnings[0] and "ulimit -r" in warnings[0]
    assert "--lock-memory is refused" in warnings[1] and "ulimit -l" in warnings[1]
