// The two recoverable failures that reach a user, each with its exit code.
//
// A message is one line: it names the thing, the value that was seen and the remedy. A broken
// invariant is neither of these: it stops the process (see common/invariant.hpp).
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace echelle {

enum class ExitCode : int { done = 0, failed_while_running = 1, wrong_usage = 2 };

// Wrong usage or unreadable input, found before the run began: exit code 2.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A failure while running: exit code 1.
class RunError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// "No such file or directory" for the present errno, safe to call from any thread.
inline std::string errno_text(int error = errno) {
    return std::generic_category().message(error);
}

}  // namespace echelle
