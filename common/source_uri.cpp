#include "common/source_uri.hpp"

#include <charconv>
#include <cmath>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr std::string_view example = "raw:capture.bin?channels=2&rate=48000";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    throw UsageError("source '" + std::string(text) + "' " + why);
}

bool is_scheme(std::string_view text) {
    for (const char c : text) {
        const bool known = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!known) {
            return false;
        }
    }
    return !text.empty();
}

// Only what a path could not say otherwise; every other '%' stands for itself.
std::string decode_path(std::string_view path) {
    std::string decoded;
    for (size_t at = 0; at < path.size(); ++at) {
        const std::string_view code = path.substr(at, 3);
        if (code == "%3F" || code == "%3f") {
            decoded += '?';
        } else if (code == "%23") {
            decoded += '#';
        } else if (code == "%25") {
            decoded += '%';
        } else {
            decoded += path[at];
            continue;
        }
        at += 2;
    }
    return decoded;
}

template <typename Number>
Number parse_value(const std::string& uri, const std::string& key, const std::string& value,
                   const char* expected) {
    Number number{};
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc::result_out_of_range) {
        refuse(uri, "has " + key + "=" + value + ", which is out of range: give " + expected);
    }
    if (error != std::errc() || stop != end) {
        refuse(uri, "has " + key + "=" + value + ": give " + expected);
    }
    return number;
}

}  // namespace

SourceUri SourceUri::parse(std::string_view text) {
    SourceUri uri;
    uri.text_ = text;
    if (text.find('\0') != std::string_view::npos) {
        throw UsageError("a source must not hold a NUL character: write it like " +
                         std::string(example));
    }
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos || !is_scheme(text.substr(0, colon))) {
        refuse(text, "does not begin with a scheme: write it like " + std::string(example));
    }
    uri.scheme_ = text.substr(0, colon);
    const std::string_view rest = text.substr(colon + 1);
    const size_t question = rest.find('?');
    uri.path_ = decode_path(rest.substr(0, question));
    if (question == std::string_view::npos) {
        return uri;
    }
    std::string_view query = rest.substr(question + 1);
    while (!query.empty()) {
        const size_t end = query.find('&');
        const std::string_view item = query.substr(0, end);
        const size_t equals = item.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            refuse(text, "has '" + std::string(item) + "' after the '?': write key=value");
        }
        const std::string key(item.substr(0, equals));
        if (!uri.values_.emplace(key, item.substr(equals + 1)).second) {
            refuse(text, "has the key '" + key + "' twice: give it once");
        }
        query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    }
    return uri;
}

std::optional<std::string> SourceUri::take(const std::string& key) {
    asked_[key] = true;
    const auto found = values_.find(key);
    if (found == values_.end()) {
        return std::nullopt;
    }
    return found->second;
}

std::optional<uint64_t> SourceUri::take_unsigned(const std::string& key) {
    const std::optional<std::string> value = take(key);
    if (!value) {
        return std::nullopt;
    }
    return parse_value<uint64_t>(text_, key, *value, "a whole number, 0 or more");
}

std::optional<double> SourceUri::take_number(const std::string& key) {
    const std::optional<std::string> value = take(key);
    if (!value) {
        return std::nullopt;
    }
    const auto number = parse_value<double>(text_, key, *value, "a finite number");
    if (!std::isfinite(number)) {
        refuse(text_, "has " + key + "=" + *value + ": give a finite number");
    }
    return number;
}

void SourceUri::refuse_unknown_keys() const {
    std::string unknown;
    for (const auto& [key, value] : values_) {
        if (!asked_.contains(key)) {
            unknown += (unknown.empty() ? "'" : ", '") + key + "'";
        }
    }
    if (unknown.empty()) {
        return;
    }
    std::string known;
    for (const auto& [key, asked] : asked_) {
        known += (known.empty() ? "" : ", ") + key;
    }
    refuse(text_, "has the unknown key " + unknown +
                      (known.empty() ? "; this source takes none" : "; it takes " + known));
}

}  // namespace echelle
