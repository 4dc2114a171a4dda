#include "coordinator/sources/card_numbering.hpp"

#include <algorithm>
#include <numeric>

namespace echelle {
namespace {

// Ten days at the full rate, as in the group builder: a larger jump is a card that began anew.
constexpr uint64_t longest_believable_loss = uint64_t{1} << 32;

}  // namespace

const char* name_of(CardLoss cause) {
    switch (cause) {
        case CardLoss::bad_data:
            return "bad_data";
        case CardLoss::torn:
            return "torn";
        case CardLoss::bad_header:
            return "bad_header";
        case CardLoss::device:
            return "device";
        case CardLoss::overflow:
            return "overflow";
        case CardLoss::unexplained:
            return "unexplained";
    }
    return "unknown";
}

uint64_t CardNumbering::pending() const {
    return std::accumulate(pending_.begin(), pending_.end(), uint64_t{0});
}

// By the host's clock, for want of the card's; at least 0.
uint64_t CardNumbering::samples_since_last(int64_t now_ns) const {
    const double seconds = static_cast<double>(std::max<int64_t>(now_ns - last_ns_, 0)) / 1e9;
    return static_cast<uint64_t>(seconds * rate_.value());
}

bool CardNumbering::continues_stream(const CardFrameHeader& header) const {
    const uint64_t frames = header.sequence - last_->sequence;
    const uint64_t samples = header.sample_index - last_->sample_index;
    return header.stream == last_->stream && frames <= longest_believable_loss &&
           samples >= header.geometry.samples &&
           samples <= longest_believable_loss * header.geometry.samples;
}

CardNumbering::Verdict CardNumbering::place(const CardFrameHeader& header, int64_t now_ns,
                                            FrameStamp& stamp) {
    if (!last_) {
        sample_offset_ = 0;
        stamp = {0, header.sample_index, header.geometry.samples, 0};
        pending_ = {};  // lost before the first frame: not in the stream
        device_failed_ = false;
    } else if (header.stream == last_->stream && header.sequence <= last_->sequence) {
        return header.sequence == last_->sequence ? Verdict::repeated : Verdict::stale;
    } else if (continues_stream(header)) {
        const bool overflow = (header.flags & card_overflow) != 0;
        stamp = place_after_gap(header.sequence - last_->sequence - 1, overflow,
                                header.sample_index + sample_offset_, header.geometry);
        stamp.flags |= overflow ? frame_gap_before : 0U;
    } else {
        // Nobody knows how much is missing: the frames known to be lost are counted, and the
        // host's clock tells the time that has passed.
        ++restarts_;
        const uint64_t first_sample =
            last_stamp_.first_sample + header.geometry.samples + samples_since_last(now_ns);
        sample_offset_ = first_sample - header.sample_index;
        stamp = place_after_gap(pending(), false, first_sample, header.geometry);
        stamp.flags |= frame_gap_before;
    }
    last_ = header;
    last_stamp_ = stamp;
    last_ns_ = now_ns;
    ++placed_;
    return Verdict::good;
}

FrameStamp CardNumbering::place_unnumbered(const FrameGeometry& geometry, int64_t now_ns) {
    FrameStamp stamp{0, 0, geometry.samples, 0};
    if (placed_ > 0) {
        const uint64_t away = device_failed_ ? samples_since_last(now_ns) : 0;
        stamp = place_after_gap(pending(), false,
                                last_stamp_.first_sample + geometry.samples + away, geometry);
        stamp.flags |= away > 0 ? frame_gap_before : 0U;
    }
    device_failed_ = false;
    last_stamp_ = stamp;
    last_ns_ = now_ns;
    ++placed_;
    return stamp;
}

FrameStamp CardNumbering::place_after_gap(uint64_t missing, bool overflow, uint64_t first_sample,
                                          const FrameGeometry& geometry) {
    count_losses(missing, overflow);
    return {last_stamp_.frame_index + 1 + missing, first_sample, geometry.samples,
            missing > 0 ? uint32_t{frame_gap_before} : 0U};
}

// Each missing frame gets one cause: first those that were seen to be lost, then what the card or
// the driver says.
void CardNumbering::count_losses(uint64_t missing, bool overflow) {
    uint64_t left = missing;
    for (size_t cause = 0; cause < card_losses; ++cause) {
        const uint64_t explained = std::min(left, pending_[cause]);
        lost_[cause] += explained;
        left -= explained;
    }
    const CardLoss rest = overflow         ? CardLoss::overflow
                          : device_failed_ ? CardLoss::device
                                           : CardLoss::unexplained;
    lost_[static_cast<size_t>(rest)] += left;
    pending_ = {};
    device_failed_ = false;
}

}  // namespace echelle
