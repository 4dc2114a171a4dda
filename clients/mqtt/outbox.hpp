// What is to be published and is not delivered yet: a queue that is bounded in messages and in
// bytes, and the books of everything that ever went into it.
//
// One thread puts messages in (push), one takes them out and settles them: the connection to the
// broker, from take() to delivered(), drop() or put_back(). Every message is counted exactly once:
//     made = delivered + all of dropped + waiting + in flight.
// Where the queue is full the oldest message that is not on its way makes room. A message that
// "latest wins" replaces one of its topic that still waits, in its place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/file_descriptor.hpp"

namespace echelle::mqtt {

struct OutgoingMessage {
    std::string topic;
    std::string payload;
    uint64_t sequence = 0;     // counts the messages of its topic from 0, those dropped included
    bool is_packet = false;    // not text: its sequence goes beside it
    bool latest_wins = false;  // a later one of its topic makes it worthless
};

// Why a message was not delivered.
enum class Drop : size_t {
    replaced,    // a later one of its topic came while it waited
    queue_full,  // the broker took less than was made
    too_large,   // larger than MQTT or the broker allows, or than the whole queue
    refused,     // the broker answered with an error
    stopped      // still there at the end
};
inline constexpr size_t drop_reasons = 5;
std::string_view name_of(Drop reason);

struct OutboxBooks {
    uint64_t made = 0;
    uint64_t delivered = 0;  // QoS 0: written to the broker's connection; QoS 1: acknowledged
    std::array<uint64_t, drop_reasons> dropped{};
    uint64_t waiting = 0;
    uint64_t in_flight = 0;
    uint64_t repeated = 0;  // put back after a connection was lost (not in the sum)
    uint64_t bytes = 0;     // of topics and payloads, waiting and in flight
    uint64_t most_messages = 0;
    uint64_t most_bytes = 0;
};

struct OutboxLimits {  // of what waits and what is in flight together
    size_t messages = 10'000;
    size_t bytes = size_t{64} << 20;
};

class Outbox {
  public:
    // Throws RunError where the kernel gives no descriptor.
    explicit Outbox(OutboxLimits limits);

    void push(OutgoingMessage message);

    struct Taken {
        uint64_t ticket = 0;
        const OutgoingMessage* message = nullptr;  // until it is settled
    };
    // The oldest message; it is in flight from now on. Nothing where none waits.
    std::optional<Taken> take();
    void delivered(uint64_t ticket);
    void drop(uint64_t ticket, Drop reason);
    // Everything in flight waits again, before the rest and in its old order.
    void put_back();

    // Whatever is there or comes later is dropped as stopped. Any thread.
    void close();

    // Readable when messages came into an empty queue. clear_news() before taking.
    int news_descriptor() const { return news_.get(); }
    void clear_news() const;

    OutboxBooks books() const;  // any thread

  private:
    using Waiting = std::list<OutgoingMessage>;

    bool replace_waiting(OutgoingMessage& message);
    bool make_room(size_t bytes);
    void append(OutgoingMessage message);
    void forget(Waiting::iterator at, Drop reason);
    void count_drop(Drop reason) { ++books_.dropped[static_cast<size_t>(reason)]; }
    std::optional<OutgoingMessage> settle(uint64_t ticket);

    const OutboxLimits limits_;
    FileDescriptor news_;
    mutable std::mutex mutex_;  // of all that follows
    Waiting waiting_;
    std::unordered_map<std::string, Waiting::iterator> replaceable_;  // by topic
    std::map<uint64_t, OutgoingMessage> in_flight_;                   // by ticket
    uint64_t next_ticket_ = 0;
    OutboxBooks books_;
    bool closed_ = false;
};

}  // namespace echelle::mqtt
