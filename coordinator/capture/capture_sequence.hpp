// Whether the next frame of the ring belongs into a capture, and whether it continues the one
// before. The same rules as GroupBuilder's, so that a capture replayed is cut where the live stream
// was. Pure; owned by the capture's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/ring.hpp"

namespace echelle {

enum class CaptureVerdict {
    taken,
    repeated,      // the frame index of the frame before it
    out_of_order,  // a frame index before that
    malformed,     // an impossible number of valid samples, or jump of the frame index
};

class CaptureSequence {
  public:
    explicit CaptureSequence(uint32_t samples_per_frame) : samples_per_frame_(samples_per_frame) {}

    struct Step {
        CaptureVerdict verdict = CaptureVerdict::taken;
        bool continues = false;  // the frame taken before it, without a gap
    };
    Step next(const FrameStamp& stamp);
    // The frame taken last, or frames after it, are not in the capture.
    void break_here() { broken_ = true; }

  private:
    uint32_t samples_per_frame_;
    std::optional<FrameStamp> last_;
    bool broken_ = false;
};

}  // namespace echelle
