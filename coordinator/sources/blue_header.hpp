// The 512-byte header of a BLUE file (Midas, X-Midas, REDHAWK): bytes to a checked struct. Touches
// no file.
//
// Platinum BLUE file format, ICD 3.1: header control block, and the adjunct of type 1000.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/frame.hpp"
#include "common/rational.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {

inline constexpr size_t blue_header_bytes = 512;

struct BlueHeader {
    SampleFormat format = SampleFormat::i16;
    ValueCoding coding = ValueCoding::int16_little;
    Rational rate;                    // 1 / xdelta
    std::optional<int64_t> epoch_ns;  // timecode + xstart as Unix time; absent when timecode is 0
    uint64_t data_start = 0;          // byte of the first sample
    uint64_t data_bytes = 0;
    bool detached = false;  // the samples are in a file of their own
};

// Throws UsageError naming `what`, the field, its value and what was expected.
BlueHeader parse_blue_header(std::string_view bytes, const std::string& what);

bool looks_like_blue(std::string_view bytes);

}  // namespace echelle
