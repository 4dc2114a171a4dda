// Makes messages for the broker out of messages of the feed. docs/mqtt.md states topics and texts.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clients/mqtt/broker_connection.hpp"
#include "clients/mqtt/options.hpp"
#include "clients/mqtt/outbox.hpp"
#include "clients/mqtt/rate_limit.hpp"
#include "clients/mqtt/texts.hpp"
#include "echelle/feed.hpp"

namespace echelle::mqtt {

class Gateway {
  public:
    using Connection = std::function<ConnectionFigures()>;  // asked for what figures tell of it
    // The first three outlive it. `boot` names this life of the gateway.
    Gateway(const Options& options, const std::string& boot, Outbox& outbox, Connection connection);

    // A run begins: what the feed's hello/ says. Throws RunError where its spectra are not what the
    // options ask for.
    void begin_run(const RunDescription& description, const std::string& topic_prefix);
    // A message of any topic but hello/.
    void take(const client::Message& message, int64_t now_ns);
    // Bytes that came as a spectrum and are none.
    void count_bad_packet();
    void count_missed(uint64_t missed) { books_.missed += missed; }
    const FeedBooks& books() const { return books_; }

  private:
    struct Channel {
        RateLimit figures;   // of bands, peaks and 1.1 packets
        RateLimit coded;     // of 2.x packets
        uint64_t bands = 0;  // messages so far, of each topic
        uint64_t peaks = 0;
        uint64_t spectra = 0;
    };

    void check_bands() const;
    void take_spectrum(const client::Message& message, int64_t now_ns);
    bool is_expected(const client::Message& message) const;
    void publish_bands(const client::SpectrumPacket& packet, Channel& channel);
    void publish_peaks(const client::SpectrumPacket& packet, Channel& channel);
    void publish_packet(const client::Message& message, const std::string& kind, Channel& channel);
    void take_event(const client::Message& message);
    void take_figures(const client::Message& message);
    void push(const std::string& topic, std::string payload, uint64_t sequence, bool latest_wins,
              bool is_packet = false);
    std::string channel_topic(const std::string& kind, uint32_t channel) const;

    const Options& options_;
    const std::string& boot_;
    Outbox& outbox_;
    Connection connection_;
    int64_t period_ns_;
    RunDescription run_;
    std::string prefix_;
    std::vector<Channel> channels_;
    std::map<std::string, uint64_t> event_sequences_;
    uint64_t stat_sequence_ = 0;
    std::vector<float> values_;
    FeedBooks books_;
};

}  // namespace echelle::mqtt
