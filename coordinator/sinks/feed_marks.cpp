#include "coordinator/sinks/feed_marks.hpp"

#include <algorithm>

#include "common/clock.hpp"
#include "common/packet.hpp"

namespace echelle {
namespace {

constexpr size_t most_channels = 64;
constexpr int64_t pause_ns = 100'000'000;

}  // namespace

void FeedMarkQueue::push(const FeedMark& mark) {
    const uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) >= room) {
        lost_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    marks_[at % room] = mark;
    pushed_.store(at + 1, std::memory_order_release);
}

std::optional<FeedMark> FeedMarkQueue::pop() {
    const uint64_t at = popped_.load(std::memory_order_relaxed);
    if (at == pushed_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    const FeedMark mark = marks_[at % room];
    popped_.store(at + 1, std::memory_order_release);
    return mark;
}

void FeedEventGatherer::add(const FeedMark& mark) {
    if ((mark.flags & flag_) == 0) {
        return;
    }
    if (spectra_ == 0) {
        first_sample_ = mark.first_sample;
    }
    ++spectra_;
    samples_ += mark.over_range_count;
    if (channels_.size() < most_channels &&
        std::find(channels_.begin(), channels_.end(), mark.channel) == channels_.end()) {
        channels_.push_back(mark.channel);
    }
}

std::optional<std::string> FeedEventGatherer::take(int64_t now_ns, bool now_is_the_end) {
    if (spectra_ == 0 || (now_ns - told_ns_ < pause_ns && !now_is_the_end)) {
        return std::nullopt;
    }
    std::string channels;
    for (const uint32_t channel : channels_) {
        channels += (channels.empty() ? "" : ",") + std::to_string(channel);
    }
    std::string text = "{\"sequence\":" + std::to_string(sequence_++) +
                       ",\"at_ns\":" + std::to_string(realtime_ns()) +
                       ",\"spectra\":" + std::to_string(spectra_) + ",\"channels\":[" + channels +
                       "],\"first_sample\":" + std::to_string(first_sample_);
    if (flag_ == PacketFlag::over_range) {
        text += ",\"samples\":" + std::to_string(samples_);
    }
    spectra_ = 0;
    samples_ = 0;
    channels_.clear();
    told_ns_ = now_ns;
    return text + "}";
}

}  // namespace echelle
