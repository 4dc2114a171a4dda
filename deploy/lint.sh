#!/usr/bin/env bash
# clang-tidy over the product's sources (tests are compiled with the same warnings as errors).
# With --changed: only over files that differ from the main line.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null

sources=('common/*.cpp' 'worker/*.cpp' 'coordinator/*.cpp' 'fpga_sim/*.cpp' 'clients/*.cpp')
if [ "${1:-}" = --changed ]; then
    files=$(git diff --name-only --diff-filter=d main -- "${sources[@]}")
else
    files=$(git ls-files "${sources[@]}")
fi
[ -n "$files" ] || exit 0
echo "$files" | xargs -P 2 -n 4 clang-tidy-14 --quiet -p build/release
