// The grid of segments over an unbroken stretch of the stream.
//
// Sample indices here are relative to the stretch's first sample: segment j covers
// [j * hop, j * hop + nperseg). A block computes the segments whose *last* sample lies in it, so
// every segment belongs to exactly one block, however the stretch is cut into blocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace echelle {

struct SegmentRange {
    uint64_t first = 0;
    uint64_t count = 0;
};

struct SegmentGrid {
    uint32_t nperseg = 0;
    uint32_t hop = 0;

    // Number of segments that end before sample `end`: those that lie wholly in [0, end).
    uint64_t segments_before(uint64_t end) const {
        return end < nperseg ? 0 : (end - nperseg) / hop + 1;
    }
    // Segments whose last sample lies in [begin, end).
    SegmentRange segments_ending_in(uint64_t begin, uint64_t end) const {
        const uint64_t first = segments_before(begin);
        return {first, segments_before(end) - first};
    }
    // The first sample that a block starting at `begin` may have to read (at most nperseg - 1
    // samples before `begin`).
    uint64_t first_sample_needed(uint64_t begin) const {
        return std::min(begin, segments_before(begin) * hop);
    }
};

}  // namespace echelle
