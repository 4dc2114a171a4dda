#!/usr/bin/env bash
# What a machine can be given for steadier and faster spectra: huge pages for the ring, the CPUs'
# performance governor, interrupts away from the workers' CPUs. Prints what it would do; does it only
# with --apply (as root). Nothing of it outlasts a reboot.
set -euo pipefail

usage() {
    echo "usage: tune.sh [--apply] [--ring-mib MIB] [--irq-cpus LIST]"
    echo "  --ring-mib MIB    huge pages for a ring of that size (130: the default ring)"
    echo "  --irq-cpus LIST   CPUs that interrupts may use, e.g. 0 (left alone when not given)"
}

apply=no ring_mib=130 irq_cpus=
while [ $# -gt 0 ]; do
    case $1 in
        --apply) apply=yes ;;
        --ring-mib) ring_mib=${2:?--ring-mib needs a number of MiB}; shift ;;
        --irq-cpus) irq_cpus=${2:?--irq-cpus needs a list of CPUs}; shift ;;
        -h | --help) usage; exit 0 ;;
        *) echo "tune.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
[[ $ring_mib =~ ^[0-9]+$ ]] || { echo "tune.sh: --ring-mib '$ring_mib' is not a number" >&2; exit 2; }
if [ $apply = yes ] && [ "$(id -u)" -ne 0 ]; then
    echo "tune.sh: --apply needs root" >&2
    exit 2
fi

# set_value FILE VALUE: says what changes, and changes it when told to.
set_value() {
    local file=$1 value=$2 now
    [ -e "$file" ] || { echo "  not here: $file"; return 0; }
    now=$(cat "$file" 2>/dev/null || echo '?')
    if [ "$now" = "$value" ]; then
        echo "  already:  $file = $value"
    elif [ $apply = no ]; then
        echo "  would:    $file: $now -> $value"
    elif echo "$value" >"$file" 2>/dev/null; then
        echo "  done:     $file: $now -> $(cat "$file")"
    else
        echo "  refused:  $file stays $now"
    fi
}

echo "huge pages of 2 MiB for the ring:"
free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
total=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages 2>/dev/null || echo 0)
wanted=$(((ring_mib + 1) / 2 + 1))
if [ "$free" -ge "$wanted" ]; then
    echo "  already:  $free are free, $wanted are needed"
else
    set_value /proc/sys/vm/nr_hugepages $((total + wanted - free))
fi

echo "CPU frequency governors:"
found=no
for governor in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
    [ -e "$governor" ] || continue
    found=yes
    set_value "$governor" performance
done
[ $found = yes ] || echo "  not here: this machine (often a virtual one) has no cpufreq"

if [ -n "$irq_cpus" ]; then
    echo "interrupts on CPUs $irq_cpus:"
    for irq in /proc/irq/[0-9]*/smp_affinity_list; do
        set_value "$irq" "$irq_cpus"
    done
fi
[ $apply = yes ] || echo "nothing was changed; --apply does it"
