"""Starts the measuring programs and whole clusters, in a private place.

Sockets and FFTW's wisdom lie in the build folder, so that a measurement meets no other coordinator
and every program uses the same plans.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("ECHELLE_BENCH_BUILD", REPOSITORY / "build/bench"))
BINARIES = BUILD / "bin"
LONGEST_RUN_S = 60  # where a run's end is not part of what is measured
ANSWER_S = 10  # echellectl gives up after two seconds by itself
PATIENCE_S = 300  # planning the transforms for the first time takes half a minute

_runtime = Path(tempfile.mkdtemp(prefix="echelle-bench-", dir="/tmp"))  # short: sockets lie in it
ENVIRONMENT = dict(
    os.environ, XDG_RUNTIME_DIR=str(_runtime), XDG_CACHE_HOME=str(BUILD / "cache")
)


def remove_runtime_folder():
    shutil.rmtree(_runtime, ignore_errors=True)


def cpus():
    return sorted(os.sched_getaffinity(0))


def median(values):
    return statistics.median(values)


def run_json(program, *arguments):
    """Runs a program that prints one JSON object."""
    done = subprocess.run(
        [str(program), *map(str, arguments)], env=ENVIRONMENT, stdout=subprocess.PIPE,
        timeout=PATIENCE_S, check=True,
    )
    return json.loads(done.stdout)


def run_bench(name, *arguments):
    return run_json(BINARIES / f"bench_{name}", *arguments)


def run_bench_at_once(name, *argument_lists):
    """Several at the same time; their answers in order."""
    running = [
        subprocess.Popen(
            [str(BINARIES / f"bench_{name}"), *map(str, arguments)],
            env=ENVIRONMENT, stdout=subprocess.PIPE,
        )
        for arguments in argument_lists
    ]
    answers = [process.communicate(timeout=PATIENCE_S)[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"bench_{name} failed")
    return [json.loads(answer) for answer in answers]


def run_google_benchmark(name, repetitions, min_time_s, only="."):
    """run name -> {"cpu_ns": median CPU time, "label", counters…}, all repetitions shuffled."""
    answer = run_bench(
        name, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
        "--benchmark_enable_random_interleaving=true", f"--benchmark_min_time={min_time_s}",
        f"--benchmark_filter={only}",
    )
    runs = {}
    for run in answer["benchmarks"]:
        if run["run_type"] == "iteration":
            runs.setdefault(run["run_name"], []).append(run)
    figures = {}
    for run_name, repeated in runs.items():
        figures[run_name] = {"cpu_ns": median(run["cpu_time"] for run in repeated)}
        for key in ("s_per_frame", "items_per_second"):
            if key in repeated[0]:
                figures[run_name][key] = median(run[key] for run in repeated)
        if repeated[0].get("label"):
            figures[run_name]["label"] = repeated[0]["label"]
    return figures


def kernel_alone(workers, seconds, **shape):
    """The engine and bare FFTW on as many cores as there are workers, all at once.

    Medians over the cores, microseconds of CPU time per frame.
    """
    options = [part for key, value in shape.items() for part in (f"--{key}", value)]
    options += ["--workers", workers, "--seconds", seconds]
    answers = run_bench_at_once(
        "kernel_alone", *([*options, "--cpu", cpu] for cpu in cpus()[:workers])
    )
    keys = ("bare_fft_us", "engine_us", "seal_us", "engine_over_bare_fft")
    figures = {key: median(answer[key] for answer in answers) for key in keys}
    return figures | {"plan": answers[0]["plan"], "kernels": answers[0]["kernels"]}


class Cluster:
    """A coordinator that runs; killed when it is left, and ended by itself in any case."""

    def __init__(self, *arguments, duration_s=LONGEST_RUN_S):
        self.report_path = _runtime / "report.json"
        self.report_path.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [str(BINARIES / "echelle-coordinator"), "--quiet", "--report", str(self.report_path),
             "--duration", str(duration_s), *map(str, arguments)],
            env=ENVIRONMENT, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # workers and nursery as well
            self.process.wait()

    @property
    def session(self):
        return self.process.pid

    def status(self):
        """The status, or None when nobody answers."""
        answer = subprocess.run(
            [str(BINARIES / "echellectl"), "--json", "status"], env=ENVIRONMENT,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S, check=False,
        )
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def steady_status(self):
        """The status of a coordinator that is at work; a busy machine may let it answer late."""
        for _ in range(10):
            if status := self.status():
                return status
        raise RuntimeError("the coordinator does not answer")

    def wait_until_at_work(self):
        """Waits for the first frames; returns that status."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            status = self.status()
            if status and status["frames"]["done"] > 0:
                return status
            time.sleep(0.02)
        raise RuntimeError("the coordinator never got to work")

    def stop(self):
        """Ends the run; the report."""
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        """Waits for the end; the report."""
        self.process.wait(timeout=PATIENCE_S)
        if self.process.returncode != 0:
            raise RuntimeError(f"the coordinator ended with code {self.process.returncode}")
        return json.loads(self.report_path.read_text())


def simulated(pace, **keys):
    """A source URI: frames made once, so that the simulator costs no more than a card would."""
    text = "&".join(f"{key}={value}" for key, value in keys.items())
    return f"sim:?pace={pace}&generate=once" + (f"&{text}" if text else "")
