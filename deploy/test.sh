#!/usr/bin/env bash
# From nothing to a verdict: installs the packages, builds, and runs every test. Under 20 minutes on
# two cores. Not in it: clang-tidy over everything (ECHELLE_LINT=1, some five minutes more) and the
# longer fault runs (ECHELLE_LONG_TESTS=1); see docs/operations.md.
set -euo pipefail
cd "$(dirname "$0")/.."

bash deploy/install-deps.sh

# Lets the compiler's cache serve another checkout of the same sources.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
# What it does not have yet is not preprocessed a second time.
export CCACHE_DEPEND=1
# And lets it take precompiled headers, which it would pass over for fear of their time stamps.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

step() { printf '\n== %s\n' "$*"; }
configure() { cmake --preset "$@" -DECHELLE_TESTS=ON >/dev/null; }
build() { cmake --build --preset "$@"; }

step "format"
git ls-files '*.hpp' '*.cpp' | xargs clang-format-14 --dry-run -Werror

step "release: build"
# All units run under sanitizers; as they are shipped, those whose speed or memory order counts.
configure release -DECHELLE_UNIT_TESTS="shared;worker"
build release
step "fuzzers: build"
configure fuzz
build fuzz
step "address and undefined-behaviour sanitizers: build"
configure asan
build asan --target unit_client unit_common unit_coordinator unit_data_path unit_fpga_sim \
    unit_shared unit_worker echelle-coordinator echelle-fpga-sim echellectl
step "thread sanitizer: build of the rooms that share memory"
configure tsan
build tsan --target unit_shared unit_data_path

if [ "${ECHELLE_LINT:-}" = 1 ]; then
    step "lint"
    bash deploy/lint.sh
fi

step "unit tests and fault points under sanitizers"
ctest --preset asan -L 'unit|fault' -j2 --output-on-failure
ctest --preset tsan -R '^(shared\.(Ring|Ledger|Wakeup)|data_path\.Ingest)' -j2 --output-on-failure
step "fuzzers"
ctest --preset fuzz -j2
step "all tests of the release build"
ctest --preset release -j2 --output-on-failure
