#include "coordinator/capture/capture_metadata.hpp"

#include <bit>

#include <nlohmann/json.hpp>

#include "coordinator/sources/utc_datetime.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

Json global_of(const CaptureMetadata& metadata) {
    const Stream& stream = metadata.stream;
    const bool little = std::endian::native == std::endian::little;
    Json global;
    global["core:datatype"] =
        std::string(stream.geometry.is_complex() ? "ci16" : "ri16") + (little ? "_le" : "_be");
    global["core:version"] = "1.2.0";
    global["core:num_channels"] = stream.geometry.channels;
    global["core:sample_rate"] = stream.rate.value();
    global["core:recorder"] = "echelle-coordinator " ECHELLE_VERSION;
    global["core:description"] = metadata.description;
    if (metadata.sha512) {
        global["core:sha512"] = *metadata.sha512;
    }
    global["core:extensions"] =
        Json::array({{{"name", "echelle"}, {"version", "1.0.0"}, {"optional", true}}});
    global["echelle:samples_per_frame"] = stream.geometry.samples;
    global["echelle:epoch_ns"] = stream.epoch_ns;
    global["echelle:over_range_low"] = stream.over_range_low;
    global["echelle:over_range_high"] = stream.over_range_high;
    if (metadata.unfinished) {
        global["echelle:unfinished"] = true;
    }
    return global;
}

Json capture_of(const CaptureSegment& segment, const Stream& stream) {
    Json capture;
    capture["core:sample_start"] = segment.sample_start;
    capture["core:global_index"] = segment.global_index;
    int64_t time_ns = 0;
    // A source without a clock of its own has no times to give.
    if (stream.epoch_ns != 0 &&
        !__builtin_add_overflow(stream.epoch_ns, sample_time_ns(segment.global_index, stream.rate),
                                &time_ns)) {
        capture["core:datetime"] = utc_datetime_text(time_ns);
    }
    if (segment.gap_before) {
        capture["echelle:gap_before"] = true;
    }
    return capture;
}

}  // namespace

std::string text_of(const CaptureMetadata& metadata) {
    Json captures = Json::array();
    for (const CaptureSegment& segment : metadata.segments) {
        captures.push_back(capture_of(segment, metadata.stream));
    }
    const Json document = {
        {"global", global_of(metadata)}, {"captures", captures}, {"annotations", Json::array()}};
    // What stands in a path need not be UTF-8.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace echelle
