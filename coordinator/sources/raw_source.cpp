#include "coordinator/sources/raw_source.hpp"

#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

struct RawKeys {
    FrameGeometry geometry;
    ValueCoding coding = ValueCoding::int16_little;
    Rational rate;
    uint64_t offset = 0;
    bool drop_tail = false;
    bool layout_is_default = false;
};

[[noreturn]] void refuse(const SourceUri& uri, const std::string& why) {
    throw UsageError("source '" + uri.text() + "' " + why);
}

void take_format(SourceUri& uri, const StreamOptions& options, RawKeys& keys) {
    keys.geometry.format = options.format.value_or(SampleFormat::i16);
    const std::optional<std::string> format = uri.take("format");
    if (format) {
        if (*format == "i8" || *format == "ci8") {
            keys.coding = ValueCoding::int8;
        } else if (*format != "i16" && *format != "ci16") {
            refuse(uri, "has format=" + *format + ": give i16, ci16, i8 or ci8");
        }
        keys.geometry.format = format->starts_with('c') ? SampleFormat::ci16 : SampleFormat::i16;
    }
    const std::optional<std::string> endian = uri.take("endian");
    if (!endian) {
        return;
    }
    if (*endian != "little" && *endian != "big") {
        refuse(uri, "has endian=" + *endian + ": give little or big");
    }
    if (keys.coding == ValueCoding::int8) {
        refuse(uri,
               "has endian=" + *endian + ", but 8-bit samples have no byte order: leave it out");
    }
    keys.coding = *endian == "big" ? ValueCoding::int16_big : ValueCoding::int16_little;
}

RawKeys take_keys(SourceUri& uri, const StreamOptions& options) {
    RawKeys keys;
    take_format(uri, options, keys);
    const std::optional<uint32_t> channels_key = take_count(uri, "channels");
    const std::optional<uint32_t> channels = channels_key ? channels_key : options.channels;
    const std::optional<Rational> rate_key = take_rate(uri);
    const std::optional<Rational> rate = rate_key ? rate_key : options.rate;
    const std::optional<std::string> layout_key = uri.take("layout");
    const std::optional<Layout> layout =
        layout_key ? std::optional(parse_layout(*layout_key)) : options.layout;
    keys.geometry.samples =
        take_count(uri, "samples").value_or(options.samples.value_or(keys.geometry.samples));
    keys.offset = uri.take_unsigned("offset").value_or(0);
    keys.drop_tail = take_drop_tail(uri);
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        refuse(uri, "names no file: write it like raw:capture.bin?channels=2&rate=48000");
    }
    if (!channels) {
        refuse(uri, "does not say how many channels it has: give --channels or the key channels=");
    }
    if (!rate) {
        refuse(uri, "does not say its sample rate: give --rate or the key rate=, in Hz");
    }
    keys.geometry.channels = *channels;
    keys.rate = *rate;
    // Not FrameGeometry's default: what writes headerless files writes interleaved samples.
    keys.geometry.layout = layout.value_or(Layout::sample_major);
    keys.layout_is_default = !layout && keys.geometry.channels > 1;
    keys.geometry.validate();
    return keys;
}

class RawSource : public Source {
  public:
    RawSource(Recording recording, std::string description)
        : recording_(std::move(recording)), description_(std::move(description)) {}

    Stream stream() const override { return recording_.stream; }
    std::optional<uint64_t> total_samples() const override { return recording_.total_samples(); }
    OverrunPolicy default_policy() const override { return OverrunPolicy::block; }
    std::string describe() const override { return description_; }
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        recording_.play(writer, policy, stop);
    }

  private:
    Recording recording_;
    std::string description_;
};

std::string description_of(const Recording& recording, const RawKeys& keys, uint64_t dropped) {
    return "raw file '" + recording.file.path() + "': " + text_of(recording.stream) +
           (keys.layout_is_default ? " (sample-major assumed)" : "") + ", " +
           std::string(name_of(keys.coding)) + " values, " +
           std::to_string(recording.total_samples()) + " samples per channel" +
           (keys.offset > 0 ? " from byte " + std::to_string(keys.offset) : "") +
           (dropped > 0 ? ", last " + std::to_string(dropped) + " bytes dropped (tail=drop)" : "");
}

}  // namespace

std::unique_ptr<Source> open_raw_source(SourceUri uri, const StreamOptions& options) {
    const RawKeys keys = take_keys(uri, options);
    Recording recording{RegularFile(uri.path()), keys.coding, {}, {}};
    recording.stream.geometry = keys.geometry;
    recording.stream.rate = keys.rate;
    if (keys.coding == ValueCoding::int8) {
        recording.stream.over_range_low = INT8_MIN;
        recording.stream.over_range_high = INT8_MAX;
    }
    const uint64_t size = recording.file.size();
    if (size == 0) {
        throw UsageError("'" + uri.path() + "' is empty: give a file with data");
    }
    if (keys.offset >= size) {
        throw UsageError("offset=" + std::to_string(keys.offset) + " lies beyond the " +
                         std::to_string(size) + " bytes of '" + uri.path() +
                         "': give a smaller one");
    }
    const uint64_t bytes = size - keys.offset;
    const uint64_t samples =
        whole_samples(uri.path(), bytes, keys.geometry, keys.coding, keys.drop_tail);
    if (samples == 0) {
        throw UsageError("'" + uri.path() + "' holds " + std::to_string(bytes) +
                         " bytes of samples, less than one sample of all channels: check channels "
                         "and format");
    }
    recording.pieces = {{keys.offset, samples, false, 0}};
    const uint64_t dropped = bytes - samples * file_sample_bytes(keys.geometry, keys.coding);
    std::string description = description_of(recording, keys, dropped);
    return std::make_unique<RawSource>(std::move(recording), std::move(description));
}

}  // namespace echelle
