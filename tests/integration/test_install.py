"""What `cmake --install` puts somewhere works there."""

import os
import subprocess
from pathlib import Path

import pytest
from cluster import check_books, read_report

BUILD = os.environ.get("ECHELLE_BUILD_DIR")

pytestmark = pytest.mark.skipif(not BUILD, reason="skipped: ECHELLE_BUILD_DIR is not given")


@pytest.fixture
def prefix(place):
    path = place.path / "prefix"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", path], check=True, capture_output=True, text=True
    )
    return path


def test_programs(place, prefix):
    for name in ("echelle-coordinator", "echelle-fpga-sim", "echelle-info", "echelle-hub",
                 "echelle-mqtt", "echelle-record", "echellectl"):  # fmt: skip
        finished = place.start(prefix / "bin" / name, "--version").finish()
        assert finished.code == 0 and finished.out.strip(), finished.err
        finished = place.start(prefix / "bin" / name, "--help").finish()
        assert finished.code == 0 and f"Usage: {name}" in finished.out
    report = place.output / "report.json"
    finished = place.start(
        *[prefix / "bin/echelle-coordinator", "--fft-effort", "estimate", "--workers", 2],
        *["--source", "sim:?channels=4&frames=50&pace=asap", "--report", report],
    ).finish()
    assert finished.code == 0, finished.err
    check_books(read_report(report))
    assert read_report(report)["frames"]["done"] == 50
    assert "frames done" in finished.out


def test_documents(prefix):
    installed = {path.name for path in prefix.rglob("*.md")}
    docs = {path.name for path in (Path(__file__).parents[2] / "docs").glob("*.md")}
    assert docs <= installed and "README.md" in installed
    assert any(path.name == "LICENSE" for path in prefix.rglob("LICENSE"))


USER = """
#include <cstdio>
#include <echelle/feed.hpp>
int main() {
    try {
        echelle::client::latest("nobody", 0, std::chrono::milliseconds(1));
    } catch (const echelle::client::FeedTimeout& error) {
        std::puts(error.what());
    }
}
"""


def test_cpp_client(place, prefix):
    """By its CMake package and by its pkg-config file, as somebody else's program finds it."""
    source = place.path / "source"
    source.mkdir()
    (source / "user.cpp").write_text(USER)
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
        "find_package(echelle-client 0.1 REQUIRED)\nadd_executable(user user.cpp)\n"
        "target_link_libraries(user echelle::client)\n"
    )
    libraries = next(prefix.rglob("libechelle-client.a")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(libraries / "pkgconfig"))

    def run(*command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              env=environment)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", source / "build")
    assert "is a coordinator running" in run(source / "build/user")
    flags = run("pkg-config", "--define-prefix", "--cflags", "--libs", "echelle-client")
    run("g++", "-std=c++20", source / "user.cpp", "-o", source / "by-pkg-config", *flags.split())
    assert "is a coordinator running" in run(source / "by-pkg-config")
