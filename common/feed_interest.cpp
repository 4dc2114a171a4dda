#include "common/feed_interest.hpp"

#include <algorithm>

namespace echelle {
namespace {

constexpr size_t channel_digits = 5;
constexpr uint32_t most_of_five_digits = 100'000;

size_t index_of(SpectrumTopic topic) {
    return static_cast<size_t>(topic);
}

}  // namespace

std::string spectrum_topic(SpectrumTopic topic, uint32_t channel) {
    const std::string number = std::to_string(channel);
    std::string text(spectrum_topic_names[index_of(topic)]);
    text.append(channel_digits - std::min(channel_digits, number.size()), '0');
    return text + number;
}

FeedInterest::FeedInterest(uint32_t channels, const FeedLimits& limits)
    : limits_(limits),
      channels_(channels),
      wanted_(std::make_unique<std::atomic<bool>[]>(channels)) {
    for (auto& counts : one_channel_) {
        counts.assign(channels, 0);
    }
}

bool FeedInterest::connected(int connection) {
    // The number may be of one whose end was not told.
    disconnected(connection);
    if (connections_.size() >= limits_.connections) {
        return false;
    }
    connections_.try_emplace(connection);
    return true;
}

void FeedInterest::disconnected(int connection) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) {
        return;
    }
    for (const std::string& prefix : found->second) {
        count(prefix, -1);
    }
    subscriptions_ -= found->second.size();
    connections_.erase(found);
}

FeedInterest::Answer FeedInterest::subscribe(int connection, std::string_view prefix) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) {
        return Answer::unknown;
    }
    Topics& topics = found->second;
    if (topics.contains(prefix)) {
        return Answer::known;
    }
    if (prefix.size() > limits_.topic_bytes || topics.size() >= limits_.topics_of_connection ||
        subscriptions_ >= limits_.topics) {
        return Answer::refused;
    }
    topics.emplace(prefix);
    ++subscriptions_;
    count(prefix, 1);
    return Answer::taken;
}

FeedInterest::Answer FeedInterest::unsubscribe(int connection, std::string_view prefix) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) {
        return Answer::unknown;
    }
    const auto topic = found->second.find(prefix);
    if (topic == found->second.end()) {
        return Answer::known;
    }
    found->second.erase(topic);
    --subscriptions_;
    count(prefix, -1);
    return Answer::taken;
}

bool FeedInterest::wants(SpectrumTopic topic, uint32_t channel) const {
    return all_channels_[index_of(topic)] > 0 || one_channel_[index_of(topic)][channel] > 0;
}

// The channels whose five digits begin with these.
FeedInterest::Channels FeedInterest::channels_matching(std::string_view digits) const {
    if (channels_ > most_of_five_digits) {
        return {0, channels_};  // more is made than wanted; ZeroMQ sends what was asked for
    }
    if (digits.size() > channel_digits ||
        digits.find_first_not_of("0123456789") != std::string_view::npos) {
        return {};
    }
    uint32_t first = 0;
    uint32_t count = 1;
    for (size_t i = 0; i < channel_digits; ++i) {
        first = 10 * first + (i < digits.size() ? static_cast<uint32_t>(digits[i] - '0') : 0);
        count *= i < digits.size() ? 1 : 10;
    }
    return {std::min(first, channels_), std::min(first + count, channels_)};
}

void FeedInterest::count(std::string_view prefix, int32_t change) {
    for (size_t topic = 0; topic < spectrum_topics; ++topic) {
        const std::string_view name = spectrum_topic_names[topic];
        if (name.starts_with(prefix)) {
            spectrum_subscriptions_ += change;
            all_channels_[topic] += change;
            refresh({0, channels_});
        } else if (prefix.starts_with(name)) {
            spectrum_subscriptions_ += change;
            const Channels range = channels_matching(prefix.substr(name.size()));
            for (uint32_t channel = range.first; channel < range.end; ++channel) {
                one_channel_[topic][channel] += change;
            }
            refresh(range);
        }
    }
    for (size_t topic = 0; topic < text_topics; ++topic) {
        const std::string_view name = text_topic_names[topic];
        if (name.starts_with(prefix) || prefix.starts_with(name)) {
            texts_[topic].fetch_add(change, std::memory_order_relaxed);
            if (topic == static_cast<size_t>(TextTopic::ring)) {
                refresh({0, channels_});
            }
        }
    }
}

void FeedInterest::refresh(Channels range) {
    const bool all =
        wants(TextTopic::ring) || std::any_of(all_channels_.begin(), all_channels_.end(),
                                              [](int32_t count) { return count > 0; });
    for (uint32_t channel = range.first; channel < range.end; ++channel) {
        const bool one = std::any_of(one_channel_.begin(), one_channel_.end(),
                                     [channel](const auto& counts) { return counts[channel] > 0; });
        wanted_[channel].store(all || one, std::memory_order_relaxed);
    }
}

}  // namespace echelle
