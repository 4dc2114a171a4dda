// The metadata of a SigMF recording: JSON text to a checked struct. Touches no file.
//
// SigMF 1.2 (sigmf-spec.md and sigmf-schema.json of the SigMF project). Read are the fields that
// say where samples lie and what they are; all others are ignored, as the specification asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/rational.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// Longer metadata is refused: 64 MiB.
inline constexpr uint64_t most_sigmf_metadata_bytes = uint64_t{1} << 26;

struct SigmfCapture {
    uint64_t sample_start = 0;             // index of its first sample
    std::optional<uint64_t> global_index;  // the same sample's index where it was recorded
    uint64_t header_bytes = 0;             // before its samples in the data file
    std::optional<double> frequency;       // centre, Hz
    std::optional<int64_t> epoch_ns;       // core:datetime as Unix time
    bool gap_before = false;               // echelle:gap_before, whatever the index says
};

// What a capture of ours says beyond SigMF (docs/capture.md), so that a replay is the stream that
// it was: the namespace "echelle".
struct SigmfOwnFields {
    std::optional<uint32_t> samples_per_frame;
    std::optional<int64_t> epoch_ns;  // Unix time of the stream's sample 0
    std::optional<int16_t> over_range_low;
    std::optional<int16_t> over_range_high;
    bool unfinished = false;  // its recorder was killed: the data end anywhere
};

struct SigmfMetadata {
    SampleFormat format = SampleFormat::i16;
    ValueCoding coding = ValueCoding::int16_little;
    uint32_t channels = 1;  // interleaved sample by sample
    std::optional<Rational> sample_rate;
    uint64_t offset = 0;  // core:offset: index of the data file's first sample
    uint64_t trailing_bytes = 0;
    std::optional<std::string> dataset;  // a file name, without a folder
    bool metadata_only = false;
    std::optional<std::string> sha512;   // of the data file, in hexadecimal digits
    std::vector<SigmfCapture> captures;  // at least one; sample_start never falls
    // The first annotations, as a JSON array: their scalar fields, long texts cut. Empty: none.
    std::string annotations;
    uint64_t annotations_left_out = 0;  // beyond those that are kept
    SigmfOwnFields own;
    std::vector<std::string> remarks;  // what is odd, and doesn't keep the samples from being read
};

// Throws UsageError naming `what`, the field, the value seen and what was expected.
SigmfMetadata parse_sigmf_metadata(std::string_view json, const std::string& what);

}  // namespace echelle
