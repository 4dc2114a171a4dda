#!/usr/bin/env bash
# From nothing to spectra: installs the packages, builds, and runs the main job on the built-in
# simulator: 128 channels x 2048 samples, 2 workers, 10 seconds. Options are passed on and win.
set -euo pipefail
cd "$(dirname "$0")/.."

bash deploy/install-deps.sh --build-only
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
    "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}
echo "building (a few minutes the first time) ..." >&2
quietly cmake --preset release -DECHELLE_TESTS=OFF
quietly cmake --build --preset release --target echelle-coordinator echelle-fpga-sim echelle-info echellectl

build/release/bin/echelle-coordinator \
    --source 'sim:?channels=128&samples=2048' --workers 2 --duration 10 "$@"
