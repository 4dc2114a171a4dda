#include "worker/channel_sums.hpp"

#include <algorithm>

namespace echelle {
namespace {

void add(RunSums& total, const RunSums& part) {
    total.sum_re += part.sum_re;
    total.sum_im += part.sum_im;
    total.sum_squares += part.sum_squares;
    total.over_range += part.over_range;
}

}  // namespace

ChannelSumming::ChannelSumming(const Stream& stream, uint64_t max_segments)
    : is_complex_(stream.geometry.is_complex()),
      low_(stream.over_range_low),
      high_(stream.over_range_high),
      at_begin_(max_segments),
      means_(max_segments) {}

RunSums ChannelSumming::sum(const SampleRows& rows, uint32_t channel, uint64_t begin, uint64_t end,
                            bool statistics) const {
    RunSums total;
    rows.for_each_run(begin, end, [&](uint64_t frame, uint64_t offset, size_t count) {
        const int16_t* samples = rows.at(frame, channel, offset);
        if (statistics) {
            add(total, is_complex_ ? kernels::statistics_complex(samples, count, low_, high_)
                                   : kernels::statistics_real(samples, count, low_, high_));
        } else {
            add(total, is_complex_ ? kernels::sum_complex(samples, count)
                                   : kernels::sum_real(samples, count));
        }
    });
    return total;
}

// From one place where a segment begins or ends to the next.
RunSums ChannelSumming::measure(const SampleRows& rows, const BlockSpan& span, uint32_t channel,
                                bool segment_sums) {
    RunSums own;
    const uint64_t segments = segment_sums ? span.segments : 0;
    Prefix prefix{0, 0};
    uint64_t begun = 0;
    uint64_t ended = 0;
    uint64_t position = segments > 0 ? span.first_segment : span.own_begin;
    while (true) {
        uint64_t stop = position < span.own_begin ? span.own_begin : span.end;
        if (begun < segments) {
            if (span.segment_begin(begun) == position) {
                at_begin_[begun++] = prefix;
            }
            stop = begun < segments ? std::min(stop, span.segment_begin(begun)) : stop;
        }
        if (ended < segments) {
            if (span.segment_begin(ended) + span.nperseg == position) {
                set_mean(ended, prefix, span.nperseg);
                ++ended;
            }
            stop =
                ended < segments ? std::min(stop, span.segment_begin(ended) + span.nperseg) : stop;
        }
        if (position == span.end) {
            return own;
        }
        const bool is_own = position >= span.own_begin;
        const RunSums piece = sum(rows, channel, position, stop, is_own);
        prefix.re += piece.sum_re;
        prefix.im += piece.sum_im;
        if (is_own) {
            add(own, piece);
        }
        position = stop;
    }
}

void ChannelSumming::set_mean(uint64_t segment, Prefix at_end, uint32_t nperseg) {
    const Prefix begin = at_begin_[segment];
    means_[segment].re = SegmentMean::of(at_end.re - begin.re, nperseg);
    if (is_complex_) {
        means_[segment].im = SegmentMean::of(at_end.im - begin.im, nperseg);
    }
}

}  // namespace echelle
