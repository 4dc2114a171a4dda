// Forked helpers of a measurement and the folder for their sockets. The parent must have neither
// threads nor a ZeroMQ context when it forks.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/topology.hpp"

namespace echelle::bench {

// A process that runs body() on `cpu` and ends. It dies with its parent; the destructor kills it
// when it has not been waited for.
class Child {
  public:
    template <typename Body>
    Child(unsigned int cpu, Body body) : pid_(fork()) {
        if (pid_ < 0) {
            throw RunError("cannot fork: " + errno_text());
        }
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            bind_this_thread(cpu);
            try {
                body();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "bench: child: %s\n", error.what());
                _exit(1);
            }
            _exit(0);
        }
    }
    Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
    Child& operator=(Child&&) = delete;
    ~Child() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }
    // Throws RunError when it failed.
    void wait() {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        if (status != 0) {
            throw RunError("a measuring process failed");
        }
    }

  private:
    pid_t pid_;
};

// A folder for ipc endpoints that goes with the object.
class SocketFolder {
  public:
    SocketFolder() {
        if (mkdtemp(path_) == nullptr) {
            throw RunError("cannot make a folder in /tmp: " + errno_text());
        }
    }
    SocketFolder(const SocketFolder&) = delete;
    SocketFolder& operator=(const SocketFolder&) = delete;
    ~SocketFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string endpoint(const std::string& name) const {
        return "ipc://" + std::string(path_) + "/" + name;
    }

  private:
    char path_[32] = "/tmp/echelle-bench-XXXXXX";
};

// The CPU for process `index` of a measurement.
inline unsigned int cpu_for(size_t index) {
    const auto cpus = usable_cpus();
    return cpus[index % cpus.size()].number;
}

}  // namespace echelle::bench
