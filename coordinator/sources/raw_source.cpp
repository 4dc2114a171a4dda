#include "coordinator/sources/raw_source.hpp"

#include <algorithm>
#include <array>
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
    uint64_t block = 0;         // bytes of samples in each block; 0: no blocks
    uint64_t block_header = 0;  // bytes before each block
    ReplayKeys replay;
};

struct NamedFormat {
    std::string_view name;
    SampleFormat format;
    ValueCoding little;
    ValueCoding big;
};

constexpr std::array formats = {
    NamedFormat{"i16", SampleFormat::i16, ValueCoding::int16_little, ValueCoding::int16_big},
    NamedFormat{"ci16", SampleFormat::ci16, ValueCoding::int16_little, ValueCoding::int16_big},
    NamedFormat{"u16", SampleFormat::i16, ValueCoding::uint16_little, ValueCoding::uint16_big},
    NamedFormat{"cu16", SampleFormat::ci16, ValueCoding::uint16_little, ValueCoding::uint16_big},
    NamedFormat{"i8", SampleFormat::i16, ValueCoding::int8, ValueCoding::int8},
    NamedFormat{"ci8", SampleFormat::ci16, ValueCoding::int8, ValueCoding::int8},
    NamedFormat{"u8", SampleFormat::i16, ValueCoding::uint8, ValueCoding::uint8},
    NamedFormat{"cu8", SampleFormat::ci16, ValueCoding::uint8, ValueCoding::uint8},
};

[[noreturn]] void refuse(const SourceUri& uri, const std::string& why) {
    throw UsageError("source '" + uri.text() + "' " + why);
}

void take_format(SourceUri& uri, const StreamOptions& options, RawKeys& keys) {
    const std::string name = uri.take("format").value_or(
        std::string(name_of(options.format.value_or(SampleFormat::i16))));
    const auto* const format =
        std::find_if(formats.begin(), formats.end(),
                     [&](const NamedFormat& known) { return known.name == name; });
    if (format == formats.end()) {
        refuse(uri, "has format=" + name +
                        ": give i16, ci16, u16, cu16, i8, ci8, u8 or cu8, or convert the samples "
                        "to one of them");
    }
    keys.geometry.format = format->format;
    const std::optional<std::string> endian = uri.take("endian");
    if (endian && *endian != "little" && *endian != "big") {
        refuse(uri, "has endian=" + *endian + ": give little or big");
    }
    if (endian && is_8_bit(format->little)) {
        refuse(uri,
               "has endian=" + *endian + ", but 8-bit samples have no byte order: leave it out");
    }
    keys.coding = endian == "big" ? format->big : format->little;
}

void take_blocks(SourceUri& uri, RawKeys& keys) {
    const std::optional<uint64_t> block = uri.take_unsigned("block");
    const std::optional<uint64_t> header = uri.take_unsigned("block-header");
    if (!block && !header) {
        return;
    }
    constexpr uint64_t most_bytes = uint64_t{1} << 40;
    const uint64_t unit = file_sample_bytes(keys.geometry, keys.coding);
    if (!block || !header || *block == 0 || *block % unit != 0 || *block > most_bytes ||
        *header > most_bytes) {
        refuse(uri,
               "has block= or block-header= alone, or unusable ones: give both, in bytes, the "
               "samples in a block being a multiple of " +
                   std::to_string(unit));
    }
    if (keys.geometry.layout != Layout::sample_major) {
        refuse(uri, "has block= with channel-major samples: only sample-major ones may have it");
    }
    keys.block = *block;
    keys.block_header = *header;
}

