// Faults on request: what a card, its driver and its cable do on a bad day. Every choice follows
// from the seed and the frame's index alone, so a faulty run can be repeated exactly.
//
// "Every N" means the frames with index N - 1, 2N - 1, …: the first N - 1 frames are sound.
#pragma once

#include <cstdint>
#include <span>

#include "common/stream.hpp"

namespace echelle {

inline constexpr uint32_t over_range_burst_samples = 64;

struct FaultOptions {
    double drop = 0;                // fraction of frames lost, in [0, 1), chosen by the seed
    uint64_t drop_every = 0;        // every Nth frame lost; 0: none; at least 2
    uint64_t repeat_every = 0;      // every Nth frame published twice; 0: none
    uint64_t pause_every = 0;       // a pause before every Nth frame; 0: none
    double pause_ms = 10;           // its length
    uint64_t over_range_every = 0;  // a burst at the rails in every Nth frame; 0: none

    bool drops() const { return drop > 0 || drop_every > 0; }
    bool any() const {
        return drops() || repeat_every > 0 || pause_every > 0 || over_range_every > 0;
    }
    // Throws UsageError naming the key.
    void validate() const;
};

class Faults {
  public:
    Faults(const FaultOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

    bool drops(uint64_t frame_index) const;
    bool repeats(uint64_t frame_index) const;
    // Nanoseconds of pause before the frame; 0: none.
    int64_t pause_before_ns(uint64_t frame_index) const;

    // Drives over_range_burst_samples consecutive samples (all of a shorter frame) of every channel
    // to the rail that lies on their side of zero, if this frame is to have a burst. All channels
    // have it at the same place, as from a surge on a common reference.
    void apply_over_range(uint64_t frame_index, const Stream& stream,
                          std::span<int16_t> frame) const;

  private:
    FaultOptions options_;
    uint64_t seed_;
};

}  // namespace echelle
