// The metadata of a capture: SigMF 1.2 JSON text, with fields of our own (namespace "echelle",
// docs/capture.md) that let a replay give the same spectra. Touches no file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/stream.hpp"

namespace echelle {

struct CaptureSegment {
    uint64_t sample_start = 0;  // in the data file
    uint64_t global_index = 0;  // in the stream
    bool gap_before = false;    // it does not continue the segment before
};

struct CaptureMetadata {
    Stream stream;
    std::string description;  // of the source
    std::vector<CaptureSegment> segments;
    std::optional<std::string> sha512;  // absent: not wanted, or not known yet
    bool unfinished = false;            // the data file may end anywhere
};

std::string text_of(const CaptureMetadata& metadata);

}  // namespace echelle
