#include "coordinator/info/recording_info.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/sources/source.hpp"
#include "coordinator/sources/utc_datetime.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

// Opening one of these would start or disturb something.
void refuse_live_sources(const std::string& source) {
    constexpr std::array<std::string_view, 5> live = {"sim:", "ring:", "xdma:", "iio:", "udp:"};
    if (std::any_of(live.begin(), live.end(),
                    [&source](std::string_view scheme) { return source.starts_with(scheme); })) {
        throw UsageError("'" + source + "' is a live source: name a file, or a recording's folder");
    }
}

}  // namespace

Json recording_info(const std::string& source) {
    refuse_live_sources(source);
    const auto opened = open_source(source, {});
    const nlohmann::json facts = opened->facts();
    const auto samples = opened->total_samples();
    if (!facts.is_object() || !samples) {
        throw UsageError("'" + source +
                         "' is no recording with an end: name a file without loop=yes");
    }
    const Stream stream = opened->stream();
    Json info;
    info["kind"] = "recording";
    info["what"] = facts.value("name", opened->describe());
    info["channels"] = stream.geometry.channels;
    info["complex"] = stream.geometry.is_complex();
    info["values"] = facts.value("coding", "");
    info["rate"] = stream.rate.text();
    info["rate_hz"] = stream.rate.value();
    info["samples_per_channel"] = *samples;
    info["duration_s"] = static_cast<double>(*samples) / stream.rate.value();
    info["start"] = stream.epoch_ns != 0 ? Json(utc_datetime_text(stream.epoch_ns)) : Json(nullptr);
    info["longest_stretch"] = opened->longest_stretch().value_or(*samples);
    info["gaps"] = facts.value("gaps", nlohmann::json::object());
    info["annotations"] = facts.value("annotations", nlohmann::json::array());
    info["remarks"] = facts.value("remarks", nlohmann::json::array());
    return info;
}

}  // namespace echelle
