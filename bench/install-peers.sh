#!/usr/bin/env bash
# Installs what the bench is built with and the programs that Echelle is compared with, from
# Debian 12's own packages. The product and its tests need none of it.
set -euo pipefail

packages=(libbenchmark-dev protobuf-compiler libprotobuf-dev libliquid-dev
          gnuradio python3-scipy python3-numpy mosquitto python3-paho-mqtt)

bash "$(dirname "$0")/../deploy/install-packages.sh" "${packages[@]}"
