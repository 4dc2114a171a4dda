// The JSON that the recorder reads and writes: the feed's hello, and its own report.
#pragma once

#include <cstdint>
#include <string>

#include "clients/record/record_books.hpp"

namespace echelle::record {

// Of docs/feed.md. Throws RunError where the text is no description of a feed of version 1.
uint32_t channels_in_hello(const std::string& hello);

struct RecordReport {
    std::string input;  // "feed", "ring", "recording"; empty when there never was one
    double wall_seconds = 0;
    std::string failure;  // empty: none
    ReceivedBooks received;
    WrittenBooks written;
};

// docs/recording.md defines it. Throws RunError where it cannot be written.
void write_report(const std::string& path, const RecordReport& report);

}  // namespace echelle::record
