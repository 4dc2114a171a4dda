// What the coordinator says on standard error: notes, warnings and errors, one line each, through
// spdlog; as text for people or, with --log-format json, as one JSON object a line. Any thread.
//
// Notes and warnings never block: where standard error is a pipe that nobody reads, they are
// counted instead of written. A coordinator that waits for its log's reader would supervise nobody
// meanwhile. Nor do they flood: of many that are alike the first few are shown, and the others
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace echelle {

enum class LogFormat { text, json };
enum class LogLevel { info, warning, error };  // what is shown: this and what is graver

LogFormat parse_log_format(const std::string& text);  // both throw UsageError
LogLevel parse_log_level(const std::string& text);

// For programs that read: shown with --log-format json, beside the line that says it all.
using LogValue = std::variant<uint64_t, double, std::string>;
using LogFields = std::vector<std::pair<std::string, LogValue>>;

// Before there are threads, once. Until then, and without it: text, everything.
void set_log(LogFormat format, LogLevel level);
LogFormat log_format();
bool log_shows(LogLevel level);

// For information; as text it stands there without a prefix.
void note(const std::string& message, const LogFields& fields = {});
void warn(const std::string& message, const LogFields& fields = {});
// Why this program ends. Always shown, whoever reads or doesn't.
void tell_error(const std::string& message);

// Tells how many warnings were held back, of each kind whose time is over; at the end, of all.
void tell_held_back(bool at_the_end = false);

struct LogBooks {
    uint64_t warnings = 0;   // shown or not
    uint64_t held_back = 0;  // of those: there were many like them
    uint64_t unshown = 0;    // of those: nobody read standard error
};
LogBooks log_books();

// Whether a line of up to 4096 bytes can be written to standard error without waiting.
bool standard_error_takes_more();

}  // namespace echelle
