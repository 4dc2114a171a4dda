// The JSON that a hub reads and writes: docs/hub.md states every key. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "clients/hub/hub_books.hpp"
#include "clients/hub/hub_options.hpp"

namespace echelle {

// Of a hub, in descriptions and events.
struct HubIdentity {
    std::string name;
    int64_t pid = 0;
    int64_t started_ns = 0;  // Unix time
};

// What its own feed counts: as in docs/feed.md.
struct HubFeedFigures {
    size_t subscribers = 0;
    size_t subscribers_most = 0;
    size_t subscriptions = 0;
    uint64_t published = 0;
    uint64_t queue_full = 0;
    uint64_t refused = 0;
};

bool is_json_object(std::string_view text);

// The upstream's description with this hub appended to its `relays`, and without what does not hold
// behind a hub. Nothing where it has passed too many already. Throws RunError when this hub is in
// there: it would read itself.
std::optional<std::string> relayed_hello(std::string_view hello, const HubIdentity& identity,
                                         const HubOptions& options);

// Throws RunError when what a hub says of itself (event/relay, stat/relay) is from this one.
void check_is_of_another(std::string_view text, const HubIdentity& identity,
                         const HubOptions& options);

// `state` of the upstream: connected, lost, refused.
std::string upstream_event(const std::string& state, uint64_t sequence, const HubIdentity& identity,
                           const HubOptions& options);
// event/end in the name of a coordinator that is gone without having said so.
std::string end_event(const HubIdentity& identity, const HubOptions& options);
std::string figures(uint64_t sequence, const HubIdentity& identity, const HubBooks& books,
                    const HubFeedFigures& feed, bool is_connected);
// Of the whole run. Throws RunError when the file cannot be written.
void write_hub_report(const HubOptions& options, const HubIdentity& identity, const HubBooks& books,
                      const HubFeedFigures& feed, double wall_s);

}  // namespace echelle
