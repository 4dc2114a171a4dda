"""CPU time and memory of a running cluster, read from /proc, by process role and thread name."""

from pathlib import Path


def _processes_of(session):
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # Field 6, counted after the name, which may hold spaces.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield folder
        except OSError:
            pass  # it has ended meanwhile


def _role(pid, session, workers):
    if pid == session:
        return "coordinator"
    return "worker" if pid in workers else "nursery"


def cpu_times_ns(session, workers):
    """(role, thread name) -> CPU time since its start, summed over threads of that name."""
    times = {}
    for folder in _processes_of(session):
        role = _role(int(folder.name), session, workers)
        for task in (folder / "task").iterdir():
            try:
                key = role, (task / "comm").read_text().strip()
                used_ns = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
            times[key] = times.get(key, 0) + used_ns
    return times


def memory_bytes(session, workers):
    """role -> {"unshared", "private"}: without shared memory; the largest process of each role."""
    found = {}
    for folder in _processes_of(session):
        try:
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            continue
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith("kB")}
        memory = {
            "unshared": 1024 * (kib["RssAnon"] + kib["RssFile"]), "private": 1024 * kib["RssAnon"],
        }
        role = _role(int(folder.name), session, workers)
        found[role] = max(found.get(role, memory), memory, key=lambda each: each["unshared"])
    return found
