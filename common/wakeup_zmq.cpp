// Wake-ups by ZeroMQ PUSH/PULL over ipc. A stalled worker swallows some hundred tokens (libzmq's
// pipes, batches and the kernel's buffer): harmless, since a token is only a hint.
#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <sched.h>
#include <zmq.hpp>

#include "common/error.hpp"
#include "common/wakeup.hpp"

namespace echelle {
namespace {

constexpr int linger_ms = 0;  // an undelivered hint is worth no wait at the end

// zmq_poll ends with EINTR on a signal; the caller looks again anyway.
void poll_quietly(zmq::pollitem_t* items, size_t count, int64_t timeout_ns) {
    // Rounded up: a wait of less than a millisecond must not become a busy loop. Never negative:
    // that would wait for ever.
    const auto timeout_ms =
        static_cast<long>((std::max<int64_t>(timeout_ns, 0) + 999'999) / 1'000'000);
    if (zmq_poll(items, static_cast<int>(count), timeout_ms) < 0 && errno != EINTR) {
        throw zmq::error_t();
    }
}

void drain(zmq::socket_t& socket) {
    std::array<std::byte, 64> hint{};
    for (;;) {
        // The result's truncation is of no interest: a hint carries nothing.
        const int size = zmq_recv(socket.handle(), hint.data(), hint.size(), ZMQ_DONTWAIT);
        if (size < 0 && errno != EINTR) {
            return;
        }
    }
}

void send_hint(zmq::socket_t& socket, const void* data, size_t bytes) {
    // EAGAIN (no peer, or a full pipe) loses the hint; the ledger is looked at on a timer as well.
    static_cast<void>(zmq_send(socket.handle(), data, bytes, ZMQ_DONTWAIT));
}

zmq::socket_t make_socket(zmq::context_t& context, zmq::socket_type type) {
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::linger, linger_ms);
    return socket;
}

// A path that is too long or cannot be written is found here.
void bind_to(zmq::socket_t& socket, const std::string& endpoint) {
    try {
        socket.bind(endpoint);
    } catch (const zmq::error_t& error) {
        throw RunError("cannot listen on " + endpoint + ": " + error.what() +
                       "; give a shorter or another --name, or free the directory");
    }
}

class ZmqTokenSender : public TokenSender {
  public:
    ZmqTokenSender(zmq::context_t& context, const std::string& endpoint)
        : socket_(make_socket(context, zmq::socket_type::push)) {
        socket_.set(zmq::sockopt::sndhwm, 64);
        bind_to(socket_, endpoint);
    }
    void send(uint32_t count) override {
        for (uint32_t i = 0; i < count; ++i) {
            send_hint(socket_, "", 0);
        }
    }

  private:
    zmq::socket_t socket_;
};

class ZmqTokenReceiver : public TokenReceiver {
  public:
    ZmqTokenReceiver(zmq::context_t& context, const std::string& endpoint)
        : socket_(make_socket(context, zmq::socket_type::pull)) {
        socket_.set(zmq::sockopt::rcvhwm, 64);
        socket_.set(zmq::sockopt::reconnect_ivl, 20);
        socket_.connect(endpoint);
    }
    void prepare() override { drain(socket_); }
    void wait(int coordinator_end, int64_t timeout_ns) override {
        std::array<zmq::pollitem_t, 2> items{
            zmq::pollitem_t{socket_.handle(), 0, ZMQ_POLLIN, 0},
            zmq::pollitem_t{nullptr, coordinator_end, ZMQ_POLLIN, 0}};
        poll_quietly(items.data(), coordinator_end >= 0 ? 2 : 1, timeout_ns);
    }

  private:
    zmq::socket_t socket_;
};

class ZmqNoticeSender : public NoticeSender {
  public:
    ZmqNoticeSender(zmq::context_t& context, const std::string& endpoint)
        : socket_(make_socket(context, zmq::socket_type::push)) {
        socket_.set(zmq::sockopt::reconnect_ivl, 20);
        socket_.connect(endpoint);
    }
    void send(uint64_t block_number) override {
        send_hint(socket_, &block_number, sizeof block_number);
    }

  private:
    zmq::socket_t socket_;
};

class ZmqNoticeReceiver : public NoticeReceiver {
  public:
    ZmqNoticeReceiver(zmq::context_t& context, const std::string& endpoint)
        : socket_(make_socket(context, zmq::socket_type::pull)) {
        bind_to(socket_, endpoint);
    }
    void prepare() override { drain(socket_); }
    void wait(int64_t timeout_ns) override {
        zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
        poll_quietly(&item, 1, timeout_ns);
    }

  private:
    zmq::socket_t socket_;
};

class ZmqWakeups : public Wakeups {
  public:
    ZmqWakeups(WakeupEndpoints endpoints, int real_time_priority)
        : endpoints_(std::move(endpoints)) {
        if (real_time_priority > 0) {  // before the first socket, with which the threads begin
            zmq_ctx_set(context_.handle(), ZMQ_THREAD_SCHED_POLICY, SCHED_FIFO);
            zmq_ctx_set(context_.handle(), ZMQ_THREAD_PRIORITY, real_time_priority);
        }
    }
    std::unique_ptr<TokenSender> token_sender() override {
        return std::make_unique<ZmqTokenSender>(context_, endpoints_.tokens);
    }
    std::unique_ptr<TokenReceiver> token_receiver() override {
        return std::make_unique<ZmqTokenReceiver>(context_, endpoints_.tokens);
    }
    std::unique_ptr<NoticeSender> notice_sender() override {
        return std::make_unique<ZmqNoticeSender>(context_, endpoints_.notices);
    }
    std::unique_ptr<NoticeReceiver> notice_receiver() override {
        return std::make_unique<ZmqNoticeReceiver>(context_, endpoints_.notices);
    }

  private:
    WakeupEndpoints endpoints_;
    zmq::context_t context_{1};
};

}  // namespace

std::unique_ptr<Wakeups> make_zmq_wakeups(const WakeupEndpoints& endpoints,
                                          int real_time_priority) {
    return std::make_unique<ZmqWakeups>(endpoints, real_time_priority);
}

}  // namespace echelle
