// A recording: pieces of samples, what they are had from, and how they become frames of the ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/ring.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/sample_pieces.hpp"
#include "coordinator/sources/sample_store.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

struct Recording {
    std::unique_ptr<SampleStore> store;
    Stream stream;
    std::vector<SamplePiece> pieces;  // at least one

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
    // Writes the frames: numbers them from 0, waits for room when the policy is block, looks at
    // `stop` before each frame and ten times a second while it waits. Throws RunError.
    void play(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) const;
};

// The source that plays it.
std::unique_ptr<Source> source_of(Recording recording);

}  // namespace echelle
