// The JSON that comes in from the feed and that goes out to the broker and into the report.
// docs/mqtt.md describes every key. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clients/mqtt/broker_connection.hpp"
#include "clients/mqtt/options.hpp"
#include "clients/mqtt/outbox.hpp"
#include "clients/mqtt/spectrum_figures.hpp"
#include "echelle/packet.hpp"

namespace echelle::mqtt {

// Which message of its topic this is, and of which life of the gateway.
struct Stamp {
    std::string boot;
    uint64_t sequence = 0;
};

// What hello/ of the feed says, as far as it is needed here.
struct RunDescription {
    std::string instance;
    uint32_t channels = 0;
    uint32_t bins = 0;
    SpectrumAxis axis;
    std::string unit;
    bool is_density = true;
};
// Throws RunError where the text is not a coordinator's description, or of a later feed.
RunDescription parse_description(const std::string& text);

// What came from the feed. in = used + rate_limited + bad.
struct FeedBooks {
    uint64_t runs = 0;
    uint64_t spectra_in = 0;
    uint64_t used = 0;
    uint64_t rate_limited = 0;
    uint64_t bad = 0;     // damaged, or of another channel or axis than they should be
    uint64_t missed = 0;  // seen by their numbers alone; not in the sum
    uint64_t events = 0;
    uint64_t figures = 0;
    uint64_t bad_texts = 0;
};

using Named = std::vector<std::pair<std::string, double>>;
std::string bands_text(const Stamp& stamp, const client::SpectrumPacket& packet,
                       const Named& powers);
std::string peaks_text(const Stamp& stamp, const client::SpectrumPacket& packet,
                       std::span<const Peak> peaks);
// Nothing where `event` is not a JSON object; so below.
std::optional<std::string> event_text(const Stamp& stamp, const std::string& event);
std::optional<std::string> stat_text(const Stamp& stamp, const std::string& figures,
                                     const FeedBooks& feed, const OutboxBooks& messages,
                                     const ConnectionFigures& connection);
std::string hello_text(const Stamp& stamp, const std::string& hello);
std::string status_text(const Stamp& stamp, const std::string& status, const std::string& reason,
                        const std::string& client_id);
std::string report_text(const Options& options, const std::string& boot, const FeedBooks& feed,
                        const OutboxBooks& messages, const ConnectionFigures& connection,
                        const std::string& failure);

}  // namespace echelle::mqtt
