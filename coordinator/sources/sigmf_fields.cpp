#include "coordinator/sources/sigmf_fields.hpp"

#include <chrono>
#include <cmath>
#include <limits>

#include "common/error.hpp"

namespace echelle {
namespace {

using nlohmann::json;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes `digits` decimal digits off the front of `text`; -1 when they are not there.
int take_digits(std::string_view& text, size_t digits) {
    if (text.size() < digits) {
        return -1;
    }
    int value = 0;
    for (const char c : text.substr(0, digits)) {
        if (!is_digit(c)) {
            return -1;
        }
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(digits);
    return value;
}

bool take(std::string_view& text, char c) {
    if (!text.starts_with(c)) {
        return false;
    }
    text.remove_prefix(1);
    return true;
}

// ".163959" in nanoseconds, rounded to nearest; 0 when there is no fraction, -1 for a lone point.
int64_t take_fraction_ns(std::string_view& text) {
    if (!take(text, '.')) {
        return 0;
    }
    int64_t ns = 0;
    size_t digits = 0;
    for (; digits < text.size() && is_digit(text[digits]); ++digits) {
        const int digit = text[digits] - '0';
        if (digits < 9) {
            ns = ns * 10 + digit;
        } else if (digits == 9 && digit >= 5) {
            ++ns;
        }
    }
    text.remove_prefix(digits);
    for (size_t place = digits; place < 9; ++place) {
        ns *= 10;
    }
    return digits == 0 ? -1 : ns;
}

}  // namespace

std::optional<int64_t> parse_utc_datetime(std::string_view text) {
    const int year = take_digits(text, 4);
    const bool dash_1 = take(text, '-');
    const int month = take_digits(text, 2);
    const bool dash_2 = take(text, '-');
    const int day = take_digits(text, 2);
    const bool between = take(text, 'T');
    const int hour = take_digits(text, 2);
    const bool colon_1 = take(text, ':');
    const int minute = take_digits(text, 2);
    const bool colon_2 = take(text, ':');
    const int second = take_digits(text, 2);
    const int64_t fraction_ns = take_fraction_ns(text);
    if (!dash_1 || !dash_2 || !between || !colon_1 || !colon_2 || text != "Z" || year < 0 ||
        month < 0 || day < 0 || hour < 0 || minute < 0 || second < 0 || fraction_ns < 0) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    // Second 60 is a leap second; Unix time counts it as the second after it.
    const bool leap = second == 60 && hour == 23 && minute == 59;
    if (!date.ok() || hour > 23 || minute > 59 || (second > 59 && !leap)) {
        return std::nullopt;
    }
    const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    const int64_t seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    // The fraction may have been rounded up to a whole second: one second less at the end.
    constexpr int64_t most_seconds = std::numeric_limits<int64_t>::max() / 1'000'000'000 - 1;
    if (seconds > most_seconds || seconds < -most_seconds) {
        return std::nullopt;
    }
    return seconds * 1'000'000'000 + fraction_ns;
}

std::string quoted_json(const json& value) {
    if (value.is_object()) {
        return "an object";
    }
    if (value.is_array()) {
        return "an array";
    }
    constexpr size_t longest = 60;
    if (value.is_string() && value.get_ref<const std::string&>().size() > longest) {
        const std::string start = value.get_ref<const std::string&>().substr(0, longest);
        return json(start).dump(-1, ' ', true, json::error_handler_t::replace) + "...";
    }
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

const json* SigmfFields::find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> SigmfFields::count(const std::string& key) const {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->is_number_unsigned()) {
        return value->get<uint64_t>();
    }
    if (value->is_number_float()) {
        // JSON makes no difference between 500 and 500.0 or 5e2, and some writers none either.
        const auto number = value->get<double>();
        constexpr double exact_below = 0x1p53;
        if (number >= 0 && number < exact_below && number == std::floor(number)) {
            return static_cast<uint64_t>(number);
        }
    }
    refuse(key, "a whole number from 0 to 2^64 - 1");
}

std::optional<double> SigmfFields::number(const std::string& key) const {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        refuse(key, "a number");
    }
    return value->get<double>();
}

std::optional<Rational> SigmfFields::rate(const std::string& key) const {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        refuse(key, "a positive number");
    }
    if (value->is_number_unsigned() && value->get<uint64_t>() > 0) {
        return Rational{value->get<uint64_t>(), 1};
    }
    return Rational::from_double(value->get<double>(), "'" + what_ + "': " + where_ + " " + key);
}

std::optional<std::string> SigmfFields::text(const std::string& key) const {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        refuse(key, "a string");
    }
    return value->get<std::string>();
}

std::optional<bool> SigmfFields::flag(const std::string& key) const {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        refuse(key, "true or false");
    }
    return value->get<bool>();
}

std::optional<int64_t> SigmfFields::datetime(const std::string& key) const {
    const std::optional<std::string> written = text(key);
    if (!written) {
        return std::nullopt;
    }
    const std::optional<int64_t> time_ns = parse_utc_datetime(*written);
    if (!time_ns) {
        refuse(key, "a UTC time between 1677 and 2262 such as 2021-06-18T23:17:51.163959Z");
    }
    return time_ns;
}

void SigmfFields::refuse_missing(const std::string& key) const {
    throw UsageError("'" + what_ + "': " + where_ + " lacks " + key +
                     ", which SigMF requires: add it");
}

void SigmfFields::refuse(const std::string& key, const std::string& expected) const {
    const json* value = find(key);
    throw UsageError("'" + what_ + "': " + where_ + " has " + key + " " +
                     (value == nullptr ? "missing" : quoted_json(*value)) + ": expected " +
                     expected);
}

}  // namespace echelle
