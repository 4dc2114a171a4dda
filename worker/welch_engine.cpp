#include "worker/welch_engine.hpp"

#include <algorithm>
#include <limits>

#include "common/invariant.hpp"
#include "common/psd_axis.hpp"
#include "worker/aligned_array.hpp"
#include "worker/channel_sums.hpp"
#include "worker/kernels.hpp"
#include "worker/sample_rows.hpp"
#include "worker/segment_power.hpp"

namespace echelle {
namespace {

// So many segments are added in float before the sum moves on into double: the rounding of the
// sum stays below 4e-6 of it.
constexpr uint64_t kSegmentsInFloat = 64;

// The most segments that can end within `frames` frames.
uint64_t most_segments(const FrameGeometry& geometry, uint32_t frames, uint32_t hop) {
    const uint64_t samples = uint64_t{geometry.samples} * frames;
    return (samples + hop - 1) / hop;
}

}  // namespace

struct WelchEngine::Scratch {
    Scratch(const Stream& for_stream, const WelchParameters& for_parameters, const FftPlans& plans,
            uint32_t channels, uint32_t frames)
        : stream(for_stream),
          parameters(for_parameters),
          max_channels(channels),
          max_frames(frames),
          max_segments(most_segments(stream.geometry, frames, parameters.hop())),
          reader(stream.geometry, channels, frames),
          first_sums(stream, parameters.detrend == Detrend::constant ? max_segments : 0),
          second_sums(stream, parameters.detrend == Detrend::constant ? max_segments : 0),
          segment_power(stream, parameters, plans),
          power(widest()),
          total(widest()) {
        if (parameters.average_mode == AverageMode::median) {
            reserve_median_rows();
        }
    }

    // The most values that one segment's powers take.
    size_t widest() const {
        return stream.geometry.is_complex() ? parameters.bins(true)
                                            : size_t{2} * parameters.bins(false);
    }
    void reserve_median_rows() {
        if (median_rows.size() == 0) {
            median_rows = AlignedArray<float>(widest() * max_segments);
            median_column = AlignedArray<float>(kColumns * max_segments);
        }
    }

    void check(const BlockInput& input) const;
    BlockSpan span_of(const BlockInput& input) const;
    bool pairs_with_next(uint32_t channel, uint32_t end) const;
    ChannelSums sums_of(const RunSums& sums, const BlockSpan& span) const;

    void compute(const SampleRows& rows, const BlockSpan& span, TransformChannels channels,
                 BlockReduction reduction, float* const* values, ChannelSums* sums);
    void transform(const SampleRows& rows, const BlockSpan& span, TransformChannels channels,
                   uint64_t segment);
    void prefetch_next(const SampleRows& rows, const BlockSpan& span, TransformChannels channels,
                       uint64_t segment) const;
    void mean(const SampleRows& rows, const BlockSpan& span, TransformChannels channels);
    void maximum(const SampleRows& rows, const BlockSpan& span, TransformChannels channels);
    void median(const SampleRows& rows, const BlockSpan& span, TransformChannels channels);
    void rows_of_segments(const SampleRows& rows, const BlockSpan& span, TransformChannels channels,
                          float* const* values);
    void median_of_columns(size_t first, size_t columns, size_t width, uint64_t segments);

    // Columns whose median is taken together: one cache line of each row.
    static constexpr size_t kColumns = 16;

