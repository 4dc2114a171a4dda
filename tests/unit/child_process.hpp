// A forked child for tests: it runs one function and can be killed at any point of it.
#pragma once

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace echelle {

class ChildProcess {
  public:
    // The child ends with body()'s answer as its exit code, 99 when it throws. It dies with us.
    template <typename Body>
    explicit ChildProcess(Body body) : pid_(fork()) {
        if (pid_ < 0) {
            throw std::runtime_error("cannot fork");
        }
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int code = 99;
            try {
                code = body();
            } catch (...) {
                code = 99;
            }
            _exit(code);
        }
    }
    ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    ChildProcess& operator=(ChildProcess&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~ChildProcess() {
        if (pid_ > 0) {
            send(SIGKILL);
            wait();
        }
    }

    pid_t pid() const { return pid_; }
    void send(int signal) const { ::kill(pid_, signal); }
    // Waits until it is dead and leaves it unreaped.
    void wait_until_zombie() const {
        siginfo_t info{};
        while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
               errno == EINTR) {
        }
    }
    // Reaps it: its exit code, or minus the signal that killed it.
    int wait() {
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }

  private:
    pid_t pid_;
};

}  // namespace echelle
