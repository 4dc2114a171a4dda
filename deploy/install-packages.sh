#!/usr/bin/env bash
# Installs those of the named Debian packages that are not there; as root, or with sudo. Services among
# them (a broker, iiod) are for tests that start their own: none is started, now or at the next boot.
#   deploy/install-packages.sh PACKAGE...
set -euo pipefail

packages=("$@")

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-packages: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "install-packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq

# Debian asks this program whether a service may be started (containers often have one already).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
for service in iiod mosquitto prometheus; do
    if [[ " ${missing[*]} " == *" $service "* ]]; then
        "${as_root[@]}" systemctl disable "$service" >/dev/null 2>&1 || true  # no systemd, no service
    fi
done
