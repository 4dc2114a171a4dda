// The shape of the work: how many frames and channels make a block, how long the ring is and how
// many blocks may be open at once. Chosen from the stream, the Welch parameters and the worker
// count, or as the user says; explained in the report.
//
// Values in a recording depend on where groups end in time (float32 sums are cut there), so
// `group_frames` never depends on workers or timing; only a ring too short for the usual groups
// makes them shorter. Channel ranges change no value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/segment_grid.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"

namespace echelle {

struct BlockPlanRequest {
    uint64_t frames_per_integration = 16;  // 0: all
    uint32_t most_workers = 1;
    std::optional<uint32_t> block_channels;  // nothing: auto
    std::optional<uint32_t> block_frames;
    std::optional<uint64_t> ring_frames;
    std::optional<uint64_t> given_ring_frames;  // the ring of an outside producer: its length
    std::optional<uint64_t> total_samples;      // of the whole source, when it is known
    bool live = false;                          // a source that does not wait: a longer ring
    uint64_t most_ring_bytes = UINT64_MAX;      // that a ring of automatic length should take
};

struct BlockPlan {
    SegmentGrid grid;
    uint32_t group_frames = 0;    // frames of a block
    uint32_t block_channels = 0;  // channels of a block; the last may have fewer
    uint32_t blocks_per_group = 0;
    uint32_t history_frames = 0;  // most frames before its own that a block reads
    uint32_t most_values = 0;     // largest packet of a block, in float32
    uint64_t ring_frames = 0;
    uint64_t usual_ring_frames = 0;  // what they would be with memory enough
    uint32_t ledger_blocks = 0;      // blocks open at once
    size_t result_bytes = 0;         // of one block
    std::string reason;              // one sentence for the report

    uint32_t most_listed_frames() const { return history_frames + group_frames; }
};

// Throws UsageError when what was asked for cannot be.
BlockPlan plan_blocks(const Stream& stream, const WelchParameters& welch,
                      const BlockPlanRequest& request);

}  // namespace echelle
