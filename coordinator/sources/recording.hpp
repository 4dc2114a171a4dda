// A recording: pieces of samples, what they are had from, and what a report says of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/stream.hpp"
#include "coordinator/sources/replay_keys.hpp"
#include "coordinator/sources/sample_pieces.hpp"
#include "coordinator/sources/sample_store.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

struct Recording {
    std::unique_ptr<SampleStore> store;
    Stream stream;
    std::vector<SamplePiece> pieces;  // at least one
    uint64_t first_index = 0;         // in the stream, of its first sample

    std::string name;                   // "WAV file 'a.wav'"
    std::string coding;                 // "16-bit little-endian"
    std::vector<std::string> remarks;   // what a reader of figures must know
    std::string annotations;            // of the samples, a JSON array as text; empty: none
    uint64_t annotations_left_out = 0;  // beyond what is kept

    uint64_t total_samples() const;
    uint64_t longest_stretch() const;
    size_t gaps() const;
    // One line: name, stream, samples, gaps, remarks.
    std::string describe() const;
    // For the report: samples, the first gaps, remarks, annotations.
    nlohmann::json facts() const;
};

// The source that plays it as the keys say: numbers frames from 0, waits for room when the policy
// is block, looks at `stop` before each frame and ten times a second while it waits. Throws
// UsageError when the keys select nothing of it.
std::unique_ptr<Source> source_of(Recording recording, const ReplayKeys& keys);

}  // namespace echelle
