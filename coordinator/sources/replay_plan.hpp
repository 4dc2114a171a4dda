// Which samples of a recording are played, and where they stand in the stream. Touches no file.
//
// `start` and `count` select by the recording's own indices, gaps included: what start=10s begins
// with was recorded ten seconds after the first sample, whatever is missing before it. Indices in
// the stream stay those of the whole recording, so that times are exact. A second pass begins where
// the first one ended, behind a gap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/sources/replay_keys.hpp"
#include "coordinator/sources/sample_pieces.hpp"

namespace echelle {

// Samples of one piece.
struct ReplayStretch {
    size_t piece = 0;      // which of the recording's
    uint64_t first = 0;    // of the piece's samples
    uint64_t samples = 0;  // at least 1
    uint64_t index = 0;    // in the stream of the first pass
    bool gap_before = false;

    bool operator==(const ReplayStretch&) const = default;
};

class ReplayPlan {
  public:
    // `what` names the recording. Throws UsageError when nothing is selected, and when the passes
    // together exceed 2^63 samples.
    ReplayPlan(const std::vector<SamplePiece>& pieces, const ReplayKeys& keys, Rational rate,
               const std::string& what);

    const std::vector<ReplayStretch>& stretches() const { return stretches_; }  // at least one
    std::optional<uint64_t> passes() const { return passes_; }                  // absent: endless
    // Of one pass: its samples; what it takes of the stream, gaps between its samples included; the
    // samples of its longest part without a gap.
    uint64_t samples() const { return samples_; }
    uint64_t span() const { return span_; }
    uint64_t longest_stretch() const { return longest_; }
    size_t gaps() const { return gaps_; }
    // Of all passes; absent when endless.
    std::optional<uint64_t> total_samples() const;

  private:
    void add(ReplayStretch stretch);

    std::vector<ReplayStretch> stretches_;
    std::optional<uint64_t> passes_;
    uint64_t samples_ = 0;
    uint64_t span_ = 0;
    uint64_t longest_ = 0;
    uint64_t unbroken_ = 0;  // samples since the last gap
    size_t gaps_ = 0;
};

// Goes through the samples of a plan. `plan` outlives it.
class ReplayPosition {
  public:
    explicit ReplayPosition(const ReplayPlan& plan) : plan_(&plan) {}

    bool at_end() const { return plan_->passes() && pass_ == *plan_->passes(); }
    // Whether the next sample does not follow the one before it.
    bool at_gap() const {
        return !at_end() && done_ == 0 && (stretch().gap_before || (pass_ > 0 && stretch_ == 0));
    }
    // Of the next sample: its index in the stream, and where it lies.
    uint64_t index() const { return pass_ * plan_->span() + stretch().index + done_; }
    size_t piece() const { return stretch().piece; }
    uint64_t sample_of_piece() const { return stretch().first + done_; }
    uint64_t samples_left_in_stretch() const { return stretch().samples - done_; }
    void advance(uint64_t samples);
    uint64_t passes_done() const { return pass_; }

  private:
    const ReplayStretch& stretch() const { return plan_->stretches()[stretch_]; }

    const ReplayPlan* plan_;
    uint64_t pass_ = 0;
    size_t stretch_ = 0;
    uint64_t done_ = 0;  // samples of the present stretch
};

}  // namespace echelle
