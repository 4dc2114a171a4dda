// Several VITA 49 streams as one: packets of the same time, one of each stream, become one packet
// of all their channels. What is missing in one stream is missing in all, since a frame has every
// channel; which stream it was is counted.
//
// All packets hold the same number of samples and say their time in samples (or picoseconds), so
// that the time tells which belong together. Knows bytes and times, nothing of sockets or files.
// Owned and called by the source's thread alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/rational.hpp"
#include "coordinator/sources/datagram.hpp"

namespace echelle {

// received = joined + duplicates + late + alone + those that wait for the others.
struct JoinedStreamCounts {
    uint32_t id = 0;
    uint64_t received = 0;    // packets of samples that have a place in time
    uint64_t joined = 0;      // came with those of all the others
    uint64_t duplicates = 0;  // came before
    uint64_t late = 0;        // those of the same time had been given up
    uint64_t alone = 0;       // another stream's packet of that time did not come in time
    uint64_t absent = 0;      // did not come, but another stream's packet of that time did
};

// `place.samples` lies in `samples`, the channels of the first stream before those of the second.
struct JoinedPacket {
    std::vector<std::byte> samples;
    PacketPlace place;
    int64_t arrival_ns = 0;  // of the last part
};

class StreamJoiner {
  public:
    // `layout` is that of all streams together, of whose channels each has as many. An incomplete
    // packet is given up when `most_open` others have been begun after it. At least one stream.
    StreamJoiner(const SampleLayout& layout, Rational rate, const std::vector<uint32_t>& ids,
                 uint32_t most_open);

    // A datagram that came in at that Unix time. A packet that is complete with it is appended.
    DatagramFault add(std::span<const std::byte> datagram, int64_t arrival_ns,
                      std::vector<JoinedPacket>& complete);
    // What is incomplete will not be complete any more.
    void flush();
    // Memory for packets to come.
    void recycle(std::vector<std::byte> samples) { spare_.push_back(std::move(samples)); }

    const std::vector<JoinedStreamCounts>& counts() const { return counts_; }
    // Which streams never came, although the others did so often; empty: none.
    std::string remark(uint64_t least = 1) const;

  private:
    struct Group {
        int64_t number = 0;
        JoinedPacket packet;
        std::vector<bool> has;  // by stream
        size_t parts = 0;
    };
    struct Closed {
        int64_t number = INT64_MIN;
        bool is_complete = false;
    };

    std::optional<size_t> stream_of(std::optional<uint32_t> id) const;
    std::optional<int64_t> number_at(uint64_t time, int64_t tolerance);
    bool refuse_known(int64_t number, JoinedStreamCounts& counts);
    Group& group_of(int64_t number);
    void put(std::span<const std::byte> part, size_t stream, Group& group) const;
    void give_up_oldest();
    Closed& closed(int64_t number) {
        return closed_[static_cast<uint64_t>(number) % closed_.size()];
    }

    SampleLayout layout_;
    SampleLayout part_;  // of one stream
    Rational rate_;
    size_t most_open_;
    std::vector<JoinedStreamCounts> counts_;
    std::deque<Group> open_;  // in the order in which they were begun
    std::vector<std::vector<std::byte>> spare_;
    std::array<Closed, 1024> closed_{};  // the last ones of each place
    int64_t samples_per_packet_ = 0;     // 0: none has come
    int64_t last_number_ = 0;
    uint64_t last_time_ = 0;  // of that number
    uint64_t off_time_ = 0;   // of the last packet that lay between two numbers
    size_t off_run_ = 0;      // how many of those followed each other in step
};

}  // namespace echelle
