// One pass over a channel's samples before its transforms: the statistics of the block's own
// samples and, for the detrending, the mean of every segment from exact sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/stream.hpp"
#include "worker/aligned_array.hpp"
#include "worker/kernels.hpp"
#include "worker/sample_rows.hpp"

namespace echelle {

// Where a block's samples and segments lie, as positions in its input (see SampleRows).
struct BlockSpan {
    uint64_t own_begin = 0;  // the block's own samples are [own_begin, end)
    uint64_t end = 0;
    uint64_t first_segment = 0;  // position of the first segment, at or before own_begin
    uint64_t segments = 0;
    uint32_t nperseg = 0;
    uint32_t hop = 0;

    uint64_t segment_begin(uint64_t index) const { return first_segment + index * hop; }
    // The first position that is read at all.
    uint64_t begin() const { return segments > 0 ? first_segment : own_begin; }
};

class ChannelSumming {
  public:
    // For blocks of at most `max_segments`.
    ChannelSumming(const Stream& stream, uint64_t max_segments);

    // Sums the block's own samples and prepares segment_mean_*() if `segment_sums`.
    RunSums measure(const SampleRows& rows, const BlockSpan& span, uint32_t channel,
                    bool segment_sums);

    SegmentMean segment_mean_re(uint64_t segment) const { return means_[segment].re; }
    SegmentMean segment_mean_im(uint64_t segment) const { return means_[segment].im; }

  private:
    // Sums over the samples from the first segment's first one up to where a segment begins or
    // ends: each sample is added once, however much the segments overlap.
    struct Prefix {
        int64_t re;
        int64_t im;
    };

    struct Means {
        SegmentMean re;
        SegmentMean im;
    };

    RunSums sum(const SampleRows& rows, uint32_t channel, uint64_t begin, uint64_t end,
                bool statistics) const;
    void set_mean(uint64_t segment, Prefix at_end, uint32_t nperseg);

    bool is_complex_;
    int16_t low_;
    int16_t high_;
    AlignedArray<Prefix> at_begin_;
    AlignedArray<Means> means_;
};

}  // namespace echelle
