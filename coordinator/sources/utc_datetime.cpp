#include "coordinator/sources/utc_datetime.hpp"

#include <chrono>
#include <cstdio>
#include <limits>

namespace echelle {
namespace {

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

std::string utc_datetime_text(int64_t unix_ns) {
    const std::chrono::sys_time<std::chrono::nanoseconds> moment{std::chrono::nanoseconds(unix_ns)};
    const auto midnight = std::chrono::floor<std::chrono::days>(moment);
    const std::chrono::year_month_day date(midnight);
    const std::chrono::hh_mm_ss time(moment - midnight);
    char text[96];
    std::snprintf(
        text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%09dZ", static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
        static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
        static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return text;
}

}  // namespace echelle
