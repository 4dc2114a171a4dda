#include "echelle/feed.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <unistd.h>
#include <zmq.h>

namespace echelle::client {
namespace {

constexpr int64_t longest_message = int64_t{64} << 20;

std::string topic_name(Coding coding) {
    switch (coding) {
        case Coding::float32:
            return "psd/";
        case Coding::float16:
            return "psd16/";
        case Coding::decibel8:
            return "psd8/";
    }
    throw std::invalid_argument("an unknown coding was asked for");
}

std::vector<std::string> topics_of(const SubscribeOptions& options) {
    // In this order: who subscribes to hello/ first has the description before any spectrum.
    std::vector<std::string> topics{"hello/", "event/end"};
    const std::string name = topic_name(options.coding);
    if (!options.channels) {
        topics.push_back(name);
    } else {
        for (const uint32_t channel : *options.channels) {
            std::array<char, 16> digits{};
            std::snprintf(digits.data(), digits.size(), "%05u", channel);
            topics.push_back(name + digits.data());
        }
    }
    topics.insert(topics.end(), options.topics.begin(), options.topics.end());
    return topics;
}

}  // namespace

struct Subscriber::Socket {
    void* context = zmq_ctx_new();
    void* socket = zmq_socket(context, ZMQ_SUB);

    Socket() = default;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() {
        zmq_close(socket);
        zmq_ctx_term(context);
    }

    void set(int option, const void* value, size_t bytes) const {
        if (zmq_setsockopt(socket, option, value, bytes) != 0) {
            throw FeedError(std::string("the feed's socket refuses an option: ") +
                            zmq_strerror(errno));
        }
    }
    void set(int option, int value) const { set(option, &value, sizeof value); }
    void set(int option, std::string_view value) const { set(option, value.data(), value.size()); }

    // Waits; false when nothing came in time.
    bool wait(std::chrono::milliseconds timeout) const {
        using Clock = std::chrono::steady_clock;
        const auto deadline = Clock::now() + timeout;
        zmq_pollitem_t item{socket, 0, ZMQ_POLLIN, 0};
        for (;;) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
            const long wait_ms = timeout.count() < 0 ? -1L : std::max<long>(0, left.count());
            const int found = zmq_poll(&item, 1, wait_ms);
            if (found > 0) {
                return true;
            }
            if (found < 0 && errno != EINTR) {
                throw FeedError(std::string("the feed cannot be waited for: ") +
                                zmq_strerror(errno));
            }
            if (found == 0) {
                return false;
            }
        }
    }

    // The parts of one message that is there.
    std::vector<std::vector<std::byte>> take() const {
        std::vector<std::vector<std::byte>> parts;
        bool more = true;
        while (more) {
            zmq_msg_t part;
            zmq_msg_init(&part);
            if (zmq_msg_recv(&part, socket, 0) < 0) {
                zmq_msg_close(&part);
                if (errno == EINTR) {
                    continue;
                }
                throw FeedError(std::string("the feed cannot be read: ") + zmq_strerror(errno));
            }
            const auto* bytes = static_cast<const std::byte*>(zmq_msg_data(&part));
            parts.emplace_back(bytes, bytes + zmq_msg_size(&part));
            more = zmq_msg_more(&part) != 0;
            zmq_msg_close(&part);
        }
        return parts;
    }
};

std::string feed_endpoint(const std::string& target) {
    if (target.find("://") != std::string::npos) {
        return target;
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && runtime[0] == '/' && access(runtime, W_OK) == 0) {
        return std::string("ipc://") + runtime + "/echelle/" + target + "/feed";
    }
    return "ipc:///tmp/echelle-" + std::to_string(getuid()) + "/" + target + "/feed";
}

std::string Message::text() const {
    std::string copied;
    for (const std::byte byte : payload) {
        copied.push_back(static_cast<char>(byte));
    }
    return copied;
}

