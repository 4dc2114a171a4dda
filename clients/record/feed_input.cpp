#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <zmq.h>

#include "clients/record/packet_input.hpp"
#include "clients/record/record_texts.hpp"
#include "common/curve_keys.hpp"
#include "common/error.hpp"
#include "echelle/feed.hpp"
#include "echelle/ring.hpp"

namespace echelle::record {
namespace {

constexpr int queued_messages = 16'384;
constexpr std::chrono::milliseconds step(100);

client::SubscribeOptions options_of(const FeedTerms& terms) {
    client::SubscribeOptions options;
    options.channels = terms.channels;
    options.queue = queued_messages;
    if (terms.server_key_file.empty()) {
        return options;
    }
    const auto servers = read_public_keys(terms.server_key_file);
    if (servers.size() != 1) {
        throw UsageError(terms.server_key_file + " has " + std::to_string(servers.size()) +
                         " public keys: name the file with the feed's own");
    }
    std::array<char, 41> text{};
    zmq_z85_encode(text.data(), reinterpret_cast<const uint8_t*>(servers.begin()->data()), 32);
    const CurveKeys own = read_secret_keys(terms.key_file);
    options.server_key = text.data();
    options.public_key = own.public_key;
    options.secret_key = own.secret_key;
    return options;
}

class FeedInput : public PacketInput {
  public:
    FeedInput(const FeedTerms& terms, std::vector<uint32_t> channels, std::string hello)
        : feed_(terms.target, options_of(terms)),
          channels_(std::move(channels)),
          hello_(std::move(hello)) {}

    Arrival next(client::SpectrumPacket& packet, std::chrono::milliseconds patience) override {
        try {
            if (feed_.ended()) {
                return Arrival::ended;
            }
            message_ = feed_.receive(patience);
        } catch (const client::FeedTimeout&) {
            return Arrival::nothing;
        } catch (const client::FeedEnded&) {
            return Arrival::ended;
        } catch (const client::PacketError&) {
            return Arrival::bad;
        }
        if (message_.topic == "hello/" && feed_.hello() != hello_) {
            hello_ = feed_.hello();
            return Arrival::new_run;
        }
        if (!message_.packet) {
            return feed_.ended() ? Arrival::ended : Arrival::nothing;
        }
        packet = *message_.packet;
        return Arrival::packet;
    }

    const std::vector<uint32_t>& channels() const override { return channels_; }
    std::string description() const override { return hello_; }
    const char* kind() const override { return "feed"; }
    bool waits() const override { return false; }

  private:
    client::Subscriber feed_;
    std::vector<uint32_t> channels_;
    std::string hello_;
    client::Message message_;
};

class RingInput : public PacketInput {
  public:
    RingInput(const std::string& target, std::vector<uint32_t> channels, std::string hello)
        : ring_(target), channels_(std::move(channels)), hello_(std::move(hello)) {}

    Arrival next(client::SpectrumPacket& packet, std::chrono::milliseconds patience) override {
        auto entry = ring_.next();
        if (!entry && !ring_.ended()) {
            ring_.wait(patience);
            entry = ring_.next();
        }
        if (!entry) {
            return ring_.ended() ? Arrival::ended : Arrival::nothing;
        }
        copy_.assign(entry->packet.begin(), entry->packet.end());
        if (!ring_.confirm(*entry)) {
            return Arrival::nothing;  // its sequence number will be missing
        }
        try {
            packet = client::decode_packet(copy_);
        } catch (const client::PacketError&) {
            return Arrival::bad;
        }
        return Arrival::packet;
    }

    const std::vector<uint32_t>& channels() const override { return channels_; }
    std::string description() const override { return hello_; }
    const char* kind() const override { return "ring"; }
    bool waits() const override { return false; }

  private:
    client::SpectrumRing ring_;
    std::vector<uint32_t> channels_;
    std::string hello_;
    std::vector<std::byte> copy_;
};

// Subscribes to the description alone, and waits for it. Empty when told to stop.
std::string wait_for_hello(const FeedTerms& terms, bool (*should_stop)()) {
    client::SubscribeOptions options = options_of(terms);
    options.channels = std::vector<uint32_t>{};
    client::Subscriber feed(terms.target, std::move(options));
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(terms.wait_seconds);
    while (!should_stop()) {
        try {
            feed.receive(step);
        } catch (const client::FeedTimeout&) {
            // Looked at below.
        }
        if (!feed.hello().empty()) {
            return feed.hello();
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            throw RunError("no feed says hello at " + client::feed_endpoint(terms.target) +
                           ": is a coordinator running under that name, and are keys needed? "
                           "(--wait SECONDS waits longer)");
        }
    }
    return {};
}

std::vector<uint32_t> channels_of(const FeedTerms& terms, const std::string& hello) {
    const uint32_t count = channels_in_hello(hello);
    if (!terms.channels) {
        std::vector<uint32_t> all(count);
        std::iota(all.begin(), all.end(), 0U);
        return all;
    }
    if (terms.channels->back() >= count) {
        throw UsageError("channel " + std::to_string(terms.channels->back()) +
                         " was asked for, but the feed has " + std::to_string(count) +
                         " channels, from 0 on");
    }
    return *terms.channels;
}

}  // namespace

std::unique_ptr<PacketInput> open_feed(const FeedTerms& terms, bool (*should_stop)()) {
    try {
        const std::string hello = wait_for_hello(terms, should_stop);
        if (hello.empty()) {
            return nullptr;
        }
        const std::vector<uint32_t> channels = channels_of(terms, hello);
        // The ring has all channels, and only on this machine.
        const bool is_ring_of_use = !terms.channels && terms.server_key_file.empty();
        if (terms.transport == Transport::ring ||
            (terms.transport == Transport::automatic && is_ring_of_use)) {
            try {
                return std::make_unique<RingInput>(terms.target, channels, hello);
            } catch (const client::FeedError&) {
                if (terms.transport == Transport::ring) {
                    throw;
                }
            }
        }
        return std::make_unique<FeedInput>(terms, channels, hello);
    } catch (const client::FeedError& error) {
        throw RunError(error.what());
    }
}

}  // namespace echelle::record
