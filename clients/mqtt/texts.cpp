#include "clients/mqtt/texts.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

using Json = nlohmann::ordered_json;

constexpr int feed_version = 1;
constexpr uint32_t most_channels = 65'536;
constexpr uint32_t most_bins = 1U << 24;  // of 64 MiB: the feed's messages are not longer
constexpr int deepest = 32;               // writing JSON takes stack for each level

std::string text_of(const Json& content, int indent = -1) {
    return content.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json begun(const Stamp& stamp) {
    return {{"boot", stamp.boot}, {"sequence", stamp.sequence}};
}

std::optional<Json> object_of(const std::string& text) {
    bool is_too_deep = false;
    const auto keep = [&is_too_deep](int depth, Json::parse_event_t /*event*/, Json& /*parsed*/) {
        is_too_deep = is_too_deep || depth > deepest;
        return depth <= deepest;  // what is deeper is not kept
    };
    Json content = Json::parse(text, keep, false);
    return content.is_object() && !is_too_deep ? std::optional(std::move(content)) : std::nullopt;
}

// A key of the description; of another kind or beyond its range, it is none.
template <typename Value>
Value wanted(const Json& hello, const char* key) {
    const auto found = hello.find(key);
    const bool fits =
        found != hello.end() && (std::is_same_v<Value, std::string> ? found->is_string()
                                 : std::is_same_v<Value, double>    ? found->is_number()
                                                                    : found->is_number_unsigned());
    if (!fits) {
        throw RunError(std::string("the feed's description has no usable '") + key +
                       "': is there a coordinator at its other end?");
    }
    return found->get<Value>();
}

uint32_t wanted_count(const Json& hello, const char* key, uint32_t most) {
    const auto count = wanted<uint64_t>(hello, key);
    if (count < 1 || count > most) {
        throw RunError(std::string("the feed's description has ") + key + " " +
                       std::to_string(count) + ": is there a coordinator at its other end?");
    }
    return static_cast<uint32_t>(count);
}

// It becomes part of topics.
bool is_instance_name(const std::string& name) {
    return !name.empty() && name.size() <= 64 &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
           });
}

Json spectrum_keys(const Stamp& stamp, const client::SpectrumPacket& packet) {
    const client::Trailer& trailer = *packet.trailer;
    Json text = begun(stamp);
    text["channel"] = packet.channel_id;
    text["spectrum"] = trailer.sequence;
    text["timestamp_ns"] = trailer.timestamp_ns;
    Json flags = Json::array();
    const std::pair<uint16_t, const char*> names[] = {{client::flag::gap_before, "gap_before"},
                                                      {client::flag::incomplete, "incomplete"},
                                                      {client::flag::over_range, "over_range"}};
    for (const auto& [bit, name] : names) {
        if ((trailer.flags & bit) != 0) {
            flags.push_back(name);
        }
    }
    text["flags"] = std::move(flags);
    return text;
}

// Of a density times a bandwidth: "counts^2/Hz" becomes "counts^2".
std::string power_unit(const std::string& unit) {
    return unit.substr(0, unit.find('/'));
}

Json messages_of(const OutboxBooks& books) {
    Json dropped = Json::object();
    for (size_t i = 0; i < drop_reasons; ++i) {
        if (books.dropped[i] > 0) {
            dropped[std::string(name_of(static_cast<Drop>(i)))] = books.dropped[i];
        }
    }
    return {{"made", books.made},
            {"delivered", books.delivered},
            {"dropped", std::move(dropped)},
            {"waiting", books.waiting},
            {"in_flight", books.in_flight},
            {"repeated", books.repeated},
            {"most", books.most_messages},
            {"most_bytes", books.most_bytes}};
}

Json connection_of(const ConnectionFigures& figures) {
    return {{"connected", figures.is_connected},
            {"tries", figures.tries},
            {"made", figures.made},
            {"failed", figures.failed},
            {"lost", figures.lost},
            {"taken_over", figures.taken_over},
            {"standing_sent", figures.standing_sent}};
}

Json feed_of(const FeedBooks& books) {
    return {{"runs", books.runs},
            {"spectra",
             {{"in", books.spectra_in},
              {"used", books.used},
              {"rate_limited", books.rate_limited},
              {"bad", books.bad},
              {"missed", books.missed}}},
            {"events", books.events},
            {"figures", books.figures},
            {"bad_texts", books.bad_texts}};
}

}  // namespace

