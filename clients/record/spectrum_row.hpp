// One row of a file: the spectra of all its channels over the same samples. Belongs to one thread
// at a time: to the one that reads packets, then to the one that writes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "clients/record/spectrum_shape.hpp"

namespace echelle::record {

// In the file's flags, beside those of docs/packet.md: no packet came for this channel.
inline constexpr uint16_t flag_missing = 0x8000;

struct SpectrumRow {
    uint32_t run = 0;           // see docs/recording.md
    uint64_t first_sample = 0;  // its index in the stream
    int64_t time_ns = 0;        // Unix time of the first sample
    uint32_t segments_expected = 0;
    uint32_t present = 0;       // channels that came
    std::vector<float> values;  // [channel][bin]; NaN where missing
    // One for each channel.
    std::vector<uint64_t> sequence;
    std::vector<uint16_t> flags;
    std::vector<uint32_t> segments_averaged;
    std::vector<uint32_t> over_range_count;
    std::vector<float> mean;
    std::vector<float> rms;

    SpectrumRow() = default;
    SpectrumRow(size_t channels, size_t bins)
        : values(channels * bins, std::numeric_limits<float>::quiet_NaN()),
          sequence(channels),
          flags(channels, flag_missing),
          segments_averaged(channels),
          over_range_count(channels),
          mean(channels, std::numeric_limits<float>::quiet_NaN()),
          rms(channels, std::numeric_limits<float>::quiet_NaN()) {}

    size_t bytes() const { return values.size() * sizeof(float) + flags.size() * 30; }
};

}  // namespace echelle::record
