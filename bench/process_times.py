"""CPU time and memory of a running cluster, read from /proc, by process role and thread name."""

from pathlib import Path


def _processes_of(session):
    """(folder in /proc, role). The coordinator leads the session; workers are the nursery's."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Counted after the name, which may hold spaces: state, parent, group, session.
            _, parent, _, its_session = (
                (folder / "stat").read_text().rpartition(")")[2].split()[:4])
        except OSError:
            continue  # it has ended meanwhile
        if int(its_session) == session:
            is_coordinator = int(folder.name) == session
            yield folder, (
                "coordinator" if is_coordinator
                else "nursery" if int(parent) == session
                else "worker")


def cpu_times_ns(session):
    """(role, thread name) -> CPU time since its start, summed over threads of that name."""
    times = {}
    for folder, role in _processes_of(session):
        for task in Path("/proc", folder.name, "task").glob("*"):
            try:
                key = role, (task / "comm").read_text().strip()
                used_ns = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
            times[key] = times.get(key, 0) + used_ns
    return times


def memory_bytes(session):
    """role -> {"unshared", "private"}: without shared memory; the largest process of each role."""
    found = {}
    for folder, role in _processes_of(session):
        try:
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            continue
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith("kB")}
        if "RssAnon" not in kib:
            continue  # it is ending
        memory = {
            "unshared": 1024 * (kib["RssAnon"] + kib["RssFile"]), "private": 1024 * kib["RssAnon"],
        }
        found[role] = max(found.get(role, memory), memory, key=lambda each: each["unshared"])
    return found
