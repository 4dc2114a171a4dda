#include "coordinator/log.hpp"

#include <atomic>
#include <mutex>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/repeat_limit.hpp"

namespace echelle {
namespace {

constexpr const char* program = "echelle-coordinator";
constexpr int64_t look_at_repeats_ns = 500'000'000;

// Set before there are threads.
LogFormat format = LogFormat::text;

std::atomic<uint64_t> warnings{0};
std::atomic<uint64_t> held_back{0};
std::atomic<uint64_t> unshown{0};
std::atomic<uint64_t> unshown_told{0};

std::mutex repeats_mutex;  // guards the following
RepeatLimit repeats;
int64_t looked_ns = 0;

spdlog::logger& logger() {
    static const auto made = [] {
        auto fresh = spdlog::stderr_logger_mt(program);
        fresh->set_pattern("%v");
        return fresh;
    }();
    return *made;
}

// The members of a JSON object without its braces: the pattern puts time and level before them.
std::string json_line(const std::string& message, const LogFields& fields) {
    nlohmann::ordered_json line;
    line["what"] = message;
    for (const auto& [name, value] : fields) {
        std::visit([&, &key = name](const auto& known) { line[key] = known; }, value);
    }
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return text.substr(1, text.size() - 2);
}

void write(spdlog::level::level_enum level, const std::string& text_prefix,
           const std::string& message, const LogFields& fields) {
    const bool as_json = format == LogFormat::json;
    logger().log(level, as_json ? json_line(message, fields) : text_prefix + message);
}

void write_warning(const std::string& message, const LogFields& fields) {
    write(spdlog::level::warn, std::string(program) + ": warning: ", message, fields);
}

spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
        case LogLevel::info:
            return spdlog::level::info;
        case LogLevel::warning:
            return spdlog::level::warn;
        case LogLevel::error:
            break;
    }
    return spdlog::level::err;
}

// False: counted as one that nobody took.
bool can_be_written() {
    if (!standard_error_takes_more()) {
        unshown.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    const uint64_t lost = unshown.load(std::memory_order_relaxed);
    const uint64_t missed = lost - unshown_told.exchange(lost, std::memory_order_relaxed);
    if (missed > 0) {
        write_warning(
            std::to_string(missed) + " warnings could not be shown: nobody reads standard error",
            {{"count", missed}});
    }
    return true;
}

}  // namespace

LogFormat parse_log_format(const std::string& text) {
    if (text == "text" || text == "json") {
        return text == "json" ? LogFormat::json : LogFormat::text;
    }
    throw UsageError("--log-format '" + text + "' is not known: give text or json");
}

LogLevel parse_log_level(const std::string& text) {
    if (text == "info") {
        return LogLevel::info;
    }
    if (text == "warning") {
        return LogLevel::warning;
    }
    if (text == "error") {
        return LogLevel::error;
    }
    throw UsageError("--log-level '" + text + "' is not known: give info, warning or error");
}

void set_log(LogFormat wanted, LogLevel level) {
    format = wanted;
    if (format == LogFormat::json) {
        logger().set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})",
                             spdlog::pattern_time_type::utc);
    }
    logger().set_level(level_of(level));
}

LogFormat log_format() {
    return format;
}

bool log_shows(LogLevel level) {
    return logger().should_log(level_of(level));
}

bool standard_error_takes_more() {
    // A pipe is writable when PIPE_BUF bytes (4096) fit: a line always does then.
    pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
    return poll(&descriptor, 1, 0) > 0 && (descriptor.revents & POLLOUT) != 0;
}

void note(const std::string& message, const LogFields& fields) {
    if (log_shows(LogLevel::info) && standard_error_takes_more()) {
        write(spdlog::level::info, "", message, fields);
    }
}

void warn(const std::string& message, const LogFields& fields) {
    warnings.fetch_add(1, std::memory_order_relaxed);
    if (!log_shows(LogLevel::warning)) {
        return;
    }
    {
        const std::lock_guard lock(repeats_mutex);
        if (!repeats.lets_through(message, monotonic_ns())) {
            held_back.fetch_add(1, std::memory_order_relaxed);
            return;
        }
    }
    if (can_be_written()) {
        write_warning(message, fields);
    }
}

void tell_error(const std::string& message) {
    write(spdlog::level::err, std::string(program) + ": ", message, {});
}

void tell_held_back(bool at_the_end) {
    std::vector<RepeatLimit::HeldBack> kinds;
    {
        const int64_t now_ns = monotonic_ns();
        const std::lock_guard lock(repeats_mutex);
        if (!at_the_end && now_ns - looked_ns < look_at_repeats_ns) {
            return;
        }
        looked_ns = now_ns;
        kinds = repeats.take_held_back(now_ns, at_the_end);
    }
    for (const RepeatLimit::HeldBack& kind : kinds) {
        if (can_be_written()) {
            write_warning("and " + std::to_string(kind.count) + " more like: " + kind.example,
                          {{"count", kind.count}});
        }
    }
}

LogBooks log_books() {
    LogBooks books;
    books.warnings = warnings.load(std::memory_order_relaxed);
    books.held_back = held_back.load(std::memory_order_relaxed);
    books.unshown = unshown.load(std::memory_order_relaxed);
    return books;
}

}  // namespace echelle
