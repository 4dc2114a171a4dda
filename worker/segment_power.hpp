// The transforms of one channel, or of two real ones that share a transform, and the power of
// their bins: everything between samples and the final values.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "worker/aligned_array.hpp"
#include "worker/channel_sums.hpp"
#include "worker/fft_plans.hpp"
#include "worker/sample_rows.hpp"
#include "worker/split_transform.hpp"

namespace echelle {

// The channels of one transform: `channel`, and `channel + 1` if it is a pair.
struct TransformChannels {
    uint32_t channel = 0;
    bool is_pair = false;
    uint32_t count() const { return is_pair ? 2 : 1; }
};

class SegmentPower {
  public:
    SegmentPower(const Stream& stream, const WelchParameters& parameters, const FftPlans& plans);

    // Number of float values that hold the powers of one segment. A pair's lie interleaved, or from
    // the split transform one channel's after the other's: finish() knows.
    size_t width(TransformChannels channels) const;

    // Windows and transforms the segment that begins at `position`. The means are subtracted
    // first: of the channel's parts, or of the pair's channels.
    void transform(const SampleRows& rows, TransformChannels channels, uint64_t position,
                   SegmentMean first_mean, SegmentMean second_mean);
    // Adds the powers of the segment last transformed to `power`, or keeps the larger.
    void add_to(TransformChannels channels, float* power);
    void keep_larger(TransformChannels channels, float* power);

    // From power to values in the units asked for, divided by `divisor`: one-sided or DC-centred.
    // `second` takes the pair's other channel.
    void finish(TransformChannels channels, const float* power, double divisor, float* first,
                float* second) const;

  private:
    bool is_split(TransformChannels channels) const {
        return plans_->split() != nullptr && (is_complex_ || channels.is_pair);
    }
    size_t bins() const { return is_complex_ ? nperseg_ : nperseg_ / 2 + 1; }
    void transform_split(const SampleRows& rows, TransformChannels channels, uint64_t position,
                         SegmentMean first_mean, SegmentMean second_mean);
    const int16_t* unbroken(const SampleRows& rows, uint32_t channel, uint64_t position,
                            int16_t* scratch) const;
    void undouble(float* values) const;
    void finish_two_sided(const float* power, double scale, float* values) const;

    const FftPlans* plans_;
    uint32_t nperseg_;
    bool is_complex_;
    double scale_ = 1.0;  // from |FFT|^2 to the result's unit, for both sides
    AlignedArray<float> window_;
    AlignedArray<std::complex<float>> in_;
    AlignedArray<std::complex<float>> out_;
    // The split transform's: its result, and a segment's samples where frames break them.
    SplitWorkspace workspace_;
    kernels::SplitRows result_;
    AlignedArray<int16_t> joined_;
};

}  // namespace echelle
