// The work that every measurement of the transforms does: frames of the simulator's default signal
// in a ring like the product's (same pages, same length, so frames come from memory and not from a
// cache), cut into blocks as the coordinator would cut them.
//
// Owned by one measuring program and called from its one thread. A "group" is what one set of
// blocks covers: group_frames() frames of every channel. Groups are numbered from 0 without end;
// the ring's frames recur.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ring.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "coordinator/block_plan.hpp"
#include "worker/aligned_array.hpp"
#include "worker/fft_plans.hpp"
#include "worker/spectrum_labels.hpp"
#include "worker/welch_engine.hpp"

namespace echelle::bench {

struct WorkShape {
    FrameGeometry geometry;    // 128 channels x 2048 samples unless changed
    uint64_t average = 16;     // frames of one spectrum
    uint32_t workers = 1;      // the block shape follows from it
    uint64_t ring_frames = 0;  // 0: as many as the product's ring
    FftEffort effort = FftEffort::patient;
    FftKind fft = FftKind::automatic;  // the engine's; bare transforms are FFTW's
};

class WelchWork {
  public:
    // Throws UsageError for a shape that the product refuses.
    explicit WelchWork(const WorkShape& shape);

    uint32_t group_frames() const { return plan_.group_frames; }
    uint32_t channels() const { return stream_.geometry.channels; }
    const Stream& stream() const { return stream_; }
    const FftPlans& plans() const { return plans_; }

    // The FFTW transforms that the group needs, and nothing else, from one buffer to another that
    // both stay in the cache.
    void transform(uint64_t group);
    // The same group through the Welch engine, from samples to values in packets.
    void compute(uint64_t group);
    // Seals the packets of the group last computed, as a worker does.
    void seal(uint64_t group);

    // channels() rows of welch().bins() values, as the last compute() left them.
    const float* values(uint32_t channel) const { return values_[channel]; }
    uint32_t bins() const { return labels_.bins(); }

  private:
    void fill_ring();
    // The frames of a group, the history before it included.
    std::vector<FrameView> views_of(uint64_t group) const;
    BlockInput block_of(const std::vector<FrameView>& views, uint64_t group,
                        uint32_t first_channel) const;
    // Transforms that `segments` segments of `channels` channels take.
    uint64_t transforms_for(uint64_t segments, uint32_t channels) const;

    Stream stream_;
    WelchParameters welch_;
    BlockPlan plan_;
    Ring ring_;
    FftPlans fftw_;
    FftPlans plans_;
    WelchEngine engine_;
    SpectrumLabels labels_;
    std::vector<AlignedArray<std::byte>> packets_;  // one for each channel
    std::vector<float*> values_;
    std::vector<ChannelSums> sums_;
    AlignedArray<std::complex<float>> in_;
    AlignedArray<std::complex<float>> out_;
};

}  // namespace echelle::bench
