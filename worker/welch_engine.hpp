// The Welch engine: the spectra of one block, by scipy.signal.welch's definition (docs/welch.md).
//
// Owned by one worker and called from its one thread. Allocates in its constructor only, but for
// the first BlockReduction::median of a stream whose average mode is not the median.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/segment_grid.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "worker/fft_plans.hpp"

namespace echelle {

// One frame as it lies in the ring; shape and layout are the stream's.
struct FrameView {
    const int16_t* samples = nullptr;
    uint32_t valid_samples = 0;  // all but the last frame of a stretch are full
};

// What a block is computed from.
struct BlockInput {
    // Oldest first: frames before the block (history, for segments that reach back over the
    // border), then the block's own. They follow one another without a gap.
    std::span<const FrameView> frames;
    uint32_t own_frames = 0;    // the last own_frames of `frames` are the block's own
    uint64_t first_sample = 0;  // of frames[0], counted from the start of the stretch (the grid)
    uint32_t first_channel = 0;
    uint32_t channel_count = 0;
};

// Exact sums over a channel's samples in the block's own frames, each sample once.
struct ChannelSums {
    int64_t sum_re = 0;
    int64_t sum_im = 0;        // 0 for real channels
    uint64_t sum_squares = 0;  // re^2 (+ im^2)
    uint64_t samples = 0;
    uint32_t over_range = 0;  // samples at the rails (either part of a complex one)
    uint32_t segments = 0;    // segments whose last sample lies in the block's own frames
};

// How the segments of a block become values.
enum class BlockReduction {
    mean,      // one row: the mean over the segments
    maximum,   // one row: the largest value of each bin
    median,    // one row: scipy's median over the segments, divided by its bias
    segments,  // one row for each segment, in time order (a part of a longer median)
};

class WelchEngine {
  public:
    // `plans` must outlive the engine and be made for the same nperseg and kind of channel.
    // `max_channels` and `max_frames` (history included) bound every BlockInput to come.
    WelchEngine(const Stream& stream, const WelchParameters& parameters, const FftPlans& plans,
                uint32_t max_channels, uint32_t max_frames);
    ~WelchEngine();
    WelchEngine(const WelchEngine&) = delete;
    WelchEngine& operator=(const WelchEngine&) = delete;

    // Number of segments that the block will give, the same for all its channels.
    uint64_t segments_in(const BlockInput& input) const;

    // Computes channel first_channel + i into values[i] (rows x bins float32, any alignment of 4;
    // rows is 1, or segments_in(input) for BlockReduction::segments) and sums[i]. Values are final:
    // scaled to counts^2/Hz, V^2/Hz, counts^2 or V^2, one-sided or DC-centred. With no segment
    // only the sums are written. Channel 2k is always paired with 2k + 1 of the stream, so values
    // do not depend on how the channels are cut into blocks as long as first_channel is even.
    // The history must reach back to SegmentGrid::first_sample_needed; a BlockInput that
    // contradicts itself or the constructor's bounds is a broken invariant.
    void compute(const BlockInput& input, BlockReduction reduction, std::span<float* const> values,
                 std::span<ChannelSums> sums);

    // Which SIMD target the kernels run on, as Highway names it ("AVX2", "SCALAR").
    static const char* kernel_target();

  private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
};

}  // namespace echelle
