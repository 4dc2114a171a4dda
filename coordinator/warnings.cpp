#include "coordinator/warnings.hpp"

#include <atomic>

#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace echelle {
namespace {

// Warnings that a full pipe did not take; told with the next one that it does.
std::atomic<uint64_t> unshown{0};

spdlog::logger& logger() {
    static const auto made = [] {
        auto fresh = spdlog::stderr_logger_mt("echelle-coordinator");
        fresh->set_pattern("%n: %l: %v");
        return fresh;
    }();
    return *made;
}

}  // namespace

bool standard_error_takes_more() {
    // A pipe is writable when PIPE_BUF bytes (4096) fit: a line always does then.
    pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
    return poll(&descriptor, 1, 0) > 0 && (descriptor.revents & POLLOUT) != 0;
}

void warn(const std::string& message) {
    if (!standard_error_takes_more()) {
        unshown.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const uint64_t missed = unshown.exchange(0, std::memory_order_relaxed);
    if (missed > 0) {
        logger().warn("{} warnings could not be shown: nobody reads standard error", missed);
    }
    logger().warn(message);
}

}  // namespace echelle
