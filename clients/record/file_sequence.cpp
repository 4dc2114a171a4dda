#include "clients/record/file_sequence.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace echelle::record {
namespace {

namespace fs = std::filesystem;

constexpr size_t digits_least = 5;

}  // namespace

std::string rolling_path(const std::string& path, uint64_t number) {
    const fs::path whole(path);
    std::array<char, 24> digits{};
    std::snprintf(digits.data(), digits.size(), "-%05" PRIu64, number);
    const std::string name = whole.stem().string() + digits.data() + whole.extension().string();
    return whole.has_parent_path() ? (whole.parent_path() / name).string() : name;
}

uint64_t last_rolling_number(const std::string& path) {
    const fs::path whole(path);
    const std::string before = whole.stem().string() + "-";
    const std::string after = whole.extension().string();
    uint64_t last = 0;
    std::error_code error;
    const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.size() < before.size() + after.size() + digits_least ||
            !name.starts_with(before) || !name.ends_with(after)) {
            continue;
        }
        uint64_t number = 0;
        const char* first = name.data() + before.size();
        const char* beyond = name.data() + name.size() - after.size();
        const auto [stopped, failure] = std::from_chars(first, beyond, number);
        if (failure == std::errc() && stopped == beyond) {
            last = std::max(last, number);
        }
    }
    return last;
}

}  // namespace echelle::record