RawKeys take_keys(SourceUri& uri, const StreamOptions& options) {
    RawKeys keys;
    take_format(uri, options, keys);
    const std::optional<uint32_t> channels_key = take_count(uri, "channels");
    const std::optional<uint32_t> channels = channels_key ? channels_key : options.channels;
    const RecordingKeys common = take_recording_keys(uri);
    keys.replay = common.replay;
    const std::optional<Rational> rate = common.rate ? common.rate : options.rate;
    const std::optional<std::string> layout_key = uri.take("layout");
    const std::optional<Layout> layout =
        layout_key ? std::optional(parse_layout(*layout_key)) : options.layout;
    keys.geometry.channels = channels.value_or(1);
    keys.geometry.samples =
        common.samples.value_or(options.samples.value_or(keys.geometry.samples));
    // Not FrameGeometry's default: what writes headerless files writes interleaved samples.
    keys.geometry.layout = layout.value_or(Layout::sample_major);
    keys.layout_is_default = !layout && keys.geometry.channels > 1;
    keys.geometry.validate();
    keys.offset = uri.take_unsigned("offset").value_or(0);
    keys.drop_tail = take_drop_tail(uri);
    take_blocks(uri, keys);
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
    keys.rate = *rate;
    return keys;
}

SamplePiece piece_of(const RawKeys& keys, uint64_t samples) {
    SamplePiece piece;
    piece.offset = keys.offset + keys.block_header;
    piece.samples = samples;
    if (keys.block > 0) {
        piece.block_samples = keys.block / file_sample_bytes(keys.geometry, keys.coding);
        piece.between_blocks = keys.block_header;
    } else if (keys.geometry.layout == Layout::channel_major) {
        piece.block_samples = std::min<uint64_t>(samples, keys.geometry.samples);
    }
    return piece;
}

// Bytes of samples among `bytes` of the file, block headers left out.
uint64_t sample_bytes(const RawKeys& keys, uint64_t bytes) {
    if (keys.block == 0) {
        return bytes;
    }
    const uint64_t stride = keys.block + keys.block_header;
    const uint64_t rest = bytes % stride;
    return bytes / stride * keys.block + rest - std::min(rest, keys.block_header);
}

std::vector<std::string> remarks_of(const RawKeys& keys, uint64_t dropped) {
    std::vector<std::string> remarks;
    if (keys.layout_is_default) {
        remarks.emplace_back("sample-major assumed");
    }
    if (keys.offset > 0) {
        remarks.push_back("from byte " + std::to_string(keys.offset));
    }
    if (keys.block > 0) {
        remarks.push_back(std::to_string(keys.block_header) +
                          " header bytes left out before each " + std::to_string(keys.block));
    }
    if (dropped > 0) {
        remarks.push_back("last " + std::to_string(dropped) + " bytes dropped (tail=drop)");
    }
    return remarks;
}

void check_size(const RegularFile& file, const RawKeys& keys) {
    if (file.size() == 0) {
        throw UsageError("'" + file.path() + "' is empty: give a file with data");
    }
    if (keys.offset >= file.size()) {
        throw UsageError("offset=" + std::to_string(keys.offset) + " lies beyond the " +
                         std::to_string(file.size()) + " bytes of '" + file.path() +
                         "': give a smaller one");
    }
}

}  // namespace

std::unique_ptr<Source> open_raw_source(SourceUri uri, const StreamOptions& options) {
    const RawKeys keys = take_keys(uri, options);
    RegularFile file(uri.path());
    check_size(file, keys);
    const uint64_t bytes = sample_bytes(keys, file.size() - keys.offset);
    const uint64_t samples =
        whole_samples(file.path(), bytes, keys.geometry, keys.coding, keys.drop_tail);
    if (samples == 0) {
        throw UsageError("'" + file.path() + "' holds " + std::to_string(bytes) +
                         " bytes of samples, less than one sample of all channels: check channels "
                         "and format");
    }
    Recording recording;
    recording.stream.geometry = keys.geometry;
    recording.stream.rate = keys.rate;
    set_over_range(recording.stream, keys.coding);
    recording.pieces = {piece_of(keys, samples)};
    recording.name = "raw file '" + file.path() + "'";
    recording.coding = name_of(keys.coding);
    recording.remarks =
        remarks_of(keys, bytes - samples * file_sample_bytes(keys.geometry, keys.coding));
    const bool in_rows = keys.geometry.layout == Layout::channel_major;
    recording.store = std::make_unique<FileStore>(std::move(file), keys.geometry, keys.coding,
                                                  in_rows ? 1 : keys.geometry.channels);
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
