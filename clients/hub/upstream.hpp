// The feed that a hub reads: a SUB socket that finds its way back when the feed goes and comes.
//
// Owned and called by the hub's only thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "clients/hub/hub_options.hpp"

namespace echelle {

class Upstream {
  public:
    // What happens to the connection.
    enum class Change { connected, lost, refused };

    // Connects; the feed need not be there yet. Throws UsageError when endpoint or keys cannot be
    // used.
    Upstream(zmq::context_t& context, const HubOptions& options);
    ~Upstream();
    Upstream(const Upstream&) = delete;
    Upstream& operator=(const Upstream&) = delete;

    // Both to be polled for reading.
    zmq::socket_t& socket() { return socket_; }
    zmq::socket_t& monitor() { return monitor_; }

    // The parts of the next message, at most three of them, or false when none is there.
    bool receive(std::vector<zmq::message_t>& parts);
    // Calls `told` with each change that has come since.
    void handle_changes(const std::function<void(Change)>& told);
    bool is_connected() const { return connected_; }

  private:
    void use_keys(const HubOptions& options);
    void watch();

    zmq::socket_t socket_;
    zmq::socket_t monitor_;
    bool connected_ = false;
};

}  // namespace echelle
