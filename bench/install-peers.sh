#!/usr/bin/env bash
# Installs what the bench is built with and the programs that Echelle is compared with, from
# Debian 12's own packages. The product and its tests need none of it.
set -euo pipefail

packages=(libbenchmark-dev protobuf-compiler libprotobuf-dev libliquid-dev
          gnuradio python3-scipy python3-numpy)

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-peers: not root and no sudo; as root: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "install-peers: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
