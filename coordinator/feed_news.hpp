// What the main thread has to tell the feed's subscribers: the instance's description, deaths,
// scaling, drops, figures once a second, the end (docs/feed.md). Main thread only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/report.hpp"
#include "coordinator/sinks/feed.hpp"

namespace echelle {

class FeedNews {
  public:
    // Describes the instance at once. `facts` are complete, and outlive the news as the feed does;
    // `ring_socket`: the path at which readers get the ring of spectra.
    FeedNews(const RunFacts& facts, const std::string& ring_socket, Feed& feed);

    // To be called every few milliseconds; looks ten times a second.
    void update();
    // The run's last words. Empty `failure`: all is well.
    void end(const std::string& failure);

  private:
    void tell_deaths();
    void tell_scaling();
    void tell_drops(const FrameBooks& frames);
    void tell_figures();
    void send(const std::string& topic, nlohmann::ordered_json content);

    const RunFacts& facts_;
    Feed& feed_;
    int64_t looked_ns_ = 0;
    int64_t figures_told_ns_ = 0;
    size_t deaths_told_ = 0;
    size_t scaling_told_ = 0;
    std::array<uint64_t, frame_drop_reasons> dropped_told_{};
    std::map<std::string, uint64_t> sequences_;  // of each topic's next message
};

}  // namespace echelle
