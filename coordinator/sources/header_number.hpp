// Numbers and dates in the text headers of recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace echelle {

// "12"; absent when it is anything else, or does not fit.
std::optional<uint64_t> parse_header_count(std::string_view text);
// "0.0625", "1e-6", "+3.", "1.5D-3" (as Fortran writes); absent when it is not a finite number.
std::optional<double> parse_header_number(std::string_view text);
// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

// Seconds to nanoseconds, rounded to nearest; absent beyond the years 1677-2262.
std::optional<int64_t> seconds_to_ns(double seconds);

}  // namespace echelle