    Stream stream;
    WelchParameters parameters;
    uint32_t max_channels;
    uint32_t max_frames;
    uint64_t max_segments;
    RowReader reader;
    ChannelSumming first_sums;   // of the channel
    ChannelSumming second_sums;  // of the pair's other channel
    SegmentPower segment_power;
    AlignedArray<float> power;
    AlignedArray<double> total;
    AlignedArray<float> median_rows;
    AlignedArray<float> median_column;
};

WelchEngine::WelchEngine(const Stream& stream, const WelchParameters& parameters,
                         const FftPlans& plans, uint32_t max_channels, uint32_t max_frames) {
    ECHELLE_INVARIANT(plans.nperseg() == parameters.nperseg);
    ECHELLE_INVARIANT(max_channels > 0 && max_frames > 0);
    stream.geometry.validate();
    parameters.validate();
    scratch_ = std::make_unique<Scratch>(stream, parameters, plans, max_channels, max_frames);
}

WelchEngine::~WelchEngine() = default;

const char* WelchEngine::kernel_target() {
    return kernels::target();
}

uint64_t WelchEngine::segments_in(const BlockInput& input) const {
    return scratch_->span_of(input).segments;
}

void WelchEngine::compute(const BlockInput& input, BlockReduction reduction,
                          std::span<float* const> values, std::span<ChannelSums> sums) {
    Scratch& s = *scratch_;
    s.check(input);
    ECHELLE_INVARIANT(values.size() >= input.channel_count && sums.size() >= input.channel_count);
    if (reduction == BlockReduction::median) {
        s.reserve_median_rows();
    }
    const BlockSpan span = s.span_of(input);
    const uint32_t end = input.first_channel + input.channel_count;
    uint32_t channel = input.first_channel;
    while (channel < end) {
        const uint32_t group_end = s.reader.group_end(channel, end);
        const SampleRows rows =
            s.reader.rows(input.frames, channel, group_end, span.begin(), span.end);
        while (channel < group_end) {
            const TransformChannels channels{channel, s.pairs_with_next(channel, group_end)};
            const uint32_t index = channel - input.first_channel;
            s.compute(rows, span, channels, reduction, values.data() + index, sums.data() + index);
            channel += channels.count();
        }
    }
}

void WelchEngine::Scratch::check(const BlockInput& input) const {
    ECHELLE_INVARIANT(input.own_frames > 0 && input.own_frames <= input.frames.size());
    ECHELLE_INVARIANT(input.frames.size() <= max_frames);
    ECHELLE_INVARIANT(input.channel_count <= max_channels);
    ECHELLE_INVARIANT(uint64_t{input.first_channel} + input.channel_count <=
                      stream.geometry.channels);
    ECHELLE_INVARIANT(input.frames.back().valid_samples <= stream.geometry.samples);
    for (const FrameView& frame : input.frames.first(input.frames.size() - 1)) {
        ECHELLE_INVARIANT(frame.valid_samples == stream.geometry.samples);
    }
}

BlockSpan WelchEngine::Scratch::span_of(const BlockInput& input) const {
    const uint64_t frame_samples = stream.geometry.samples;
    BlockSpan span;
    span.nperseg = parameters.nperseg;
    span.hop = parameters.hop();
    span.own_begin = (input.frames.size() - input.own_frames) * frame_samples;
    span.end = (input.frames.size() - 1) * frame_samples + input.frames.back().valid_samples;
    const SegmentGrid grid{span.nperseg, span.hop};
    const SegmentRange segments =
        grid.segments_ending_in(input.first_sample + span.own_begin, input.first_sample + span.end);
    span.segments = segments.count;
    if (segments.count > 0) {
        const uint64_t begin = segments.first * span.hop;
        ECHELLE_INVARIANT(begin >= input.first_sample);  // enough history
        span.first_segment = begin - input.first_sample;
    }
    return span;
}

// Channel 2k goes with 2k + 1 of the stream, wherever the block begins.
bool WelchEngine::Scratch::pairs_with_next(uint32_t channel, uint32_t end) const {
    return parameters.pair_channels && !stream.geometry.is_complex() && channel % 2 == 0 &&
           channel + 1 < end;
}

ChannelSums WelchEngine::Scratch::sums_of(const RunSums& sums, const BlockSpan& span) const {
    ChannelSums result;
    result.sum_re = sums.sum_re;
    result.sum_im = sums.sum_im;
    result.sum_squares = sums.sum_squares;
    result.samples = span.end - span.own_begin;
    result.over_range = static_cast<uint32_t>(
        std::min<uint64_t>(sums.over_range, std::numeric_limits<uint32_t>::max()));
    result.segments = static_cast<uint32_t>(span.segments);
    return result;
}

void WelchEngine::Scratch::compute(const SampleRows& rows, const BlockSpan& span,
                                   TransformChannels channels, BlockReduction reduction,
                                   float* const* values, ChannelSums* sums) {
    const bool detrend = parameters.detrend == Detrend::constant;
    sums[0] = sums_of(first_sums.measure(rows, span, channels.channel, detrend), span);
    if (channels.is_pair) {
        sums[1] = sums_of(second_sums.measure(rows, span, channels.channel + 1, detrend), span);
    }
    if (span.segments == 0) {
        return;
    }
    double divisor = 1.0;
    switch (reduction) {
        case BlockReduction::segments:
            rows_of_segments(rows, span, channels, values);
            return;
        case BlockReduction::maximum:
            maximum(rows, span, channels);
            break;
        case BlockReduction::median:
            median(rows, span, channels);
            divisor = median_bias(span.segments);
            break;
        case BlockReduction::mean:
            mean(rows, span, channels);
            divisor = static_cast<double>(span.segments);
            break;
    }
    segment_power.finish(channels, power.data(), divisor, values[0],
                         channels.is_pair ? values[1] : nullptr);
}

void WelchEngine::Scratch::transform(const SampleRows& rows, const BlockSpan& span,
                                     TransformChannels channels, uint64_t segment) {
    SegmentMean first;
    SegmentMean second;
    if (parameters.detrend == Detrend::constant) {
        first = first_sums.segment_mean_re(segment);
        if (channels.is_pair) {
            second = second_sums.segment_mean_re(segment);
        } else if (stream.geometry.is_complex()) {
            second = first_sums.segment_mean_im(segment);
        }
    }
    segment_power.transform(rows, channels, span.segment_begin(segment), first, second);
    prefetch_next(rows, span, channels, segment);
}

// With each segment, its part of the rows that are wanted next.
void WelchEngine::Scratch::prefetch_next(const SampleRows& rows, const BlockSpan& span,
                                         TransformChannels channels, uint64_t segment) const {
    const uint32_t next = channels.channel + channels.count();
    const uint32_t next_end = std::min(next + channels.count(), rows.end_channel);
    const uint64_t begin = span.segment_begin(segment);
    const uint64_t end = segment + 1 == span.segments ? span.end : begin + span.hop;
    for (uint32_t channel = next; channel < next_end; ++channel) {
        rows.prefetch(channel, begin, end);
    }
}

void WelchEngine::Scratch::mean(const SampleRows& rows, const BlockSpan& span,
                                TransformChannels channels) {
    const size_t width = segment_power.width(channels);
    std::fill_n(power.data(), width, 0.0F);
    const bool in_double = span.segments > kSegmentsInFloat;
    if (in_double) {
        std::fill_n(total.data(), width, 0.0);
    }
    for (uint64_t j = 0; j < span.segments; ++j) {
        transform(rows, span, channels, j);
        segment_power.add_to(channels, power.data());
        if (in_double && ((j + 1) % kSegmentsInFloat == 0 || j + 1 == span.segments)) {
            for (size_t i = 0; i < width; ++i) {
                total[i] += double{power[i]};
            }
            std::fill_n(power.data(), width, 0.0F);
        }
    }
    if (in_double) {
        std::transform(total.data(), total.data() + width, power.data(),
                       [](double sum) { return static_cast<float>(sum); });
    }
}

void WelchEngine::Scratch::maximum(const SampleRows& rows, const BlockSpan& span,
                                   TransformChannels channels) {
    std::fill_n(power.data(), segment_power.width(channels), 0.0F);
    for (uint64_t j = 0; j < span.segments; ++j) {
        transform(rows, span, channels, j);
        segment_power.keep_larger(channels, power.data());
    }
}

void WelchEngine::Scratch::rows_of_segments(const SampleRows& rows, const BlockSpan& span,
                                            TransformChannels channels, float* const* values) {
    const size_t bins = parameters.bins(stream.geometry.is_complex());
    for (uint64_t j = 0; j < span.segments; ++j) {
        std::fill_n(power.data(), segment_power.width(channels), 0.0F);
        transform(rows, span, channels, j);
        segment_power.add_to(channels, power.data());
        segment_power.finish(channels, power.data(), 1.0, values[0] + j * bins,
                             channels.is_pair ? values[1] + j * bins : nullptr);
    }
}

void WelchEngine::Scratch::median(const SampleRows& rows, const BlockSpan& span,
                                  TransformChannels channels) {
    const size_t width = segment_power.width(channels);
    for (uint64_t j = 0; j < span.segments; ++j) {
        float* const row = median_rows.data() + j * width;
        std::fill_n(row, width, 0.0F);
        transform(rows, span, channels, j);
        segment_power.add_to(channels, row);
    }
    for (size_t i = 0; i < width; i += kColumns) {
        median_of_columns(i, std::min(kColumns, width - i), width, span.segments);
    }
}

void WelchEngine::Scratch::median_of_columns(size_t first, size_t columns, size_t width,
                                             uint64_t segments) {
    for (uint64_t j = 0; j < segments; ++j) {
        const float* const row = median_rows.data() + j * width + first;
        for (size_t i = 0; i < columns; ++i) {
            median_column[i * segments + j] = row[i];
        }
    }
    for (size_t i = 0; i < columns; ++i) {
        power[first + i] = median_in_place({median_column.data() + i * segments, segments});
    }
}

}  // namespace echelle
