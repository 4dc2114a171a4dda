#include "worker/sample_rows.hpp"

#include <bit>

#include "worker/kernels.hpp"

namespace echelle {
namespace {

constexpr size_t kCacheLineValues = 64 / sizeof(int16_t);
// Rows for one group of channels should stay in a core's second-level cache.
constexpr size_t kScratchValues = size_t{1} << 19;

// A row's length, with the start of successive rows one cache line further within a page: rows a
// multiple of 4 KiB apart would all fall on the same lines of the first-level cache.
size_t padded_row(size_t values) {
    constexpr size_t page_values = 4096 / sizeof(int16_t);
    return (values + page_values - 1) / page_values * page_values + kCacheLineValues;
}

// Into the second level: it is wanted after some transforms, which fill the first. The empty
// statement keeps GCC 12 from taking a function that only prefetches for one that does nothing.
void ask_for_line(const int16_t* samples) {
    __builtin_prefetch(samples, 0, 2);
    asm volatile("" : : "r"(samples));
}

uint32_t channels_in_group(const FrameGeometry& geometry, size_t row_values) {
    const size_t in_line = kCacheLineValues / geometry.values_per_sample();
    const size_t affordable = std::bit_floor(std::max<size_t>(kScratchValues / row_values, 1));
    return static_cast<uint32_t>(std::clamp<size_t>(affordable, 2, in_line));
}

}  // namespace

const int16_t* SampleRows::at(uint64_t frame, uint32_t channel, uint64_t offset) const {
    const size_t within = (channel - first_channel) * row_values + offset * sample_values;
    return (transposed != nullptr ? transposed : frames[frame].samples) + within;
}

void SampleRows::prefetch(uint32_t channel, uint64_t begin, uint64_t end) const {
    if (transposed != nullptr) {
        return;
    }
    for_each_run(begin, end, [&](uint64_t frame, uint64_t offset, size_t count) {
        const int16_t* const samples = at(frame, channel, offset);
        for (size_t i = 0; i < count * sample_values; i += kCacheLineValues) {
            ask_for_line(samples + i);
        }
    });
}

RowReader::RowReader(const FrameGeometry& geometry, uint32_t max_channels, uint32_t max_frames)
    : geometry_(geometry) {
    if (geometry.layout == Layout::channel_major) {
        row_values_ = size_t{geometry.samples} * geometry.values_per_sample();
        return;
    }
    row_values_ = padded_row(size_t{max_frames} * geometry.samples * geometry.values_per_sample());
    group_channels_ = channels_in_group(geometry, row_values_);
    scratch_ = AlignedArray<int16_t>(std::min(group_channels_, max_channels) * row_values_);
}

uint32_t RowReader::group_end(uint32_t first, uint32_t end) const {
    if (geometry_.layout == Layout::channel_major) {
        return end;
    }
    return std::min(end, (first / group_channels_ + 1) * group_channels_);
}

SampleRows RowReader::rows(std::span<const FrameView> frames, uint32_t first, uint32_t end,
                           uint64_t begin, uint64_t samples) {
    SampleRows rows;
    rows.frames = frames.data();
    rows.row_values = row_values_;
    rows.sample_values = geometry_.values_per_sample();
    rows.frame_samples = geometry_.samples;
    rows.end_channel = end;
    if (geometry_.layout == Layout::sample_major) {
        transpose(frames, first, end - first, begin);
        rows.transposed = scratch_.data();
        rows.frame_samples = std::max<uint64_t>(samples, 1);
        rows.first_channel = first;
    }
    return rows;
}

void RowReader::transpose(std::span<const FrameView> frames, uint32_t first, uint32_t channels,
                          uint64_t begin) {
    const size_t values = geometry_.values_per_sample();
    const size_t sample_stride = geometry_.channels * values;
    const auto transpose_run =
        geometry_.is_complex() ? kernels::transpose_complex : kernels::transpose_real;
    uint64_t position = 0;
    for (const FrameView& frame : frames) {
        const uint64_t frame_end = position + frame.valid_samples;
        if (frame_end > begin) {
            const uint64_t from = std::max(begin, position);
            const int16_t* samples =
                frame.samples + (from - position) * sample_stride + first * values;
            transpose_run(samples, sample_stride, channels, frame_end - from,
                          scratch_.data() + from * values, row_values_);
        }
        position = frame_end;
    }
}

}  // namespace echelle
