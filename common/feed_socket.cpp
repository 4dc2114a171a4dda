#include "common/feed_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/error.hpp"
#include "common/feed_endpoint.hpp"

namespace echelle {
namespace {

constexpr int linger_ms = 300;             // at the end, for the last spectra to get away
constexpr int64_t longest_message = 1024;  // from a subscriber; CURVE's handshake needs some 500
constexpr int handshake_ms = 2000;
constexpr int most_at_once = 256;  // subscriptions; then spectra have their turn again
constexpr int waiting_connections = 128;
constexpr const char* monitor_endpoint = "inproc://feed-connections";
constexpr int watched_events =
    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

// The connection that a message of subscription came by, or -1: libzmq's own, of one that has gone.
int connection_of(zmq::message_t& message) {
    return zmq_msg_get(message.handle(), ZMQ_SRCFD);
}

uint16_t port_of(const std::string& endpoint) {
    return static_cast<uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
}

}  // namespace

FeedSocket::FeedSocket(zmq::context_t& context, const std::vector<std::string>& endpoints,
                       const CurveKeys& keys, int queue_messages, FeedInterest& interest)
    : socket_(context, zmq::socket_type::xpub),
      monitor_(context, zmq::socket_type::pair),
      interest_(interest) {
    socket_.set(zmq::sockopt::linger, linger_ms);
    socket_.set(zmq::sockopt::sndhwm, queue_messages);
    socket_.set(zmq::sockopt::maxmsgsize, longest_message);
    socket_.set(zmq::sockopt::handshake_ivl, handshake_ms);
    socket_.set(zmq::sockopt::backlog, waiting_connections);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    // Subscriptions take effect when we say so.
    socket_.set(zmq::sockopt::xpub_manual, true);
    // A full queue is told (EAGAIN) instead of passed over in silence.
    socket_.set(zmq::sockopt::xpub_nodrop, true);
    watch_connections();
    // libzmq takes the options of the moment for each endpoint that is bound.
    for (const std::string& endpoint : endpoints) {
        if (!is_tcp(endpoint)) {
            bind(endpoint);
        }
    }
    if (!keys.secret_key.empty()) {
        require_keys(keys);
    }
    for (const std::string& endpoint : endpoints) {
        if (is_tcp(endpoint)) {
            bind(endpoint);
        }
    }
}

void FeedSocket::require_keys(const CurveKeys& keys) {
    socket_.set(zmq::sockopt::curve_server, true);
    socket_.set(zmq::sockopt::curve_secretkey, keys.secret_key);
    socket_.set(zmq::sockopt::zap_domain, "echelle-feed");
}

FeedSocket::~FeedSocket() {
    zmq_socket_monitor(socket_.handle(), nullptr, 0);
}

void FeedSocket::watch_connections() {
    if (zmq_socket_monitor(socket_.handle(), monitor_endpoint, watched_events) != 0) {
        throw RunError(std::string("cannot watch the feed's connections: ") + zmq_strerror(errno));
    }
    monitor_.set(zmq::sockopt::linger, 0);
    monitor_.connect(monitor_endpoint);
}

void FeedSocket::bind(const std::string& endpoint) {
    try {
        socket_.bind(endpoint);
        const auto bound = socket_.get(zmq::sockopt::last_endpoint);
        if (bound.starts_with("ipc://")) {
            paths_.push_back(bound.substr(6));
        } else {
            ports_.push_back(port_of(bound));
        }
    } catch (const zmq::error_t& error) {
        throw UsageError("the feed's endpoint '" + endpoint + "' cannot be used: " + error.what());
    }
}

bool FeedSocket::handle_subscribers(const Told& before, const Told& after) {
    bool any = false;
    for (int i = 0; i < most_at_once; ++i) {
        // Connections first: a subscription of one is told after its coming.
        const bool connections = handle_connections();
        const bool subscription = handle_subscription(before, after);
        if (!connections && !subscription) {
            break;
        }
        any = true;
    }
    return any;
}

// Events of zmq_socket_monitor(3): a part with u16 event and u32 value, and one with the endpoint.
bool FeedSocket::handle_connections() {
    bool any = false;
    zmq::message_t event;
    zmq::message_t endpoint;
    while (monitor_.recv(event, zmq::recv_flags::dontwait)) {
        any = true;
        if (event.more()) {
            static_cast<void>(monitor_.recv(endpoint, zmq::recv_flags::none));
        }
        uint16_t kind = 0;
        int32_t value = 0;
        if (event.size() < sizeof kind + sizeof value) {
            continue;
        }
        std::memcpy(&kind, event.data(), sizeof kind);
        std::memcpy(&value, static_cast<const char*>(event.data()) + sizeof kind, sizeof value);
        if (kind == ZMQ_EVENT_ACCEPTED) {
            if (!interest_.connected(value)) {
                close_connection(value);
            }
            most_connections_ = std::max(most_connections_, interest_.connections());
        } else if (kind == ZMQ_EVENT_DISCONNECTED) {
            interest_.disconnected(value);
        } else {
            ++refused_;  // a handshake that failed
        }
    }
    return any;
}

bool FeedSocket::handle_subscription(const Told& before, const Told& after) {
    zmq::message_t message;
    if (!socket_.recv(message, zmq::recv_flags::dontwait)) {
        return false;
    }
    const std::string_view text = message.to_string_view();
    // Whatever else an XSUB peer sends upstream is of no interest.
    const bool is_subscription = !message.more() && !text.empty() && (text[0] == 0 || text[0] == 1);
    const int connection = is_subscription ? connection_of(message) : -1;
    if (connection < 0) {
        return true;
    }
    const std::string_view prefix = text.substr(1);
    if (text[0] == 1) {
        subscribe(connection, prefix, before, after);
    } else if (interest_.unsubscribe(connection, prefix) != FeedInterest::Answer::unknown) {
        zmq_setsockopt(socket_.handle(), ZMQ_UNSUBSCRIBE, prefix.data(), prefix.size());
    }
    return true;
}

void FeedSocket::subscribe(int connection, std::string_view prefix, const Told& before,
                           const Told& after) {
    switch (interest_.subscribe(connection, prefix)) {
        case FeedInterest::Answer::refused:
            close_connection(connection);
            return;
        case FeedInterest::Answer::unknown:
            return;
        case FeedInterest::Answer::known:
            return;
        case FeedInterest::Answer::taken:
            break;
    }
    before(prefix);
    // Of the connection whose message was received last.
    zmq_setsockopt(socket_.handle(), ZMQ_SUBSCRIBE, prefix.data(), prefix.size());
    after(prefix);
}

// libzmq cannot close one connection of many: its descriptor is shut down, which libzmq takes for
// the peer's end. The descriptor may have been closed already, and its number used for another
// socket: only one that was accepted at an endpoint of ours is touched.
void FeedSocket::close_connection(int connection) {
    ++refused_;
    interest_.disconnected(connection);
    union {
        sockaddr any;
        sockaddr_un local;
        sockaddr_in four;
        sockaddr_in6 six;
    } address{};
    socklen_t bytes = sizeof address;
    if (getsockname(connection, &address.any, &bytes) != 0) {
        return;
    }
    bool is_ours = false;
    if (address.any.sa_family == AF_UNIX) {
        is_ours = std::find(paths_.begin(), paths_.end(), address.local.sun_path) != paths_.end();
    } else if (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6) {
        const uint16_t port =
            ntohs(address.any.sa_family == AF_INET ? address.four.sin_port : address.six.sin6_port);
        is_ours = std::find(ports_.begin(), ports_.end(), port) != ports_.end();
    }
    if (is_ours) {
        shutdown(connection, SHUT_RDWR);
    }
}

void FeedSocket::send(std::string_view topic, zmq::message_t payload) {
    zmq::message_t first(topic.data(), topic.size());
    const uint64_t full_before = queue_full_;
    send_part(first, zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    send_part(payload, zmq::send_flags::dontwait);
    queue_full_ = std::min(queue_full_, full_before + 1);  // a message, not its parts
    ++published_;
}

void FeedSocket::send_part(zmq::message_t& part, zmq::send_flags flags) {
    if (socket_.send(part, flags)) {
        return;
    }
    // Somebody's queue has run full: to the others, then.
    ++queue_full_;
    socket_.set(zmq::sockopt::xpub_nodrop, false);
    static_cast<void>(socket_.send(part, flags));
    socket_.set(zmq::sockopt::xpub_nodrop, true);
}

}  // namespace echelle
