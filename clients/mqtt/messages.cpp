#include "clients/mqtt/messages.hpp"

#include <atomic>

#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace echelle::mqtt {
namespace {

std::atomic<uint64_t> unshown{0};

spdlog::logger& logger() {
    static const auto made = [] {
        auto fresh = spdlog::stderr_logger_mt("echelle-mqtt");
        fresh->set_pattern("%n: %l: %v");
        return fresh;
    }();
    return *made;
}

bool standard_error_takes_more() {
    // A pipe is writable when PIPE_BUF bytes (4096) fit: a line always does then.
    pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
    return poll(&descriptor, 1, 0) > 0 && (descriptor.revents & POLLOUT) != 0;
}

void tell(spdlog::level::level_enum level, const std::string& message) {
    if (!logger().should_log(level)) {
        return;
    }
    if (!standard_error_takes_more()) {
        unshown.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    if (const uint64_t missed = unshown.exchange(0, std::memory_order_relaxed); missed > 0) {
        logger().warn("{} messages could not be shown: nobody reads standard error", missed);
    }
    logger().log(level, message);
}

}  // namespace

void warn(const std::string& message) {
    tell(spdlog::level::warn, message);
}

void note(const std::string& message) {
    tell(spdlog::level::info, message);
}

void be_quiet() {
    logger().set_level(spdlog::level::warn);
}

}  // namespace echelle::mqtt
