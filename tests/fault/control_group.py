"""A control group of the test's own, below the one that it runs in."""

import contextlib
import os
from pathlib import Path

import pytest

from cluster import wait_until

FILES = {  # by controller: the file of its limit in version 1 and in version 2
    "memory": ("memory.limit_in_bytes", "memory.max"),
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
}


def own_group(controller):
    """The folder of this process's group, and whether it is one of version 2."""
    paths = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if controller in paths:
        return Path("/sys/fs/cgroup") / controller / paths[controller], False
    return Path("/sys/fs/cgroup") / paths.get("", ""), True


@contextlib.contextmanager
def control_group(controller, first, second, **others):
    """Gives the folder of a group with that limit, `first` written in version 1, `second` in
    version 2, after `others` (files of version 1, with _ for .). Skips the test where none can be
    made; removes it at the end."""
    parent, is_version_2 = own_group(controller)
    group = parent / f"echelle-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not is_version_2:
            for name, value in others.items():
                (group / name.replace("_", ".", 1)).write_text(value)
        (group / FILES[controller][is_version_2]).write_text(second if is_version_2 else first)
    except OSError as error:
        group.rmdir()
        pytest.skip(f"no {controller} limit can be set in a control group here: {error}")
    try:
        yield group
    finally:
        assert wait_until(lambda: is_removed(group), 10)


def is_removed(group):
    """Busy as long as the last process is on its way out."""
    try:
        group.rmdir()
        return True
    except OSError:
        return False
