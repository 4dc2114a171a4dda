// A recording: the pieces of a file that hold samples, and how they become frames of the ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/ring.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/sample_file.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

// Samples that lie one behind the other in a file. A piece without a gap before it continues the
// piece before: frames run over the border.
struct SamplePiece {
    uint64_t offset = 0;           // byte of the first sample
    uint64_t samples = 0;          // per channel, at least 1
    bool gap_before = false;       // frames must not run over the border; never for the first piece
    uint64_t samples_missing = 0;  // how many the gap lost; 0 also when nobody knows

    bool operator==(const SamplePiece&) const = default;
};

struct Recording {
    RegularFile file;
    ValueCoding coding = ValueCoding::int16_little;
    Stream stream;
    // With a channel-major layout exactly one piece: frames as they lie in the ring, the last one
    // with rows of just the samples that it has.
    std::vector<SamplePiece> pieces;

    uint64_t total_samples() const;
    uint64_t longest_stretch() const;
    // Writes the frames: numbers them from 0, waits for room when the policy is block, looks at
    // `stop` before each frame and ten times a second while it waits. Throws RunError.
    void play(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) const;
};

// Bytes of one sample of all channels in a file.
uint64_t file_sample_bytes(const FrameGeometry& geometry, ValueCoding coding);

// How many whole samples of all channels there are in `bytes`; may be none. Throws UsageError, with
// the sizes, when bytes are left over unless `drop_tail`.
uint64_t whole_samples(const std::string& path, uint64_t bytes, const FrameGeometry& geometry,
                       ValueCoding coding, bool drop_tail);

}  // namespace echelle
