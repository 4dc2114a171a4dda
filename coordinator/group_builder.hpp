// Cuts the stream of frames into groups: the frames that one set of blocks is made of. Pure: it
// knows stamps, not samples. Owned and called by the ingest thread.
//
// A group ends after `frames_per_group` frames, at the border of an integration, before a gap and
// after a partial frame. So where groups end follows from the stream and the Welch parameters
// alone, never from workers or timing, and a recording of a lossless stream is the same every time.
//
// A partial frame is the stream's last, or a gap cut it short: what follows tells, so its group is
// finished only then.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/ledger.hpp"
#include "common/segment_grid.hpp"

namespace echelle {

// A frame's stamp as read from the ring.
struct FrameArrival {
    uint64_t position = 0;
    uint64_t frame_index = 0;
    uint64_t first_sample = 0;
    uint32_t valid_samples = 0;
    uint32_t flags = 0;
    int64_t complete_ns = 0;
};

struct Group {
    BlockDescriptor block;            // channels, group number and times of opening not yet set
    std::vector<uint64_t> positions;  // history, then own frames
};

class GroupBuilder {
  public:
    // `frames_per_integration` 0: the whole stream is one integration.
    GroupBuilder(uint32_t samples_per_frame, SegmentGrid grid, uint32_t frames_per_group,
                 uint64_t frames_per_integration);

    enum class Verdict {
        accepted,
        repeated,      // the frame index of the frame before it: the same frame again
        out_of_order,  // a frame index before that
        malformed,     // an impossible number of valid samples, or jump of the frame index
    };
    struct Outcome {
        Verdict verdict = Verdict::accepted;
        uint64_t lost_by_source = 0;  // frames that the source skipped before this one
    };
    // Takes the next frame; finished groups are appended to `finished` (at most two).
    Outcome add(const FrameArrival& frame, std::vector<Group>& finished);
    // `frames` frames were overwritten in the ring before they could be added.
    void skip(uint64_t frames);
    // The group that is being built, if it has a frame: at the end of the stream.
    std::optional<Group> flush();

    // Frames added to the group that is being built.
    uint32_t pending_frames() const { return pending_ ? pending_->block.own_frames : 0; }
    // Frames, at least 1, that the group being built (or the next one) still lacks if they follow
    // one another.
    uint64_t frames_wanted() const;
    // The oldest ring position that a group not yet finished may need, given the next position.
    uint64_t first_position_needed(uint64_t next_position) const;

    // Most frames that any group lists, history included.
    uint32_t most_listed_frames() const { return history_frames_ + frames_per_group_; }

  private:
    void begin_stretch();
    void begin_group(const FrameArrival& frame);
    bool awaits_verdict() const;
    Group finish_group();
    uint64_t integration_of(uint64_t frame_index) const;
    bool ends_integration(uint64_t frame_index) const;
    void remember(uint64_t position);

    uint32_t samples_per_frame_;
    SegmentGrid grid_;
    uint32_t frames_per_group_;
    uint64_t frames_per_integration_;
    uint32_t history_frames_;  // most frames of history that a segment can reach back

    std::optional<uint64_t> first_index_;     // frame index at which the stream began
    std::optional<FrameArrival> last_;        // last accepted frame
    uint64_t skipped_ = 0;                    // overwritten since the last accepted frame
    uint64_t stretch_samples_ = 0;            // since the grid (re)started
    std::deque<uint64_t> history_;            // positions of the stretch's last full frames
    bool gap_before_next_ = false;            // to be told by the next group
    uint64_t segments_lost_before_next_ = 0;  // likewise
    std::optional<Group> pending_;
};

}  // namespace echelle
