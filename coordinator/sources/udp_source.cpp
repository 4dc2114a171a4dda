#include "coordinator/sources/udp_source.hpp"

#include <array>
#include <atomic>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/log.hpp"
#include "coordinator/sources/packet_facts.hpp"
#include "coordinator/sources/packet_keys.hpp"
#include "coordinator/sources/packet_stream.hpp"
#include "coordinator/sources/udp_socket.hpp"

namespace echelle {
namespace {

constexpr int patience_ms = 100;  // for the next datagram; then `stop` is looked at
// A stream that is silent for so long will not bring what others wait for. Long enough for a sender
// that had to wait for its CPU.
constexpr int64_t silence_ns = 500'000'000;
constexpr int64_t reopen_every_ns = 1'000'000'000;
// Senders' clocks that are behind this machine's by less are believed.
constexpr int64_t believed_lag_s = 60;

// VITA 49 packets bring their own time: the epoch then lies before it, on a whole second.
int64_t epoch_for(FramingKind framing) {
    constexpr int64_t second = 1'000'000'000;
    const int64_t now = realtime_ns();
    return framing == FramingKind::vita49 ? (now / second - believed_lag_s) * second : now;
}

class UdpSource final : public Source {
  public:
    UdpSource(std::string address, UdpSocketOptions socket, const PacketKeys& keys)
        : address_(std::move(address)),
          socket_options_(std::move(socket)),
          keys_(keys),
          packets_(keys.stream, keys.make_framing(), keys.make_joiner(), keys.reorder,
                   UdpSocket::batch) {
        // Closed again until the run begins: workers are forked meanwhile, and what came in before
        // would only be old.
        receive_buffer_ = UdpSocket(socket_options_).buffer_bytes();
    }

    Stream stream() const override { return keys_.stream; }
    OverrunPolicy default_policy() const override { return OverrunPolicy::drop; }
    const char* facts_name() const override { return "source"; }
    std::string describe() const override {
        return "UDP at " + address_ + ": " + keys_.text() + ", live";
    }

    nlohmann::json facts() const override {
        nlohmann::json json = json_of(packets_.snapshot());
        json["framing"] = name_of(keys_.framing);
        json["receive_queue"] = {{"bytes", receive_buffer_.load()}, {"overflow", overflow_.load()}};
        json["reopened"] = reopened_.load();
        const std::lock_guard lock(mutex_);
        if (!trouble_.empty()) {
            json["remarks"].push_back(trouble_);
        }
        return json;
    }

    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        FrameAssembler frames(writer, policy, stop, keys_.swaps_bytes());
        packets_.begin(frames);
        for (UdpSocket::Received& each : batch_) {
            handles_.push_back(packets_.free_buffer());
            each.buffer = packets_.buffer(handles_.back());
        }
        open_again(stop);
        while (!stop.load(std::memory_order_relaxed)) {
            try {
                receive();
            } catch (const RunError& error) {
                note_trouble(error.what());
                overflow_before_ = overflow_.load(std::memory_order_relaxed);
                socket_.reset();
                open_again(stop);
                reopened_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        if (socket_) {
            ask_overflow();
        }
        packets_.finish();
    }

  private:
    void receive() {
        const size_t count = socket_->receive(batch_, patience_ms);
        if (count == 0) {
            if (monotonic_ns() - last_datagram_ns_ > silence_ns) {
                packets_.flush();
            }
            ask_overflow();
            packets_.publish();
            return;
        }
        last_datagram_ns_ = monotonic_ns();
        const int64_t arrival_ns = realtime_ns();
        for (size_t i = 0; i < count; ++i) {
            packets_.take(handles_[i], batch_[i].size, arrival_ns);
            handles_[i] = packets_.free_buffer();
            batch_[i].buffer = packets_.buffer(handles_[i]);
        }
        note_overflow();
        packets_.publish();
        warn_of_contradiction();
    }

    void ask_overflow() {
        socket_->ask_overflow();
        note_overflow();
    }
    // A new socket counts from 0.
    void note_overflow() {
        overflow_.store(overflow_before_ + socket_->overflow(), std::memory_order_relaxed);
    }

    // A live source's trouble is a gap, not an end: it is tried again until the run is stopped.
    void open_again(const std::atomic<bool>& stop) {
        int64_t next_try_ns = 0;
        while (!socket_ && !stop.load(std::memory_order_relaxed)) {
            if (monotonic_ns() < next_try_ns) {
                const timespec pause{0, 10'000'000};
                nanosleep(&pause, nullptr);
                continue;
            }
            next_try_ns = monotonic_ns() + reopen_every_ns;
            try {
                socket_.emplace(socket_options_);
            } catch (const UsageError& error) {
                note_trouble(error.what());
            }
        }
    }

    void note_trouble(const std::string& trouble) {
        warn("UDP at " + address_ + ": " + trouble + "; trying again");
        const std::lock_guard lock(mutex_);
        trouble_ = trouble;
    }

    void warn_of_contradiction() {
        if (has_warned_) {
            return;
        }
        if (const std::string words = packets_.contradiction(); !words.empty()) {
            has_warned_ = true;
            warn("UDP at " + address_ + ": " + words);
        }
    }

    std::string address_;
    UdpSocketOptions socket_options_;
    PacketKeys keys_;
    PacketStream packets_;
    std::optional<UdpSocket> socket_;
    std::array<UdpSocket::Received, UdpSocket::batch> batch_{};
    std::vector<PacketStream::Handle> handles_;  // the batch's buffers
    int64_t last_datagram_ns_ = 0;
    uint64_t overflow_before_ = 0;  // of sockets before this one
    bool has_warned_ = false;
    std::atomic<uint64_t> receive_buffer_{0};
    std::atomic<uint64_t> overflow_{0};
    std::atomic<uint64_t> reopened_{0};
    mutable std::mutex mutex_;  // guards trouble_
    std::string trouble_;
};

}  // namespace

std::unique_ptr<Source> open_udp_source(SourceUri uri, const StreamOptions& options) {
    UdpSocketOptions socket;
    socket.address = UdpAddress::parse(uri.path(), uri.text());
    PacketKeys keys = take_packet_keys(uri, options, std::nullopt);
    keys.stream.epoch_ns = epoch_for(keys.framing);
    socket.interface = uri.take("interface").value_or("");
    socket.buffer_bytes = uri.take_unsigned("buffer").value_or(socket.buffer_bytes);
    uri.refuse_unknown_keys();
    if (!socket.interface.empty() && !socket.address.is_multicast()) {
        throw UsageError("source '" + uri.text() +
                         "' has interface=, which is for multicast groups: bind to that "
                         "interface's address instead");
    }
    try {
        return std::make_unique<UdpSource>(uri.path(), std::move(socket), keys);
    } catch (const UsageError& error) {
        throw UsageError("source '" + uri.text() + "': " + error.what());
    }
}

}  // namespace echelle
