// The pace of a replay: holds each frame back until its last sample would have been taken, at a
// multiple of the recording's own speed. Counted from the first sample without drift.
//
// Made and called by the source's thread; it sleeps punctually as long as this object lives.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/punctual_sleep.hpp"
#include "common/stream.hpp"

namespace echelle {

class ReplayPace {
  public:
    // `first_sample` is taken now. `late_frames` counts, for all to read, the frames that came more
    // than their duration after their time.
    ReplayPace(const Stream& stream, Rational speed, uint64_t first_sample,
               std::atomic<uint64_t>& late_frames);

    // Until the frame that ends before `end_sample` is due. False when stopped before.
    bool wait_until_due(uint64_t end_sample, const std::atomic<bool>& stop);

  private:
    int64_t deadline_ns(uint64_t end_sample) const;

    Rational rate_;
    Rational speed_;
    double frame_ns_;
    uint64_t first_sample_;
    int64_t start_ns_;
    std::atomic<uint64_t>& late_frames_;
    PunctualThread punctual_;
};

}  // namespace echelle
