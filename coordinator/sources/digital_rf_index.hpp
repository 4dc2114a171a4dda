// The index of a Digital RF file: which rows of /rf_data were recorded when. Touches no file.
//
// Digital RF 2.x (MIT Haystack, digital_rf): a row of /rf_data_index says that the sample in that
// row of /rf_data, and those that follow up to the next index row, stand at this global sample: the
// number of sample periods since 1970, leap seconds left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "coordinator/sources/sample_pieces.hpp"

namespace echelle {

struct DigitalRfIndexRow {
    uint64_t sample = 0;
    uint64_t row = 0;
};

// Appends the pieces of one file, whose /rf_data has `rows`; a piece's offset is its first row.
// Throws UsageError naming `path`, the row of the index and what is wrong with it.
void append_digital_rf_file(std::span<const DigitalRfIndexRow> index, uint64_t rows, uint32_t file,
                            const std::string& path, PieceList& pieces);

// "rf@1394368230.000.h5" in milliseconds; absent for other names.
std::optional<uint64_t> digital_rf_file_time_ms(std::string_view name);
// Whether it is a folder's name like 2014-03-09T12-30-30.
bool is_digital_rf_folder(std::string_view name);

}  // namespace echelle
