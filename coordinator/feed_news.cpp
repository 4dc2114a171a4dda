#include "coordinator/feed_news.hpp"

#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/packet.hpp"
#include "common/psd_axis.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr int feed_version = 1;
constexpr int64_t look_ns = 100'000'000;
constexpr int64_t figures_ns = 1'000'000'000;

std::string unit_of(const WelchParameters& welch) {
    const std::string base = welch.volts_per_count > 0 ? "V^2" : "counts^2";
    return welch.scaling == Scaling::density ? base + "/Hz" : base;
}

Json description_of(const RunFacts& facts, const std::string& ring_socket) {
    const FrameGeometry& geometry = facts.stream.geometry;
    const WelchParameters& welch = facts.options->welch;
    const uint64_t frames = facts.frames_per_integration;
    const uint32_t bins = welch.bins(geometry.is_complex());
    Json text;
    text["feed"] = feed_version;
    text["version"] = ECHELLE_VERSION;
    text["sequence"] = 0;
    text["instance"] = facts.instance_name;
    text["pid"] = getpid();
    text["started_ns"] = realtime_ns();
    text["source"] = facts.source_description;
    text["channels"] = geometry.channels;
    text["samples"] = geometry.samples;
    text["rate"] = facts.stream.rate.text();
    text["rate_hz"] = facts.stream.rate.value();
    text["format"] = name_of(geometry.format);
    text["nperseg"] = welch.nperseg;
    text["noverlap"] = welch.noverlap;
    text["window"] = welch.window.text();
    text["detrend"] = name_of(welch.detrend);
    text["scaling"] = name_of(welch.scaling);
    text["average_mode"] = name_of(welch.average_mode);
    text["average_frames"] = frames == 0 ? Json("all") : Json(frames);
    text["average_seconds"] =
        frames == 0 ? Json("all")
                    : Json(static_cast<double>(frames) * facts.stream.frame_period_ns() / 1e9);
    text["bins"] = bins;
    text["first_bin_hz"] = first_bin_hz(welch.nperseg, geometry.is_complex(), facts.stream.rate);
    text["bin_spacing_hz"] = bin_spacing_hz(welch.nperseg, facts.stream.rate);
    text["unit"] = unit_of(welch);
    text["packet_bytes"] = packet_bytes_1_1(bins);
    text["channel_digits"] = 5;
    text["ring_socket"] = ring_socket;
    return text;
}

std::string text_of(const Json& content) {
    return content.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

FeedNews::FeedNews(const RunFacts& facts, const std::string& ring_socket, Feed& feed)
    : facts_(facts), feed_(feed) {
    feed_.send_text("hello/", text_of(description_of(facts, ring_socket)));
}

void FeedNews::send(const std::string& topic, Json content) {
    Json message;
    message["sequence"] = sequences_[topic]++;
    message["at_ns"] = realtime_ns();
    message.update(content);
    feed_.send_text(topic, text_of(message));
}

void FeedNews::update() {
    const int64_t now_ns = monotonic_ns();
    if (now_ns - looked_ns_ < look_ns) {
        return;
    }
    looked_ns_ = now_ns;
    tell_deaths();
    tell_scaling();
    tell_drops(facts_.accounts->frames());
    if (now_ns - figures_told_ns_ >= figures_ns && feed_.wants(TextTopic::stat)) {
        figures_told_ns_ = now_ns;
        tell_figures();
    }
}

// Events are counted in their sequence whether or not somebody listens: whoever joins later sees
// that there were some.
void FeedNews::tell_deaths() {
    const auto& deaths = facts_.supervisor->recoveries();
    for (; deaths_told_ < deaths.size(); ++deaths_told_) {
        const Recovery& death = deaths[deaths_told_];
        send("event/death", {{"worker", death.worker},
                             {"pid", death.pid},
                             {"cause", death.cause},
                             {"blocks", death.blocks_requeued}});
    }
}

void FeedNews::tell_scaling() {
    const auto& decisions = facts_.supervisor->scaling();
    for (; scaling_told_ < decisions.size(); ++scaling_told_) {
        const ScalingDecision& decision = decisions[scaling_told_];
        send("event/scaling",
             {{"from", decision.from}, {"to", decision.to}, {"reason", decision.reason}});
    }
}

void FeedNews::tell_drops(const FrameBooks& frames) {
    Json dropped = Json::object();
    for (size_t i = 0; i < frame_drop_reasons; ++i) {
        const uint64_t more =
            frames.dropped[i] - std::exchange(dropped_told_[i], frames.dropped[i]);
        if (more > 0) {
            dropped[std::string(name_of(static_cast<FrameDrop>(i)))] = more;
        }
    }
    if (!dropped.empty()) {
        send("event/drop", {{"frames", dropped}});
    }
}

void FeedNews::tell_figures() {
    send("stat/", make_figures(facts_));
}

void FeedNews::end(const std::string& failure) {
    tell_deaths();
    tell_scaling();
    tell_drops(facts_.accounts->frames());
    if (feed_.wants(TextTopic::stat)) {
        tell_figures();
    }
    send("event/end", {{"failure", failure.empty() ? Json(nullptr) : Json(failure)}});
}

}  // namespace echelle
