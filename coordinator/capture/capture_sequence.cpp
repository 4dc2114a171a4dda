#include "coordinator/capture/capture_sequence.hpp"

namespace echelle {
namespace {

// Ten days at the full rate. A larger jump is a broken stamp, not a loss.
constexpr uint64_t longest_believable_loss = uint64_t{1} << 32;

}  // namespace

CaptureSequence::Step CaptureSequence::next(const FrameStamp& stamp) {
    const bool impossible_jump = last_ && stamp.frame_index > last_->frame_index &&
                                 stamp.frame_index - last_->frame_index > longest_believable_loss;
    if (stamp.valid_samples == 0 || stamp.valid_samples > samples_per_frame_ || impossible_jump) {
        broken_ = true;
        return {CaptureVerdict::malformed, false};
    }
    if (last_ && stamp.frame_index <= last_->frame_index) {
        return {stamp.frame_index == last_->frame_index ? CaptureVerdict::repeated
                                                        : CaptureVerdict::out_of_order,
                false};
    }
    const bool continues = last_ && !broken_ && stamp.frame_index == last_->frame_index + 1 &&
                           (stamp.flags & frame_gap_before) == 0 &&
                           stamp.first_sample == last_->first_sample + last_->valid_samples &&
                           last_->valid_samples == samples_per_frame_;
    broken_ = false;
    last_ = stamp;
    return {CaptureVerdict::taken, continues};
}

}  // namespace echelle
