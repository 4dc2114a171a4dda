// Puts samples that come in pieces into frames of the ring: straight into the slot, in one copy
// that also turns their bytes round where need be. A hole ends the frame it falls into; the next
// frame begins with the first sample behind it, marked. So no sample that came is left out, and
// none that is missing is ever averaged.
//
// Frames are sample-major. A frame's index counts frames; behind a hole it is the whole frames'
// worth of time since the first frame, or one more than the index before, whichever is larger, so
// that frames lost as a whole count as lost.
//
// Owned and called by the source's thread alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "common/ring.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

// Copies 16-bit values; `swap` exchanges the two bytes of each. `from` has twice as many bytes as
// `to` has values.
void copy_values(std::span<const std::byte> from, std::span<int16_t> to, bool swap);

struct AssembledFrames {
    uint64_t written = 0;
    uint64_t cut_short = 0;  // of those, by a hole or by the end
};

class FrameAssembler {
  public:
    // `swap`: the samples' byte order is not this machine's. `stop` is looked at while it waits for
    // room, which it does when the policy is block.
    FrameAssembler(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop,
                   bool swap);

    // Before begin(): of the samples that come, only these become frames, counted from the first.
    void select(uint64_t from, uint64_t count);
    // Before begin(): called before a frame is published, with the index behind its last sample.
    void set_pace(std::function<void(uint64_t end_sample)> wait) {
        wait_until_due_ = std::move(wait);
    }
    // The index of the first sample that will come. Once, before anything else.
    void begin(uint64_t first_sample);
    // Whole samples of all channels. What cannot be placed since the run was stopped is left out.
    void append(std::span<const std::byte> samples);
    // `samples` are missing here; 0: it is not known how many.
    void skip(uint64_t samples);
    // Publishes the frame that is being filled, if it has a sample.
    void finish();

    uint64_t position() const { return position_; }  // index of the next sample
    uint64_t start() const { return start_; }        // of the first one in a frame
    // Whether all that was selected has come.
    bool is_complete() const { return position_ >= to_; }
    const AssembledFrames& frames() const { return frames_; }

  private:
    std::span<const std::byte> selected(std::span<const std::byte> samples);
    bool open_frame();
    void publish();

    RingWriter& writer_;
    OverrunPolicy policy_;
    const std::atomic<bool>& stop_;
    bool swap_;
    uint32_t samples_per_frame_;
    size_t values_per_sample_;  // of all channels
    std::span<int16_t> frame_;  // empty: none is being filled
    uint32_t filled_ = 0;       // samples
    // Selected; counted from the first sample until begin(), indices of the stream from then on.
    uint64_t from_ = 0;
    uint64_t to_ = UINT64_MAX;
    std::function<void(uint64_t)> wait_until_due_;
    uint64_t start_ = 0;
    uint64_t position_ = 0;
    uint64_t next_index_ = 0;
    bool gap_ = false;
    AssembledFrames frames_;
};

}  // namespace echelle
