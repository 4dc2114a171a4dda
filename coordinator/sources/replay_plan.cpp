#include "coordinator/sources/replay_plan.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace echelle {
namespace {

uint64_t end_of(const std::vector<SamplePiece>& pieces) {
    uint64_t end = 0;
    for (const SamplePiece& piece : pieces) {
        end += piece.samples_missing + piece.samples;
    }
    return end;
}

}  // namespace

ReplayPlan::ReplayPlan(const std::vector<SamplePiece>& pieces, const ReplayKeys& keys,
                       Rational rate, const std::string& what)
    : passes_(keys.passes) {
    const uint64_t end = end_of(pieces);
    const uint64_t from = keys.start ? keys.start->samples_at(rate) : 0;
    const uint64_t most = keys.count ? keys.count->samples_at(rate) : most_samples;
    if (from >= end) {
        throw UsageError("start=" + keys.start->text + " lies beyond the " + std::to_string(end) +
                         " samples of " + what + ": give a smaller one");
    }
    const uint64_t to = most < end - from ? from + most : end;
    uint64_t index = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
        index += pieces[i].samples_missing;
        const uint64_t first = std::max(index, from);
        const uint64_t last = std::min(index + pieces[i].samples, to);
        if (first < last) {
            // Cut at its start, a piece has nothing of this pass before it.
            const bool gap = pieces[i].gap_before && !stretches_.empty();
            add({i, first - index, last - first, first, gap});
        }
        index += pieces[i].samples;
    }
    if (stretches_.empty()) {
        throw UsageError("count=" + keys.count->text + " selects no sample of " + what +
                         (most == 0 ? ": give 1 or more" : ", where they are missing: give more"));
    }
    span_ = stretches_.back().index + stretches_.back().samples - stretches_.front().index;
    if (passes_ && *passes_ > (most_samples - stretches_.front().index) / span_) {
        throw UsageError("loop=" + std::to_string(*passes_) + " of the " + std::to_string(span_) +
                         " samples of " + what + " exceeds 2^63 samples: give loop=yes");
    }
}

void ReplayPlan::add(ReplayStretch stretch) {
    samples_ += stretch.samples;
    unbroken_ = stretch.samples + (stretch.gap_before ? 0 : unbroken_);
    longest_ = std::max(longest_, unbroken_);
    gaps_ += stretch.gap_before ? 1 : 0;
    stretches_.push_back(stretch);
}

std::optional<uint64_t> ReplayPlan::total_samples() const {
    return passes_ ? std::optional(*passes_ * samples_) : std::nullopt;
}

void ReplayPosition::advance(uint64_t samples) {
    done_ += samples;
    if (done_ < stretch().samples) {
        return;
    }
    done_ = 0;
    if (++stretch_ == plan_->stretches().size()) {
        stretch_ = 0;
        ++pass_;
    }
}

}  // namespace echelle
