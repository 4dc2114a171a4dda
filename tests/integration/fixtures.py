"""Fixtures of the integration tests and of the fault tests."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "clients/python/src"))

import cluster  # noqa: E402  (found by the lines above)

figures = []  # lines for the end of the run


@pytest.fixture(scope="session")
def cache():
    """A private place for the wisdom of the transforms."""
    path = tempfile.mkdtemp(prefix="ech-cache-", dir="/tmp")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(cache):
    """A private Workplace, in which nothing may be left when the test has ended well."""
    workplace = cluster.Workplace(cache)
    try:
        yield workplace
        for running in workplace.started:
            assert running.has_ended(), f"{running.process.args[0]} still runs"
        workplace.nothing_is_left()
    finally:
        workplace.leave()


@pytest.fixture(scope="session")
def report_figure():
    """Call it with a line that is to be printed when all tests have ended."""
    return figures.append


def pytest_terminal_summary(terminalreporter):
    for line in figures:
        terminalreporter.write_line(line)
