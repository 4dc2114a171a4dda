"""Runs a program with less than a machine usually gives. Standard library alone.

    python3 restrict.py [--refuse CALL[=ERRNO]]... [--cpus LIST] [--no-capability NUMBER]...
                        [--limit NAME=VALUE]... [--group FOLDER] -- PROGRAM ARGUMENT...

CALL is a system call that a seccomp filter answers with ERRNO (EPERM), "memfd_create-huge" one that
asks for huge pages. NAME is a limit's name in the module `resource`, without RLIMIT_. FOLDER is a
control group's, which the program joins.

The filter is classic BPF over struct seccomp_data, as linux/filter.h and linux/seccomp.h have them.
"""

import argparse
import ctypes
import errno
import os
import platform
import resource
import struct
import sys

# asm/unistd_64.h and asm-generic/unistd.h.
CALLS = {
    "x86_64": {
        "pidfd_open": 434, "pidfd_send_signal": 424, "memfd_create": 319,
        "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "migrate_pages": 256,
        "move_pages": 279, "sched_setaffinity": 203, "sched_getaffinity": 204,
        "sched_getparam": 143, "sched_getscheduler": 145,
        "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setattr": 314,
        "mlock": 149, "mlock2": 325, "mlockall": 151,
    },
    "aarch64": {
        "pidfd_open": 434, "pidfd_send_signal": 424, "memfd_create": 279,
        "mbind": 235, "set_mempolicy": 237, "get_mempolicy": 236, "migrate_pages": 238,
        "move_pages": 239, "sched_setaffinity": 122, "sched_getaffinity": 123,
        "sched_getparam": 121, "sched_getscheduler": 120,
        "setpriority": 140, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setattr": 274,
        "mlock": 228, "mlock2": 284, "mlockall": 230,
    },
}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ANSWER_ERRNO = 0x7FFF0000, 0x00050000
AT_NUMBER, AT_ARCH, AT_SECOND_ARGUMENT = 0, 4, 24  # offsets in struct seccomp_data
MFD_HUGETLB = 4
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP, SECCOMP_MODE_FILTER = 38, 22, 24, 2

libc = ctypes.CDLL(None, use_errno=True)


def prctl(*arguments):
    if libc.prctl(*map(ctypes.c_ulong, arguments), *[ctypes.c_ulong(0)] * (5 - len(arguments))):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl{arguments}: {os.strerror(number)}")


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


def seccomp_filter(refused):
    """Bytes of a program that answers each (call, errno) so and allows all others."""
    machine = platform.machine()
    code = instruction(LOAD, AT_ARCH)
    code += instruction(JUMP_IF_EQUAL, AUDIT_ARCH[machine], 1, 0) + instruction(RETURN, ALLOW)
    for call, number in refused:
        name, _, huge = call.partition("-")
        answer = instruction(RETURN, ANSWER_ERRNO | number)
        if huge:
            answer = (instruction(LOAD, AT_SECOND_ARGUMENT)
                      + instruction(JUMP_IF_ANY_BIT, MFD_HUGETLB, 0, 1) + answer)
        code += instruction(LOAD, AT_NUMBER)
        code += instruction(JUMP_IF_EQUAL, CALLS[machine][name], 0, len(answer) // 8) + answer
    return code + instruction(RETURN, ALLOW)


def install_filter(refused):
    code = seccomp_filter(refused)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    kept_program = ctypes.create_string_buffer(program, len(program))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(kept_program))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--refuse", action="append", default=[])
    parser.add_argument("--cpus")
    parser.add_argument("--no-capability", action="append", type=int, default=[])
    parser.add_argument("--limit", action="append", default=[])
    parser.add_argument("--group")
    parser.add_argument("program", nargs="+")
    asked = parser.parse_args()
    if asked.group:
        with open(asked.group + "/cgroup.procs", "w") as processes:
            processes.write(str(os.getpid()))
    if asked.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in asked.cpus.split(",")})
    for capability in asked.no_capability:
        prctl(PR_CAPBSET_DROP, capability)
    for limit in asked.limit:
        name, value = limit.split("=")
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (int(value), int(value)))
    if asked.refuse:
        pairs = [call.partition("=")[::2] for call in asked.refuse]
        install_filter([(call, getattr(errno, name or "EPERM")) for call, name in pairs])
    os.execv(asked.program[0], asked.program)


if __name__ == "__main__":
    sys.exit(main())