RunDescription parse_description(const std::string& text) {
    const auto hello = object_of(text);
    if (!hello) {
        throw RunError(
            "the feed's description is not JSON: is there a coordinator at its other end?");
    }
    if (const auto version = wanted<uint64_t>(*hello, "feed"); version != feed_version) {
        throw RunError("the feed is of version " + std::to_string(version) +
                       ", which this program does not know: update it");
    }
    RunDescription description;
    description.instance = wanted<std::string>(*hello, "instance");
    description.channels = wanted_count(*hello, "channels", most_channels);
    description.bins = wanted_count(*hello, "bins", most_bins);
    description.axis = {wanted<double>(*hello, "first_bin_hz"),
                        wanted<double>(*hello, "bin_spacing_hz")};
    description.unit = wanted<std::string>(*hello, "unit");
    description.is_density = wanted<std::string>(*hello, "scaling") == "density";
    if (!is_instance_name(description.instance) || !std::isfinite(description.axis.first_bin_hz) ||
        !(description.axis.bin_spacing_hz > 0)) {
        throw RunError(
            "the feed's description has an impossible name or axis: is there a "
            "coordinator at its other end?");
    }
    return description;
}

std::string bands_text(const Stamp& stamp, const client::SpectrumPacket& packet,
                       const Named& powers) {
    Json text = spectrum_keys(stamp, packet);
    text["unit"] = power_unit(packet.unit());
    Json& bands = text["bands"] = Json::object();
    for (const auto& [name, power] : powers) {
        bands[name] = power;
    }
    text["mean"] = packet.trailer->mean;
    text["rms"] = packet.trailer->rms;
    text["over_range"] = packet.trailer->over_range_count;
    return text_of(text);
}

std::string peaks_text(const Stamp& stamp, const client::SpectrumPacket& packet,
                       std::span<const Peak> peaks) {
    Json text = spectrum_keys(stamp, packet);
    text["unit"] = packet.unit();
    Json& list = text["peaks"] = Json::array();
    for (const Peak& peak : peaks) {
        list.push_back({{"hz", peak.hz}, {"bin_hz", peak.bin_hz}, {"level", peak.level}});
    }
    return text_of(text);
}

std::optional<std::string> event_text(const Stamp& stamp, const std::string& event) {
    auto content = object_of(event);
    if (!content) {
        return std::nullopt;
    }
    Json text = begun(stamp);
    text["event"] = std::move(*content);
    return text_of(text);
}

std::optional<std::string> stat_text(const Stamp& stamp, const std::string& figures,
                                     const FeedBooks& feed, const OutboxBooks& messages,
                                     const ConnectionFigures& connection) {
    auto content = object_of(figures);
    if (!content) {
        return std::nullopt;
    }
    Json text = begun(stamp);
    text["stat"] = std::move(*content);
    text["gateway"] = {{"feed", feed_of(feed)},
                       {"messages", messages_of(messages)},
                       {"connection", connection_of(connection)}};
    return text_of(text);
}

std::string hello_text(const Stamp& stamp, const std::string& hello) {
    Json text = begun(stamp);
    text["hello"] = Json::parse(hello);  // it has been read before
    return text_of(text);
}

std::string status_text(const Stamp& stamp, const std::string& status, const std::string& reason,
                        const std::string& client_id) {
    Json text = begun(stamp);
    text["status"] = status;
    text["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
    text["client_id"] = client_id;
    return text_of(text);
}

std::string report_text(const Options& options, const std::string& boot, const FeedBooks& feed,
                        const OutboxBooks& messages, const ConnectionFigures& connection,
                        const std::string& failure) {
    Json text;
    text["version"] = ECHELLE_VERSION;
    text["boot"] = boot;
    text["broker"] = options.broker.address.text();
    text["client_id"] = options.broker.client_id;
    text["topic"] = options.topic_prefix;
    text["mqtt"] = options.broker.protocol == Protocol::mqtt_5 ? "5" : "3.1.1";
    text["qos"] = static_cast<int>(options.broker.qos);
    text["queue"] = {{"messages", options.outbox.messages},
                     {"bytes", options.outbox.bytes},
                     {"in_flight", options.broker.window}};
    text["feed"] = feed_of(feed);
    text["messages"] = messages_of(messages);
    text["connection"] = connection_of(connection);
    text["failure"] = failure.empty() ? Json(nullptr) : Json(failure);
    return text_of(text, 2) + "\n";
}

}  // namespace echelle::mqtt
