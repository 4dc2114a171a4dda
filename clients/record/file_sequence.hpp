// The names of rolling files: of NAME.h5, NAME-00000.h5, NAME-00001.h5 … Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace echelle::record {

// When a file is full; 0: never.
struct RollTerms {
    double seconds = 0;  // of the stream, from the file's first row on
    uint64_t bytes = 0;
    bool is_rolling() const { return seconds > 0 || bytes > 0; }
};

std::string rolling_path(const std::string& path, uint64_t number);

// The largest number that has a file, or 0.
uint64_t last_rolling_number(const std::string& path);

}  // namespace echelle::record
