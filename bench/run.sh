#!/usr/bin/env bash
# Builds and runs the bench, prints its tables, and regenerates those of docs/performance.md.
#
#   bash bench/run.sh            everything, some 20 minutes on a quiet machine
#   bash bench/run.sh --quick    two minutes once it is built; docs/performance.md is left alone
#
# Further options are bench/run.py's: --only SECTION..., --results FILE, --write-docs.
set -euo pipefail
cd "$(dirname "$0")/.."

bash deploy/install-deps.sh
bash bench/install-peers.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
    "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}
echo "building (a few minutes the first time) ..." >&2
quietly cmake --preset bench
quietly cmake --build --preset bench

docs=(--write-docs)
for option in "$@"; do
    [[ $option != --quick && $option != --only ]] || docs=()
done
export PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 bench/run.py "$@" "${docs[@]}"
