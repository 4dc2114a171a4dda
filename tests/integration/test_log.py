"""What the coordinator says on standard error: for people, for programs, and not too often."""

import json
import os
import re
import signal

from cluster import wait_until

CALM = ["--source", "sim:?channels=2&samples=256&rate=25e3", "--nperseg", 256]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def lines_of(text):
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert TIME.fullmatch(line["time"]) and line["level"] in ("info", "warning", "error")
        assert isinstance(line["what"], str) and line["what"]
    return lines


def kill_worker(place, deaths):
    """Kills a worker, and waits until it has been replaced."""
    pid = wait_until(lambda: place.status()["workers"][0]["pid"])
    os.kill(pid, signal.SIGKILL)

    def is_replaced():
        recoveries = place.status()["recoveries"]
        return len(recoveries) > deaths and recoveries[-1]["cause"] != "unknown"

    assert wait_until(is_replaced, pause_s=0.02)
    return pid


def test_json_lines_say_when_what_and_about_whom(place):
    run = place.coordinator("--log-format", "json", *CALM, "--workers", 1)
    place.running_status()
    pid = kill_worker(place, 0)
    run.send(signal.SIGTERM)
    finished = run.finish()
    assert finished.code == 0
    (death,) = lines_of(finished.err)
    assert death["level"] == "warning" and death["what"].startswith("worker 0 ended (killed by")
    assert (death["worker"], death["pid"]) == (0, pid)
    assert death["cause"] == "killed by signal 9 (SIGKILL)"


def test_errors_are_one_line_in_either_form(place):
    missing = place.path / "none.raw"
    arguments = ["--source", f"raw:{missing}?channels=1&rate=1"]
    as_text = place.run(*arguments, code=2)
    assert len(as_text.error_lines) == 1
    (as_json,) = lines_of(place.run("--log-format", "json", *arguments, code=2).err)
    assert as_json["level"] == "error"
    assert as_text.err == f"echelle-coordinator: {as_json['what']}\n"
    for option, words in (("--log-format=xml", "text or json"), ("--log-level=3", "warning")):
        refused = place.run(option, *CALM, code=2)
        assert len(refused.error_lines) == 1 and words in refused.err


def test_a_level_silences_what_is_less_grave(place):
    for level, shown in (("warning", 1), ("error", 0)):
        run = place.coordinator("--log-level", level, *CALM, "--workers", 1)
        place.running_status()
        kill_worker(place, 0)
        run.send(signal.SIGTERM)
        assert len(run.finish().error_lines) == shown


def test_repeated_warnings_are_counted(place):
    run = place.coordinator(*CALM, "--workers", 1)
    place.running_status()
    kills = 10
    for deaths in range(kills):
        kill_worker(place, deaths)
    run.send(signal.SIGTERM)
    finished = run.finish()
    assert finished.code == 0
    deaths = [line for line in finished.error_lines if "warning: worker 0 ended" in line]
    (more,) = [line for line in finished.error_lines if "more like: " in line]
    held_back = int(re.search(r"and (\d+) more like: worker 0 ended", more)[1])
    assert len(deaths) + held_back == kills and held_back > 0
