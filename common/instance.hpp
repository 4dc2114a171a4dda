// A running coordinator's own directory: its sockets and its lock. `echellectl` finds a coordinator
// by it. $XDG_RUNTIME_DIR/echelle/NAME, or /tmp/echelle-UID/NAME where that is not set; mode 0700.
#pragma once

#include <string>

#include "common/file_descriptor.hpp"
#include "common/wakeup.hpp"

namespace echelle {

inline constexpr const char* default_instance_name = "echelle";

// Throws UsageError on names that are not 1 to 64 letters, digits, '-', '_', '.'.
std::string instance_directory(const std::string& name);
std::string control_endpoint(const std::string& name);
std::string feed_endpoint(const std::string& name);
std::string spectrum_ring_socket(const std::string& name);  // a path: common/spectrum_ring_door.hpp

// The lock on an instance's directory. The kernel gives it up when its last holder ends, so a
// killed coordinator never blocks the next; leftovers of one are removed by whoever locks next.
class Instance {
  public:
    // Takes the name for this process. With an empty name: the default one or, when that is taken,
    // "echelle-PID". A taken name is waited for a moment (its nursery may be clearing up) and then
    // refused with a UsageError.
    static Instance lock(const std::string& wanted_name);

    // An instance that this run's coordinator has locked, in a process that was given the lock.
    static Instance adopt(const std::string& name, FileDescriptor lock);
    int lock_descriptor() const { return lock_.get(); }

    Instance(Instance&&) noexcept = default;
    Instance& operator=(Instance&&) noexcept = default;
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    const std::string& name() const { return name_; }
    const std::string& directory() const { return directory_; }
    WakeupEndpoints wakeup_endpoints() const;
    std::string control_endpoint() const;
    std::string feed_endpoint() const;
    std::string spectrum_ring_socket() const;

    // Removes directory and sockets. The coordinator calls it at its end, the nursery when the
    // coordinator was killed.
    void remove_files() const;
    // For forked workers: lets go of the lock, which a fork otherwise keeps.
    void forget_lock() { lock_.close(); }

  private:
    Instance() = default;
    std::string name_;
    std::string directory_;
    FileDescriptor lock_;
};

}  // namespace echelle
