#!/usr/bin/env bash
# Installs what Echelle is built and tested with, from Debian 12's own packages.
# With --build-only: no test tools.
set -euo pipefail

build=(g++ cmake ninja-build pkg-config ccache git ca-certificates libzmq3-dev cppzmq-dev
       libfftw3-dev libhwloc-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libdeflate-dev
       libisal-dev
       libhwy-dev libsndfile1-dev libhdf5-dev libarchive-dev nettle-dev libpcap-dev libiio-dev
       prometheus-cpp-dev libmosquitto-dev)
test=(libgtest-dev libgmock-dev libeigen3-dev libfuse3-dev python3 python3-numpy python3-scipy
      python3-pytest python3-h5py python3-zmq clang-14 clang-tidy-14 clang-format-14
      libclang-rt-14-dev procps valgrind verilator iiod iproute2 nftables prometheus cargo rustfmt
      librust-libc-dev mosquitto mosquitto-clients openssl)

packages=("${build[@]}")
[ "${1:-}" = --build-only ] || packages+=("${test[@]}")

bash "$(dirname "$0")/install-packages.sh" "${packages[@]}"
