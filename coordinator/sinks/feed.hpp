// The feed: finished spectra, events and figures over ZeroMQ to whoever subscribes (docs/feed.md).
//
// The collector writes spectra into a ring in shared memory, and only those of channels that
// somebody wants; a thread of its own, at a lower priority, publishes them from there. So nothing
// that a subscriber does or doesn't do can make the collector wait.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "coordinator/sinks/feed_exchange.hpp"
#include "coordinator/sinks/feed_publisher.hpp"
#include "coordinator/sinks/sink.hpp"

namespace echelle {

class Feed : public SpectrumSink {
  public:
    // Binds and starts the thread. Throws UsageError when an endpoint cannot be used. To be made
    // where threads and ZeroMQ contexts may exist: after the nursery was forked.
    explicit Feed(const FeedSetup& setup);
    // Ends the thread, publishing nothing more.
    ~Feed() override;
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    // ---- the collector's thread
    void write(std::span<const std::byte> packet) override;

    // ---- the main thread
    // The collector has ended: publishes what is left, and ends.
    void finish() override;
    // One JSON object. The one of hello/ is kept for those who subscribe later.
    void send_text(const std::string& topic, const std::string& json);
    bool wants(TextTopic topic) const { return exchange_.interest.wants(topic); }
    FeedBooks books() const { return exchange_.books(); }

  private:
    void join();

    // Mutable: its questions take a mutex.
    mutable FeedExchange exchange_;
    std::thread thread_;
};

}  // namespace echelle
