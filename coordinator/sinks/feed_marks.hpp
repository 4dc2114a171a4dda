// What the collector noticed about spectra on the way past (gaps, over-range samples), on its way
// to becoming event/gap and event/over-range (docs/feed.md).
//
// A bounded queue from one thread (the collector) to one other (the feed's), without locks; what
// finds no room is counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace echelle {

struct FeedMark {
    uint32_t channel = 0;
    uint16_t flags = 0;  // PacketFlag
    uint64_t first_sample = 0;
    uint32_t over_range_count = 0;
};

class FeedMarkQueue {
  public:
    // The collector's end.
    void push(const FeedMark& mark);
    // The feed's end.
    std::optional<FeedMark> pop();
    // Any thread.
    uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t room = 4096;
    std::array<FeedMark, room> marks_{};
    std::atomic<uint64_t> pushed_{0};
    std::atomic<uint64_t> popped_{0};
    std::atomic<uint64_t> lost_{0};
};

// Puts the marks of one kind together into events, ten a second at most. The feed's thread.
class FeedEventGatherer {
  public:
    // `flag`: the PacketFlag of its kind.
    explicit FeedEventGatherer(uint16_t flag) : flag_(flag) {}
    void add(const FeedMark& mark);
    // The event's JSON when there is something to tell and it is time; with `now_is_the_end` at
    // once.
    std::optional<std::string> take(int64_t now_ns, bool now_is_the_end);

  private:
    uint16_t flag_;
    uint64_t spectra_ = 0;
    uint64_t samples_ = 0;
    uint64_t first_sample_ = 0;
    std::vector<uint32_t> channels_;   // the first 64 different ones
    uint64_t sequence_ = 0;            // of the next event
    int64_t told_ns_ = INT64_MIN / 2;  // monotonic
};

}  // namespace echelle
