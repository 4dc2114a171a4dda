#include "clients/hub/upstream.hpp"

#include <cerrno>
#include <cstring>

#include "common/curve_keys.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr int64_t longest_message = int64_t{64} << 20;
constexpr int first_retry_ms = 100;
constexpr int last_retry_ms = 2000;
// A machine that vanished says nothing: asked for a sign of life, in ZMTP's own way.
constexpr int heartbeat_ms = 2000;
constexpr int heartbeat_patience_ms = 10'000;
constexpr const char* monitor_endpoint = "inproc://upstream-connection";
constexpr int watched_events =
    ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr size_t most_parts = 3;  // one more than a feed's messages have

}  // namespace

Upstream::Upstream(zmq::context_t& context, const HubOptions& options)
    : socket_(context, zmq::socket_type::sub), monitor_(context, zmq::socket_type::pair) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvhwm, options.queue_messages);
    socket_.set(zmq::sockopt::maxmsgsize, longest_message);
    socket_.set(zmq::sockopt::reconnect_ivl, first_retry_ms);
    socket_.set(zmq::sockopt::reconnect_ivl_max, last_retry_ms);
    socket_.set(zmq::sockopt::heartbeat_ivl, heartbeat_ms);
    socket_.set(zmq::sockopt::heartbeat_timeout, heartbeat_patience_ms);
    if (!options.from_key.empty()) {
        use_keys(options);
    }
    watch();
    // In this order: who subscribes to hello/ first has the description before any spectrum.
    socket_.set(zmq::sockopt::subscribe, "hello/");
    socket_.set(zmq::sockopt::subscribe, "event/end");
    for (const std::string& topic : options.topics) {
        socket_.set(zmq::sockopt::subscribe, topic);
    }
    try {
        socket_.connect(options.from_endpoint);
    } catch (const zmq::error_t& error) {
        throw UsageError("--from '" + options.from + "' cannot be used: " + error.what());
    }
}

Upstream::~Upstream() {
    zmq_socket_monitor(socket_.handle(), nullptr, 0);
}

void Upstream::use_keys(const HubOptions& options) {
    const auto servers = read_public_keys(options.from_server);
    if (servers.size() != 1) {
        throw UsageError("--from-server " + options.from_server + " has " +
                         std::to_string(servers.size()) +
                         " public keys: name the .pub file of the feed that is read");
    }
    const CurveKeys own = read_secret_keys(options.from_key);
    const std::string& server = *servers.begin();
    if (zmq_setsockopt(socket_.handle(), ZMQ_CURVE_SERVERKEY, server.data(), server.size()) != 0) {
        throw RunError(std::string("cannot use keys: ") + zmq_strerror(errno));
    }
    socket_.set(zmq::sockopt::curve_publickey, own.public_key);
    socket_.set(zmq::sockopt::curve_secretkey, own.secret_key);
}

void Upstream::watch() {
    if (zmq_socket_monitor(socket_.handle(), monitor_endpoint, watched_events) != 0) {
        throw RunError(std::string("cannot watch the connection to --from: ") +
                       zmq_strerror(errno));
    }
    monitor_.set(zmq::sockopt::linger, 0);
    monitor_.connect(monitor_endpoint);
}

bool Upstream::receive(std::vector<zmq::message_t>& parts) {
    parts.clear();
    zmq::message_t part;
    while (socket_.recv(part, zmq::recv_flags::dontwait)) {
        const bool more = part.more();
        if (parts.size() < most_parts) {
            parts.push_back(std::move(part));
        }
        if (!more) {
            return true;
        }
        part.rebuild();
    }
    return false;
}

// Events of zmq_socket_monitor(3): a part with u16 event and u32 value, and one with the endpoint.
void Upstream::handle_changes(const std::function<void(Change)>& told) {
    zmq::message_t event;
    zmq::message_t endpoint;
    while (monitor_.recv(event, zmq::recv_flags::dontwait)) {
        if (event.more()) {
            static_cast<void>(monitor_.recv(endpoint, zmq::recv_flags::none));
        }
        uint16_t kind = 0;
        if (event.size() < sizeof kind) {
            continue;
        }
        std::memcpy(&kind, event.data(), sizeof kind);
        if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            connected_ = true;
            told(Change::connected);
        } else if (kind != ZMQ_EVENT_DISCONNECTED) {
            told(Change::refused);
        } else if (connected_) {
            connected_ = false;
            told(Change::lost);
        }
    }
}

}  // namespace echelle