Subscriber::Subscriber(const std::string& target, SubscribeOptions options)
    : socket_(std::make_unique<Socket>()),
      endpoint_(feed_endpoint(target)),
      timeout_(options.timeout) {
    socket_->set(ZMQ_LINGER, 0);
    socket_->set(ZMQ_RCVHWM, options.queue);
    socket_->set(ZMQ_MAXMSGSIZE, &longest_message, sizeof longest_message);
    if (!options.server_key.empty()) {
        socket_->set(ZMQ_CURVE_SERVERKEY, options.server_key);
        socket_->set(ZMQ_CURVE_PUBLICKEY, options.public_key);
        socket_->set(ZMQ_CURVE_SECRETKEY, options.secret_key);
    }
    if (zmq_connect(socket_->socket, endpoint_.c_str()) != 0) {
        throw FeedError("the feed " + endpoint_ + " cannot be used: " + zmq_strerror(errno));
    }
    for (const std::string& topic : topics_of(options)) {
        socket_->set(ZMQ_SUBSCRIBE, topic);
    }
}

Subscriber::~Subscriber() = default;
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;

// event/end passes a full queue by; but the coordinator removes its socket as well.
bool Subscriber::is_gone() const {
    constexpr std::string_view scheme = "ipc://";
    return !hello_.empty() && endpoint_.starts_with("ipc:///") &&
           access(endpoint_.c_str() + scheme.size(), F_OK) != 0;
}

void Subscriber::wait(std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds look(1000);
    const bool forever = timeout.count() < 0;
    const auto deadline = Clock::now() + timeout;
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (socket_->wait(forever ? look : std::clamp(left, std::chrono::milliseconds(0), look))) {
            return;
        }
        if (is_gone()) {
            ended_ = true;
            throw FeedEnded("the run at " + endpoint_ + " has ended");
        }
        if (!forever && Clock::now() >= deadline) {
            throw FeedTimeout("nothing came from " + endpoint_ + " in " +
                              std::to_string(timeout.count()) + " ms: is a coordinator running?");
        }
    }
}

Message Subscriber::receive() {
    return receive(timeout_);
}

Message Subscriber::receive(std::chrono::milliseconds timeout) {
    wait(timeout);
    auto parts = socket_->take();
    Message message;
    for (const std::byte byte : parts.front()) {
        message.topic.push_back(static_cast<char>(byte));
    }
    if (parts.size() > 1) {
        message.payload = std::move(parts[1]);
    }
    if (message.topic.starts_with("psd/")) {
        message.packet = decode_packet(message.payload);
    } else if (message.topic.starts_with("psd16/") || message.topic.starts_with("psd8/")) {
        message.packet = decode_coded_packet(message.payload);
    }
    notice(message);
    return message;
}

void Subscriber::notice(const Message& message) {
    if (message.topic == "hello/") {
        const std::string description = message.text();
        if (description != hello_) {
            sequences_.clear();  // another run: its spectra are counted anew
            hello_ = description;
        }
    } else if (message.topic == "event/end") {
        ended_ = true;
    } else if (message.packet && message.packet->trailer) {
        const uint64_t sequence = message.packet->trailer->sequence;
        const auto [last, is_first] = sequences_.try_emplace(message.packet->channel_id, sequence);
        if (!is_first && sequence > last->second) {
            missed_ += sequence - last->second - 1;
        }
        last->second = sequence;
    }
}

std::optional<Spectrum> Subscriber::next() {
    try {
        while (!ended_) {
            Message message = receive();
            if (message.packet) {
                // The vector's bytes stay where they are when it is moved.
                return Spectrum{std::move(message.payload), *message.packet};
            }
        }
    } catch (const FeedEnded&) {
        // event/end was lost
    }
    return std::nullopt;
}

Spectrum latest(const std::string& target, uint32_t channel, std::chrono::milliseconds timeout,
                SubscribeOptions options) {
    options.channels = {{channel}};
    options.topics.clear();
    Subscriber feed(target, std::move(options));
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!feed.ended()) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        Message message = feed.receive(std::max(left, std::chrono::milliseconds(0)));
        if (message.packet) {
            return {std::move(message.payload), *message.packet};
        }
    }
    throw FeedError("the run at " + feed_endpoint(target) + " has ended");
}

}  // namespace echelle::client
