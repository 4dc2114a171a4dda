#include "coordinator/sources/replay_keys.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/error.hpp"

namespace echelle {
namespace {

// Not pedantic ISO C++, but exact: a decimal number of seconds times a ratio must not be rounded.
__extension__ using uint128 = unsigned __int128;

[[noreturn]] void refuse(const SourceUri& uri, const std::string& key, const std::string& value,
                         const std::string& expected) {
    throw UsageError("source '" + uri.text() + "' has " + key + "=" + value + ": give " + expected);
}

std::optional<uint64_t> whole_number(const std::string& text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// A decimal number with this suffix. Throws UsageError, by Rational::parse, unless it is positive.
Rational number_before(char suffix, const std::string& text, const std::string& what) {
    return Rational::parse(text.substr(0, text.find(suffix)), what);
}

bool is_zero_seconds(const std::string& text) {
    return text.find_first_not_of("0.s") == std::string::npos && text.find('0') == 0;
}

std::optional<ReplayLength> take_length(SourceUri& uri, const std::string& key) {
    const std::optional<std::string> value = uri.take(key);
    if (!value) {
        return std::nullopt;
    }
    ReplayLength length;
    length.text = *value;
    if (const auto samples = whole_number(*value)) {
        length.samples = *samples;
        return length;
    }
    if (!value->ends_with('s') || value->find('/') != std::string::npos) {
        refuse(uri, key, *value, "a whole number of samples, or seconds like 1.5s");
    }
    if (!is_zero_seconds(*value)) {
        length.seconds = number_before('s', *value, key + "=" + *value + " of the source: seconds");
    }
    return length;
}

std::optional<Rational> take_speed(SourceUri& uri) {
    const std::string value = uri.take("pace").value_or("asap");
    if (value == "asap") {
        return std::nullopt;
    }
    if (value == "realtime") {
        return Rational{1, 1};
    }
    if (!value.ends_with('x')) {
        refuse(uri, "pace", value, "realtime, asap, or a multiple of real time like 2x or 0.5x");
    }
    return number_before('x', value, "pace=" + value + " of the source: the multiple");
}

std::optional<uint64_t> take_passes(SourceUri& uri) {
    const std::optional<std::string> value = uri.take("loop");
    if (!value) {
        return 1;
    }
    if (*value == "yes") {
        return std::nullopt;
    }
    const auto passes = whole_number(*value);
    if (!passes || *passes == 0) {
        refuse(uri, "loop", *value, "yes, or how often to play it: 1 or more");
    }
    return passes;
}

}  // namespace

uint64_t ReplayLength::samples_at(Rational rate) const {
    if (!seconds) {
        return samples;
    }
    const uint128 above = uint128{seconds->numerator} * rate.numerator;
    const uint128 below = uint128{seconds->denominator} * rate.denominator;
    const uint128 whole = above / below + (above % below != 0 ? 1 : 0);
    return static_cast<uint64_t>(std::min<uint128>(whole, std::numeric_limits<uint64_t>::max()));
}

std::string ReplayKeys::text() const {
    std::string text;
    const auto add = [&text](const std::string& part) {
        text += (text.empty() ? "" : ", ") + part;
    };
    if (speed) {
        add(speed == Rational{1, 1} ? "in real time" : "at " + speed->text() + " x real time");
    }
    if (start) {
        add("start " + start->text);
    }
    if (count) {
        add("count " + count->text);
    }
    if (passes != 1U) {
        add(passes ? std::to_string(*passes) + " times" : "again and again");
    }
    return text;
}

ReplayKeys take_replay_keys(SourceUri& uri) {
    ReplayKeys keys;
    keys.speed = take_speed(uri);
    keys.passes = take_passes(uri);
    keys.start = take_length(uri, "start");
    keys.count = take_length(uri, "count");
    return keys;
}

}  // namespace echelle
