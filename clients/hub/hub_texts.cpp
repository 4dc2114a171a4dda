#include "clients/hub/hub_texts.hpp"

#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t longest_text = size_t{1} << 20;
constexpr int deepest_text = 64;
constexpr size_t most_relays = 16;

std::string text_of(const Json& content, int indent = -1) {
    return content.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Null where the text is too long or too deep: what writes it again goes down as deep, on the
// stack.
Json parsed(std::string_view text) {
    if (text.size() > longest_text) {
        return {};
    }
    bool too_deep = false;
    const auto look = [&too_deep](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > deepest_text;
        return !too_deep;
    };
    Json content = Json::parse(text, look, false);
    return too_deep ? Json() : content;
}

Json rate_of(const HubOptions& options) {
    return options.rate_hz > 0 ? Json(options.rate_hz) : Json(nullptr);
}

Json decimation_of(const HubOptions& options) {
    return options.rate_hz > 0 ? Json(name_of(options.decimation)) : Json(nullptr);
}

template <size_t count>
Json causes(const std::array<uint64_t, count>& counts,
            const std::array<std::string_view, count>& names) {
    Json object = Json::object();
    for (size_t i = 0; i < count; ++i) {
        if (counts[i] > 0) {
            object[std::string(names[i])] = counts[i];
        }
    }
    return object;
}

Json counts_of(const HubBooks& books, const HubFeedFigures& feed) {
    Json counts;
    counts["messages"] = {{"received", books.received},
                          {"relayed", books.relayed},
                          {"decimated", books.decimated},
                          {"repeated", books.repeated},
                          {"invalid", causes(books.invalid, invalid_names)},
                          {"dropped", causes(books.dropped, dropped_names)},
                          {"held", books.held}};
    counts["upstream"] = {{"missed", books.upstream_missed},
                          {"connected", books.upstream_connected},
                          {"lost", books.upstream_lost},
                          {"refused", books.upstream_refused}};
    counts["feed"] = {
        {"subscribers", feed.subscribers},     {"subscribers_most", feed.subscribers_most},
        {"subscriptions", feed.subscriptions}, {"published", feed.published},
        {"queue_full", feed.queue_full},       {"refused", feed.refused}};
    return counts;
}

bool is_this(const Json& relay, const HubIdentity& identity) {
    return relay.is_object() && relay.value("relay", Json()) == identity.name &&
           relay.value("pid", Json()) == identity.pid &&
           relay.value("started_ns", Json()) == identity.started_ns;
}

void refuse_itself(const Json& relay, const HubIdentity& identity, const HubOptions& options) {
    if (is_this(relay, identity)) {
        throw RunError("--from '" + options.from +
                       "' leads back to this hub: read a coordinator, or a hub that reads one");
    }
}

}  // namespace

// A parse with callbacks would be cheaper, but texts are few.
bool is_json_object(std::string_view text) {
    return parsed(text).is_object();
}

std::optional<std::string> relayed_hello(std::string_view hello, const HubIdentity& identity,
                                         const HubOptions& options) {
    Json content = parsed(hello);
    Json relays = Json::array();
    if (content.contains("relays") && content["relays"].is_array()) {
        relays = content["relays"];
    }
    for (const Json& relay : relays) {
        refuse_itself(relay, identity, options);
    }
    if (relays.size() >= most_relays) {
        return std::nullopt;
    }
    relays.push_back({{"relay", identity.name},
                      {"pid", identity.pid},
                      {"started_ns", identity.started_ns},
                      {"version", ECHELLE_VERSION},
                      {"topics", options.topics},
                      {"rate_hz", rate_of(options)},
                      {"decimate", decimation_of(options)}});
    content.erase("ring_socket");  // the memory of another machine, or not written for this feed
    content["relays"] = relays;
    return text_of(content);
}

void check_is_of_another(std::string_view text, const HubIdentity& identity,
                         const HubOptions& options) {
    refuse_itself(parsed(text), identity, options);
}

std::string upstream_event(const std::string& state, uint64_t sequence, const HubIdentity& identity,
                           const HubOptions& options) {
    return text_of({{"sequence", sequence},
                    {"at_ns", realtime_ns()},
                    {"relay", identity.name},
                    {"pid", identity.pid},
                    {"started_ns", identity.started_ns},
                    {"from", options.from_endpoint},
                    {"state", state}});
}

std::string end_event(const HubIdentity& identity, const HubOptions& options) {
    return text_of({{"sequence", 0},
                    {"at_ns", realtime_ns()},
                    {"failure", "the feed at " + options.from_endpoint + " is gone"},
                    {"relay", identity.name}});
}

std::string figures(uint64_t sequence, const HubIdentity& identity, const HubBooks& books,
                    const HubFeedFigures& feed, bool is_connected) {
    Json content = {{"sequence", sequence},
                    {"at_ns", realtime_ns()},
                    {"relay", identity.name},
                    {"pid", identity.pid},
                    {"started_ns", identity.started_ns},
                    {"is_connected", is_connected}};
    content.update(counts_of(books, feed));
    return text_of(content);
}

void write_hub_report(const HubOptions& options, const HubIdentity& identity, const HubBooks& books,
                      const HubFeedFigures& feed, double wall_s) {
    Json report;
    report["version"] = ECHELLE_VERSION;
    report["config"] = {{"name", identity.name},          {"from", options.from_endpoint},
                        {"to", options.to.endpoints},     {"topics", options.topics},
                        {"rate_hz", rate_of(options)},    {"decimate", decimation_of(options)},
                        {"queue", options.queue_messages}};
    report["wall_s"] = wall_s;
    report.update(counts_of(books, feed));
    // Whole or not at all.
    const std::string part = options.report + ".part";
    std::ofstream file(part);
    file << text_of(report, 2) << '\n';
    file.close();
    if (!file || std::rename(part.c_str(), options.report.c_str()) != 0) {
        const std::string why = errno_text();
        unlink(part.c_str());
        throw RunError("cannot write the report " + options.report + ": " + why);
    }
}

}  // namespace echelle
