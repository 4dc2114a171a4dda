// The feed's XPUB socket, with what ZeroMQ leaves to its user: every subscription is looked at
// before it takes effect, a connection that asks for too much is closed, and it is counted when a
// subscriber's queue runs full.
//
// Owned and called by one thread: the feed's of a coordinator, the only one of a hub.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <zmq.hpp>

#include "common/curve_keys.hpp"
#include "common/feed_interest.hpp"

namespace echelle {

class FeedSocket {
  public:
    // Binds. `queue_messages`: room in each subscriber's queue. Throws UsageError when an endpoint
    // cannot be used.
    // `keys`: of the tcp endpoints; empty: they go without.
    FeedSocket(zmq::context_t& context, const std::vector<std::string>& endpoints,
               const CurveKeys& keys, int queue_messages, FeedInterest& interest);
    ~FeedSocket();
    FeedSocket(const FeedSocket&) = delete;
    FeedSocket& operator=(const FeedSocket&) = delete;

    // To be polled for reading.
    zmq::socket_t& socket() { return socket_; }
    zmq::socket_t& monitor() { return monitor_; }

    // Takes the connections and subscriptions that have come, some at a time; true when there were
    // any. `before` is called with each new subscription before it takes effect, `after` when it
    // has.
    using Told = std::function<void(std::string_view prefix)>;
    bool handle_subscribers(const Told& before, const Told& after);

    // Never waits: leaves those out whose queue is full. (libzmq tells that it ran full, and then
    // passes that subscriber over in silence until half of the queue is taken.)
    void send(std::string_view topic, zmq::message_t payload);

    uint64_t published() const { return published_; }
    uint64_t queue_full() const { return queue_full_; }
    uint64_t refused() const { return refused_; }
    size_t most_connections() const { return most_connections_; }

  private:
    void bind(const std::string& endpoint);
    void require_keys(const CurveKeys& keys);
    void watch_connections();
    bool handle_connections();
    bool handle_subscription(const Told& before, const Told& after);
    void subscribe(int connection, std::string_view prefix, const Told& before, const Told& after);
    void close_connection(int connection);
    void send_part(zmq::message_t& part, zmq::send_flags flags);

    zmq::socket_t socket_;
    zmq::socket_t monitor_;
    FeedInterest& interest_;
    std::vector<std::string> paths_;  // of ipc endpoints
    std::vector<uint16_t> ports_;     // of tcp endpoints
    uint64_t published_ = 0;
    uint64_t queue_full_ = 0;
    uint64_t refused_ = 0;
    size_t most_connections_ = 0;
};

}  // namespace echelle
