// Dates in the metadata of recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace echelle {

// RFC 3339 in UTC, "2021-06-18T23:17:51.163959Z" with any number of fraction digits, as Unix time
// rounded to nearest. Absent when it is not that, no such day, or outside 1677-2262.
std::optional<int64_t> parse_utc_datetime(std::string_view text);
// Unix time in that form, with nine fraction digits.
std::string utc_datetime_text(int64_t unix_ns);

}  // namespace echelle
