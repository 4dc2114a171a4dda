// Single fields of SigMF metadata: their names, types and ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/rational.hpp"
#include "coordinator/sources/sigmf_metadata.hpp"
#include "coordinator/sources/utc_datetime.hpp"

namespace echelle {

// The fields of one JSON object: scalars, and an empty object or array in place of a full one.
class SigmfFields {
  public:
    // `what` and `where` begin every message: the file, and "global" or "captures[3]".
    SigmfFields(std::string what, std::string where)
        : what_(std::move(what)), where_(std::move(where)) {}

    // The last value of a repeated key counts.
    void set(const std::string& key, nlohmann::json value) {
        values_.insert_or_assign(key, std::move(value));
    }

    bool has(const std::string& key) const { return values_.contains(key); }

    // The field as that type; absent when there is none. Throws UsageError on another type, and
    // on a value out of range.
    std::optional<uint64_t> count(const std::string& key) const;
    std::optional<double> number(const std::string& key) const;
    std::optional<Rational> rate(const std::string& key) const;
    std::optional<std::string> text(const std::string& key) const;
    std::optional<bool> flag(const std::string& key) const;
    std::optional<int64_t> datetime(const std::string& key) const;

    // Throws UsageError: the field is missing, or is not as `expected` says.
    [[noreturn]] void refuse_missing(const std::string& key) const;
    [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

  private:
    const nlohmann::json* find(const std::string& key) const;

    std::string what_;
    std::string where_;
    std::map<std::string, nlohmann::json> values_;
};

// How a message shows a value: cut short, on one line; an object or array by its type.
std::string quoted_json(const nlohmann::json& value);

}  // namespace echelle
