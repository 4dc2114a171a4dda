#include "coordinator/life_line.hpp"

#include <array>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {

LifeLine LifeLine::of_this_process() {
    LifeLine line;
    line.watched_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    if (line.watched_) {
        return line;
    }
    line.why_no_pidfd_ = errno_text();
    std::array<int, 2> ends{-1, -1};
    // Closed on exec: a nursery that is executed anew gets the reading end only.
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw RunError("cannot make a pipe that tells workers of the coordinator's end: " +
                       errno_text() + "; raise the limit on open files (ulimit -n)");
    }
    line.watched_ = FileDescriptor(ends[0]);
    line.held_ = FileDescriptor(ends[1]);
    return line;
}

}  // namespace echelle
