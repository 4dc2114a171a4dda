#include "coordinator/group_builder.hpp"

#include <algorithm>
#include <utility>

#include "common/invariant.hpp"
#include "common/ring.hpp"

namespace echelle {
namespace {

// Ten days at the full rate. A larger jump is a broken stamp, not a loss.
constexpr uint64_t longest_believable_loss = uint64_t{1} << 32;

}  // namespace

GroupBuilder::GroupBuilder(uint32_t samples_per_frame, SegmentGrid grid, uint32_t frames_per_group,
                           uint64_t frames_per_integration)
    : samples_per_frame_(samples_per_frame),
      grid_(grid),
      frames_per_group_(frames_per_group),
      frames_per_integration_(frames_per_integration),
      history_frames_((grid.nperseg - 1 + samples_per_frame - 1) / samples_per_frame) {
    ECHELLE_INVARIANT(frames_per_group >= 1 && samples_per_frame >= 1);
}

uint64_t GroupBuilder::integration_of(uint64_t frame_index) const {
    return frames_per_integration_ == 0 ? 0
                                        : (frame_index - *first_index_) / frames_per_integration_;
}

// Whether the group being built ends in a partial frame, of which the next one tells more.
bool GroupBuilder::awaits_verdict() const {
    return pending_ && last_->valid_samples < samples_per_frame_;
}

uint64_t GroupBuilder::frames_wanted() const {
    if (awaits_verdict()) {
        return 1;
    }
    const uint64_t of_group = frames_per_group_ - pending_frames();
    if (frames_per_integration_ == 0) {
        return of_group;
    }
    const uint64_t into_integration =
        last_ ? (last_->frame_index + 1 - *first_index_) % frames_per_integration_ : 0;
    return std::min(of_group, frames_per_integration_ - into_integration);
}

bool GroupBuilder::ends_integration(uint64_t frame_index) const {
    return frames_per_integration_ != 0 &&
           (frame_index - *first_index_ + 1) % frames_per_integration_ == 0;
}

void GroupBuilder::begin_stretch() {
    stretch_samples_ = 0;
    history_.clear();
}

void GroupBuilder::skip(uint64_t frames) {
    skipped_ += frames;
}

GroupBuilder::Outcome GroupBuilder::add(const FrameArrival& frame, std::vector<Group>& finished) {
    Outcome outcome;
    const bool impossible_jump = last_ && frame.frame_index > last_->frame_index &&
                                 frame.frame_index - last_->frame_index > longest_believable_loss;
    if (frame.valid_samples == 0 || frame.valid_samples > samples_per_frame_ || impossible_jump) {
        outcome.verdict = Verdict::malformed;
        skip(1);  // its place in the stream is taken: not also a loss of the source's
        return outcome;
    }
    if (last_ && frame.frame_index <= last_->frame_index) {
        outcome.verdict =
            frame.frame_index == last_->frame_index ? Verdict::repeated : Verdict::out_of_order;
        return outcome;
    }
    if (!first_index_) {
        first_index_ = frame.frame_index;
    }
    if (last_) {
        const uint64_t missing = frame.frame_index - last_->frame_index - 1;
        // A source that jumps by less than what we overwrote has repeated frames among them.
        outcome.lost_by_source = missing > skipped_ ? missing - skipped_ : 0;
        const bool continues = missing == 0 && skipped_ == 0 &&
                               (frame.flags & frame_gap_before) == 0 &&
                               frame.first_sample == last_->first_sample + last_->valid_samples &&
                               last_->valid_samples == samples_per_frame_;
        if (!continues) {
            if (pending_) {
                const uint64_t cut_off = samples_per_frame_ - last_->valid_samples;
                finished.push_back(finish_group());
                finished.back().block.segments_cut =
                    grid_.segments_ending_in(stretch_samples_, stretch_samples_ + cut_off).count;
            }
            begin_stretch();
            gap_before_next_ = true;
            segments_lost_before_next_ +=
                std::max(missing, skipped_) * samples_per_frame_ / grid_.hop;
        }
    }
    skipped_ = 0;
    if (pending_ && pending_->block.integration != integration_of(frame.frame_index)) {
        finished.push_back(finish_group());
    }
    if (!pending_) {
        begin_group(frame);
    }
    pending_->positions.push_back(frame.position);
    pending_->block.own_frames += 1;
    pending_->block.own_samples += frame.valid_samples;
    pending_->block.complete_ns = frame.complete_ns;
    pending_->block.last_of_integration = ends_integration(frame.frame_index);
    last_ = frame;
    const bool is_full =
        pending_->block.own_frames == frames_per_group_ || pending_->block.last_of_integration;
    if (is_full && !awaits_verdict()) {
        finished.push_back(finish_group());
    }
    return outcome;
}

void GroupBuilder::begin_group(const FrameArrival& frame) {
    // As many of the stretch's last frames as the first segment that ends in the group reaches
    // back.
    const uint64_t reach = stretch_samples_ - grid_.first_sample_needed(stretch_samples_);
    const uint64_t frames = (reach + samples_per_frame_ - 1) / samples_per_frame_;
    ECHELLE_INVARIANT(frames <= history_.size());
    Group group;
    group.positions.assign(history_.end() - static_cast<std::ptrdiff_t>(frames), history_.end());
    BlockDescriptor& block = group.block;
    block.first_sample = frame.first_sample;
    block.grid_sample = stretch_samples_ - frames * samples_per_frame_;
    block.integration = integration_of(frame.frame_index);
    block.first_of_integration =
        frames_per_integration_ == 0
            ? frame.frame_index == *first_index_
            : (frame.frame_index - *first_index_) % frames_per_integration_ == 0;
    block.gap_before = std::exchange(gap_before_next_, false);
    block.segments_lost = std::exchange(segments_lost_before_next_, 0);
    pending_ = std::move(group);
}

Group GroupBuilder::finish_group() {
    Group group = std::move(*pending_);
    pending_.reset();
    BlockDescriptor& block = group.block;
    block.listed_frames = static_cast<uint32_t>(group.positions.size());
    const uint64_t begin = stretch_samples_;
    stretch_samples_ += block.own_samples;
    block.segments = grid_.segments_ending_in(begin, stretch_samples_).count;
    for (auto position = group.positions.end() - block.own_frames;
         position != group.positions.end(); ++position) {
        remember(*position);
    }
    return group;
}

void GroupBuilder::remember(uint64_t position) {
    history_.push_back(position);
    if (history_.size() > history_frames_) {
        history_.pop_front();
    }
}

std::optional<Group> GroupBuilder::flush() {
    if (!pending_) {
        return std::nullopt;
    }
    Group group = finish_group();
    group.block.ends_stream = true;
    return group;
}

uint64_t GroupBuilder::first_position_needed(uint64_t next_position) const {
    if (pending_) {
        return pending_->positions.front();
    }
    return history_.empty() ? next_position : history_.front();
}

}  // namespace echelle
