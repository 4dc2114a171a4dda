#!/usr/bin/env bash
# Installs what Echelle is built and tested with, from Debian 12's own packages.
# With --build-only: no test tools.
set -euo pipefail

build=(g++ cmake ninja-build pkg-config ccache git ca-certificates
       libzmq3-dev cppzmq-dev libfftw3-dev libhwloc-dev libspdlog-dev libcli11-dev
       nlohmann-json3-dev libdeflate-dev libhwy-dev libsndfile1-dev libhdf5-dev
       libarchive-dev nettle-dev)
test=(libgtest-dev libgmock-dev libeigen3-dev python3 python3-numpy python3-scipy python3-pytest
      python3-h5py clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev procps valgrind)

packages=("${build[@]}")
[ "${1:-}" = --build-only ] || packages+=("${test[@]}")

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-deps: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "install-deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
