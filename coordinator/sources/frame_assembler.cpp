#include "coordinator/sources/frame_assembler.hpp"

#include <algorithm>
#include <cstring>

#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr int64_t wait_slice_ns = 100'000'000;

uint64_t saturated_sum(uint64_t a, uint64_t b) {
    return b < UINT64_MAX - a ? a + b : UINT64_MAX;
}

}  // namespace

void copy_values(std::span<const std::byte> from, std::span<int16_t> to, bool swap) {
    ECHELLE_INVARIANT(from.size() == to.size_bytes());
    if (!swap) {
        std::ranges::copy(from, std::as_writable_bytes(to).begin());
        return;
    }
    // Four values at a time, as one word.
    constexpr uint64_t low_bytes = 0x00FF'00FF'00FF'00FF;
    size_t done = 0;
    for (; done + sizeof(uint64_t) <= from.size(); done += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, from.data() + done, sizeof word);
        word = (word & low_bytes) << 8 | (word >> 8 & low_bytes);
        std::memcpy(reinterpret_cast<std::byte*>(to.data()) + done, &word, sizeof word);
    }
    for (; done < from.size(); done += sizeof(int16_t)) {
        uint16_t value = 0;
        std::memcpy(&value, from.data() + done, sizeof value);
        to[done / sizeof value] = static_cast<int16_t>(__builtin_bswap16(value));
    }
}

FrameAssembler::FrameAssembler(RingWriter& writer, OverrunPolicy policy,
                               const std::atomic<bool>& stop, bool swap)
    : writer_(writer), policy_(policy), stop_(stop), swap_(swap) {
    const FrameGeometry geometry = writer.ring().stream().geometry;
    ECHELLE_INVARIANT(geometry.layout == Layout::sample_major || geometry.channels == 1);
    samples_per_frame_ = geometry.samples;
    values_per_sample_ = size_t{geometry.channels} * geometry.values_per_sample();
}

void FrameAssembler::select(uint64_t from, uint64_t count) {
    from_ = from;
    to_ = saturated_sum(from, count);
}

void FrameAssembler::begin(uint64_t first_sample) {
    start_ = first_sample;
    position_ = first_sample;
    from_ = saturated_sum(first_sample, from_);
    to_ = saturated_sum(first_sample, to_);
}

// Passes over what lies before the selected ones; leaves out what lies behind.
std::span<const std::byte> FrameAssembler::selected(std::span<const std::byte> samples) {
    const size_t sample_bytes = values_per_sample_ * sizeof(int16_t);
    if (position_ < from_) {
        const uint64_t before =
            std::min<uint64_t>(samples.size() / sample_bytes, from_ - position_);
        samples = samples.subspan(before * sample_bytes);
        position_ += before;
        start_ = position_;
    }
    const uint64_t left = to_ - std::min(to_, position_);
    return left < samples.size() / sample_bytes ? samples.first(left * sample_bytes) : samples;
}

bool FrameAssembler::open_frame() {
    if (!frame_.empty()) {
        return true;
    }
    while (policy_ == OverrunPolicy::block && !writer_.wait_for_room(wait_slice_ns)) {
        if (stop_.load(std::memory_order_relaxed)) {
            return false;
        }
    }
    frame_ = writer_.begin();
    filled_ = 0;
    return true;
}

void FrameAssembler::append(std::span<const std::byte> samples) {
    const size_t sample_bytes = values_per_sample_ * sizeof(int16_t);
    samples = selected(samples);
    while (!samples.empty()) {
        if (!open_frame()) {
            return;
        }
        const size_t count =
            std::min<size_t>(samples.size() / sample_bytes, samples_per_frame_ - filled_);
        copy_values(samples.first(count * sample_bytes),
                    frame_.subspan(filled_ * values_per_sample_, count * values_per_sample_),
                    swap_);
        samples = samples.subspan(count * sample_bytes);
        filled_ += static_cast<uint32_t>(count);
        position_ += count;
        if (filled_ == samples_per_frame_) {
            publish();
        }
    }
}

void FrameAssembler::skip(uint64_t samples) {
    if (position_ < from_) {
        position_ += samples;
        start_ = position_;
        return;
    }
    finish();
    position_ += samples;
    gap_ = true;
    next_index_ = std::max(next_index_, (position_ - start_) / samples_per_frame_);
}

void FrameAssembler::finish() {
    if (!frame_.empty()) {
        publish();
    }
}

void FrameAssembler::publish() {
    FrameStamp stamp;
    stamp.frame_index = next_index_++;
    stamp.first_sample = position_ - filled_;
    stamp.valid_samples = filled_;
    stamp.flags = gap_ ? frame_gap_before : 0U;
    if (wait_until_due_) {
        wait_until_due_(position_);
    }
    writer_.commit(stamp);
    frames_.written += 1;
    frames_.cut_short += filled_ < samples_per_frame_ ? 1 : 0;
    frame_ = {};
    gap_ = false;
}

}  // namespace echelle
