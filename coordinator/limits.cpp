#include "coordinator/limits.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "common/control_group.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

// Files, sockets, eventfds and sinks of the coordinator itself, generously.
constexpr uint64_t base_descriptors = 128;
// In the coordinator: a pidfd for each worker and, with ZeroMQ, a token and a notice connection.
constexpr uint64_t worker_descriptors_zmq = 3;
constexpr uint64_t worker_descriptors_futex = 1;
// A worker is one thread, or three with libzmq's reaper and IO threads.
constexpr uint64_t worker_threads_zmq = 3;
constexpr uint64_t worker_threads_futex = 1;

uint64_t read_limit(const std::string& path) {
    std::ifstream file(path);
    uint64_t limit = 0;
    return file >> limit ? limit : std::numeric_limits<uint64_t>::max();  // absent, or "max"
}

uint64_t task_limit() {
    uint64_t limit = std::min({read_limit("/proc/sys/kernel/threads-max"),
                               read_limit("/proc/sys/kernel/pid_max"), control_group_task_limit()});
    rlimit processes{};
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &processes) == 0) {
        limit = std::min<uint64_t>(limit, processes.rlim_cur);
    }
    return limit;
}

uint64_t raised_descriptor_limit() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return std::numeric_limits<uint64_t>::max();
    }
    if (files.rlim_cur < files.rlim_max) {
        const rlim_t soft = files.rlim_cur;
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
            return soft;
        }
    }
    return files.rlim_cur;
}

}  // namespace

void check_worker_limits(uint32_t workers, NotifyKind notify) {
    const bool zmq = notify == NotifyKind::zmq;
    const uint64_t descriptors =
        base_descriptors + workers * (zmq ? worker_descriptors_zmq : worker_descriptors_futex);
    const uint64_t descriptor_limit = raised_descriptor_limit();
    if (descriptors > descriptor_limit) {
        throw UsageError("--workers " + std::to_string(workers) + " needs " +
                         std::to_string(descriptors) + " open files, the limit is " +
                         std::to_string(descriptor_limit) +
                         ": raise it (ulimit -n, LimitNOFILE=) or give fewer workers");
    }
    const uint64_t tasks = workers * (zmq ? worker_threads_zmq : worker_threads_futex);
    // Half is left to everything else that runs.
    if (tasks > task_limit() / 2) {
        throw UsageError("--workers " + std::to_string(workers) + " needs " +
                         std::to_string(tasks) + " processes and threads, the machine's limit is " +
                         std::to_string(task_limit()) +
                         ": raise it (ulimit -u, pids.max, kernel.pid_max), give --notify futex, "
                         "or give fewer workers");
    }
}

}  // namespace echelle
