// Source URIs: scheme:path?key=value&key=value. No percent-decoding of the path but for %3F and %23
// ('?' and '#' in file names) and %25.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace echelle {

class SourceUri {
  public:
    // Throws UsageError: no scheme, a key twice, a key without '='.
    static SourceUri parse(std::string_view text);

    const std::string& text() const { return text_; }
    const std::string& scheme() const { return scheme_; }
    const std::string& path() const { return path_; }

    // Takes the value of a key, remembering that somebody asked for it.
    std::optional<std::string> take(const std::string& key);
    std::optional<uint64_t> take_unsigned(const std::string& key);  // throws UsageError
    std::optional<double> take_number(const std::string& key);      // throws UsageError
    // Throws UsageError naming the keys that nobody has taken, and those that were asked for.
    void refuse_unknown_keys() const;

  private:
    std::string text_;
    std::string scheme_;
    std::string path_;
    std::map<std::string, std::string> values_;
    std::map<std::string, bool> asked_;
};

}  // namespace echelle
