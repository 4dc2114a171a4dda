// Who subscribes to what, so that nothing is made that nobody wants, and no subscriber can hold
// more than a bounded table. Topics: docs/feed.md.
//
// Owned by the thread that owns the feed's socket; wants_channel() and the other questions of that
// kind are for any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace echelle {

// The encodings of a spectrum, each with its topic.
enum class SpectrumTopic : uint8_t { psd, psd16, psd8 };
inline constexpr size_t spectrum_topics = 3;
inline constexpr std::array<std::string_view, spectrum_topics> spectrum_topic_names{
    "psd/", "psd16/", "psd8/"};

// The other families of topics.
enum class TextTopic : uint8_t { hello, ring, event, stat };
inline constexpr size_t text_topics = 4;
inline constexpr std::array<std::string_view, text_topics> text_topic_names{"hello/", "ring/",
                                                                            "event/", "stat/"};

// "psd/00007": at least five digits.
std::string spectrum_topic(SpectrumTopic topic, uint32_t channel);

// What may be subscribed to at most.
struct FeedLimits {
    size_t connections = 1000;
    size_t topics_of_connection = 10'000;
    size_t topics = 100'000;  // of all connections together
    size_t topic_bytes = 255;
};

class FeedInterest {
  public:
    // `channels` 0: only the limits and counts are of interest.
    FeedInterest(uint32_t channels, const FeedLimits& limits);

    // A connection, by its descriptor's number, has come. False: it is one too many.
    bool connected(int connection);
    // It has gone, with its subscriptions.
    void disconnected(int connection);

    enum class Answer {
        taken,
        known,    // this connection had it already, or had it not when it was to be removed
        unknown,  // of a connection that has gone
        refused,  // beyond a limit: the connection is to be closed
    };
    Answer subscribe(int connection, std::string_view prefix);
    Answer unsubscribe(int connection, std::string_view prefix);

    size_t connections() const { return connections_.size(); }
    size_t subscriptions() const { return subscriptions_; }

    // ---- the feed's thread
    bool wants(SpectrumTopic topic, uint32_t channel) const;
    // Somebody wants spectra in messages.
    bool wants_spectra() const { return spectrum_subscriptions_ > 0; }

    // ---- any thread
    // Somebody wants the channel's spectra in whichever encoding, or in the ring.
    bool wants_channel(uint32_t channel) const {
        return wanted_[channel].load(std::memory_order_relaxed);
    }
    bool wants(TextTopic topic) const {
        return texts_[static_cast<size_t>(topic)].load(std::memory_order_relaxed) > 0;
    }

  private:
    using Topics = std::set<std::string, std::less<>>;
    struct Channels {
        uint32_t first = 0;
        uint32_t end = 0;
    };
    // Counts `prefix` once more, or once less, wherever it matches.
    void count(std::string_view prefix, int32_t change);
    Channels channels_matching(std::string_view digits) const;
    void refresh(Channels range);

    FeedLimits limits_;
    uint32_t channels_;
    std::unordered_map<int, Topics> connections_;
    size_t subscriptions_ = 0;
    int64_t spectrum_subscriptions_ = 0;  // a prefix counts once for each topic that it matches
    // How many subscriptions match, of every channel's topics and of one channel's.
    std::array<int32_t, spectrum_topics> all_channels_{};
    std::array<std::vector<int32_t>, spectrum_topics> one_channel_;
    std::array<std::atomic<int32_t>, text_topics> texts_{};
    std::unique_ptr<std::atomic<bool>[]> wanted_;
};

}  // namespace echelle
