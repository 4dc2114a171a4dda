#include "common/frame.hpp"

#include <string>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr uint32_t most_channels = 65'536;
constexpr uint32_t most_samples = 16'777'216;
constexpr size_t most_frame_bytes = size_t{1} << 30;

void check_count(const char* what, uint32_t value, uint32_t most) {
    if (value < 1 || value > most) {
        throw UsageError(std::string(what) + " " + std::to_string(value) +
                         " is out of range: give 1 to " + std::to_string(most));
    }
}

}  // namespace

void FrameGeometry::validate() const {
    check_count("channels", channels, most_channels);
    check_count("samples per frame", samples, most_samples);
    if (format != SampleFormat::i16 && format != SampleFormat::ci16) {
        throw UsageError("sample format number " + std::to_string(static_cast<uint32_t>(format)) +
                         " is unknown: 1 (i16) and 2 (ci16) are known");
    }
    if (layout != Layout::channel_major && layout != Layout::sample_major) {
        throw UsageError("layout number " + std::to_string(static_cast<uint32_t>(layout)) +
                         " is unknown: 1 (channel-major) and 2 (sample-major) are known");
    }
    if (frame_bytes() > most_frame_bytes) {
        throw UsageError("a frame of " + std::to_string(channels) + " channels x " +
                         std::to_string(samples) + " samples takes " +
                         std::to_string(frame_bytes()) +
                         " bytes, more than 1 GiB: give fewer samples per frame");
    }
}

std::string_view name_of(SampleFormat format) {
    switch (format) {
        case SampleFormat::i16:
            return "i16";
        case SampleFormat::ci16:
            return "ci16";
    }
    return "unknown";
}

std::string_view name_of(Layout layout) {
    switch (layout) {
        case Layout::channel_major:
            return "channel-major";
        case Layout::sample_major:
            return "sample-major";
    }
    return "unknown";
}

SampleFormat parse_sample_format(std::string_view text) {
    for (const SampleFormat format : {SampleFormat::i16, SampleFormat::ci16}) {
        if (text == name_of(format)) {
            return format;
        }
    }
    throw UsageError("sample format '" + std::string(text) + "' is unknown: give i16 or ci16");
}

Layout parse_layout(std::string_view text) {
    for (const Layout layout : {Layout::channel_major, Layout::sample_major}) {
        if (text == name_of(layout)) {
            return layout;
        }
    }
    throw UsageError("layout '" + std::string(text) +
                     "' is unknown: give channel-major or sample-major");
}

}  // namespace echelle
