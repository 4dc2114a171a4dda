#include "coordinator/sources/digital_rf_index.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "coordinator/sources/header_number.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse(const std::string& path, size_t at, const DigitalRfIndexRow& entry,
                         const std::string& why) {
    throw UsageError("'" + path + "': rf_data_index[" + std::to_string(at) + "] says sample " +
                     std::to_string(entry.sample) + " in row " + std::to_string(entry.row) + ", " +
                     why + ": the file is damaged; move it out of the recording");
}

}  // namespace

void append_digital_rf_file(std::span<const DigitalRfIndexRow> index, uint64_t rows, uint32_t file,
                            const std::string& path, PieceList& pieces) {
    for (size_t i = 0; i < index.size(); ++i) {
        const DigitalRfIndexRow& entry = index[i];
        const uint64_t end = i + 1 < index.size() ? index[i + 1].row : rows;
        if (i == 0 && entry.row != 0) {
            refuse(path, i, entry, "but the first entry must be of row 0");
        }
        if (end <= entry.row || end > rows) {
            refuse(path, i, entry,
                   "but rows must rise and stay below the " + std::to_string(rows) + " of rf_data");
        }
        if (!pieces.empty() && entry.sample < pieces.expected_index()) {
            refuse(
                path, i, entry,
                "but the one before it ends at sample " + std::to_string(pieces.expected_index()));
        }
        SamplePiece piece;
        piece.offset = entry.row;
        piece.samples = end - entry.row;
        piece.file = file;
        pieces.append(piece, entry.sample);
    }
}

std::optional<uint64_t> digital_rf_file_time_ms(std::string_view name) {
    constexpr std::string_view start = "rf@";
    constexpr std::string_view ending = ".h5";
    constexpr uint64_t most_seconds = uint64_t{1} << 40;
    if (!name.starts_with(start) || !name.ends_with(ending) ||
        name.size() < start.size() + ending.size()) {
        return std::nullopt;
    }
    name = name.substr(start.size(), name.size() - start.size() - ending.size());
    const size_t point = name.find('.');
    if (point == std::string_view::npos || name.size() - point != 4) {
        return std::nullopt;
    }
    const auto seconds = parse_header_count(name.substr(0, point));
    const auto milliseconds = parse_header_count(name.substr(point + 1));
    if (!seconds || !milliseconds || *seconds > most_seconds) {
        return std::nullopt;
    }
    return *seconds * 1000 + *milliseconds;
}

bool is_digital_rf_folder(std::string_view name) {
    constexpr std::string_view pattern = "0000-00-00T00-00-00";
    return name.size() == pattern.size() &&
           std::equal(name.begin(), name.end(), pattern.begin(),
                      [](char c, char p) { return p == '0' ? c >= '0' && c <= '9' : c == p; });
}

}  // namespace echelle
