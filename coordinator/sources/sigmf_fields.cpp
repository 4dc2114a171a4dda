#include "coordinator/sources/sigmf_fields.hpp"

#include <cmath>

#include "common/error.hpp"

namespace echelle {

using nlohmann::json;

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
