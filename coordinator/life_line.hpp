// What tells the nursery and the workers that the coordinator is gone: a descriptor that becomes
// readable, or hangs up, when it ends, however it ends. A pidfd; where the kernel or a seccomp
// filter refuses pidfd_open, the reading end of a pipe whose writing end only the coordinator
// holds.
//
// Made by the coordinator before the nursery is forked, and owned by it until its end.
#pragma once

#include <string>

#include "common/file_descriptor.hpp"

namespace echelle {

class LifeLine {
  public:
    LifeLine() = default;
    // Of this process. Throws RunError when there can be neither.
    static LifeLine of_this_process();

    // To be inherited and polled for POLLIN by whoever is to end with this process.
    int watched() const { return watched_.get(); }
    // Why there is no pidfd; empty when there is one.
    const std::string& why_no_pidfd() const { return why_no_pidfd_; }
    // In a forked child, at once: it must not keep the pipe open when its parent dies.
    void let_go() { held_.close(); }

  private:
    FileDescriptor watched_;
    FileDescriptor held_;  // the pipe's writing end
    std::string why_no_pidfd_;
};

}  // namespace echelle
