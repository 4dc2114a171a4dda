// Subscribes to the feed of a running coordinator: spectra, events and figures while they are made.
// Echelle's docs/feed.md defines topics and messages. MIT licence.
//
//     echelle::client::Subscriber feed("echelle", {.channels = {{3}}});
//     while (const auto spectrum = feed.next()) {
//         std::cout << spectrum->packet.trailer->sequence << ' ' << spectrum->packet.values()[0] <<
//         '\n';
//     }
//
// A Subscriber belongs to one thread at a time.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "echelle/packet.hpp"

namespace echelle::client {

// The feed cannot be used.
class FeedError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};
// The coordinator has gone; nothing more will come.
class FeedEnded : public FeedError {
  public:
    using FeedError::FeedError;
};
// Nothing came in time.
class FeedTimeout : public FeedError {
  public:
    using FeedError::FeedError;
};

// The endpoint of an instance's feed by its name; an endpoint ("...://...") stays as it is.
std::string feed_endpoint(const std::string& target);

struct SubscribeOptions {
    std::optional<std::vector<uint32_t>> channels = {};  // nothing: all
    Coding coding = Coding::float32;
    std::vector<std::string> topics = {};   // what else, such as "event/" and "stat/"
    int queue = 1000;                       // messages that may wait here
    std::chrono::milliseconds timeout{-1};  // without a message; negative: none
    // For tcp with keys, each in Z85.
    std::string server_key = {};
    std::string public_key = {};
    std::string secret_key = {};
};

// One message: its payload, and the packet in it when it is a spectrum.
struct Message {
    std::string topic;
    std::vector<std::byte> payload;
    std::optional<SpectrumPacket> packet;  // refers to the payload
    std::string text() const;              // of events, figures and hello: JSON
};

// A spectrum, with the bytes that it refers to.
struct Spectrum {
    std::vector<std::byte> payload;
    SpectrumPacket packet;
};

class Subscriber {
  public:
    // `target`: an instance's name, or an endpoint. Throws FeedError.
    explicit Subscriber(const std::string& target = "echelle", SubscribeOptions options = {});
    ~Subscriber();
    Subscriber(Subscriber&&) noexcept;
    Subscriber& operator=(Subscriber&&) noexcept;

    // The next message of any topic. Throws FeedTimeout, and PacketError for a packet that is none;
    // going on is possible after both. Throws FeedEnded when the coordinator has gone.
    Message receive();
    Message receive(std::chrono::milliseconds timeout);
    // The next spectrum; nothing when the run has ended.
    std::optional<Spectrum> next();

    // The instance's description (JSON), once it has come: before any spectrum.
    const std::string& hello() const { return hello_; }
    // Spectra that were not seen between those that were, of all channels.
    uint64_t missed() const { return missed_; }
    bool ended() const { return ended_; }

  private:
    struct Socket;
    void notice(const Message& message);
    void wait(std::chrono::milliseconds timeout);
    bool is_gone() const;

    std::unique_ptr<Socket> socket_;
    std::string endpoint_;
    std::chrono::milliseconds timeout_;
    std::string hello_;
    std::map<uint32_t, uint64_t> sequences_;  // the last one seen of each channel
    uint64_t missed_ = 0;
    bool ended_ = false;
};

// The next spectrum of one channel. Throws FeedTimeout. Of the options, coding and keys are used.
Spectrum latest(const std::string& target, uint32_t channel,
                std::chrono::milliseconds timeout = std::chrono::seconds(5),
                SubscribeOptions options = {});

}  // namespace echelle::client
