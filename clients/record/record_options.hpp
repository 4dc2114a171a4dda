// The command line of echelle-record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clients/record/packet_input.hpp"
#include "clients/record/row_writer.hpp"

namespace echelle::record {

struct RecordOptions {
    FeedTerms feed;
    std::string recording;  // --from; empty: the feed
    WriterTerms writer;
    double duration_seconds = 0;  // 0: until the run ends
    uint64_t rows = 0;            // 0: all
    std::string report;
};

// Nothing when help or the version was printed. Throws UsageError.
std::optional<RecordOptions> parse_record_options(int argc, char** argv);

}  // namespace echelle::record
