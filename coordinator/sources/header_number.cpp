#include "coordinator/sources/header_number.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace echelle {

std::optional<uint64_t> parse_header_count(std::string_view text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

std::optional<double> parse_header_number(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
    }
    std::string written(text);
    for (char& letter : written) {
        letter = letter == 'D' || letter == 'd' ? 'e' : letter;
    }
    double value = 0;
    const char* const end = written.data() + written.size();
    const auto [stop, error] = std::from_chars(written.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks(" \t\r\0", 4);
    const size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<int64_t> seconds_to_ns(double seconds) {
    constexpr double most_seconds = 9'223'372'035.0;
    if (!(std::abs(seconds) < most_seconds)) {
        return std::nullopt;
    }
    // Whole seconds apart, so that the fraction keeps its digits.
    const double whole = std::floor(seconds);
    return static_cast<int64_t>(whole) * 1'000'000'000 + std::llround((seconds - whole) * 1e9);
}

}  // namespace echelle
