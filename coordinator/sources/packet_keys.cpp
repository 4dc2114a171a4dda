#include "coordinator/sources/packet_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/spead.hpp"
#include "coordinator/sources/stream_options.hpp"
#include "coordinator/sources/vita49.hpp"

namespace echelle {
namespace {

constexpr std::array framings = {FramingKind::vita49, FramingKind::spead, FramingKind::raw};
constexpr double highest_rate = 1e12;

[[noreturn]] void refuse(const SourceUri& uri, const std::string& why) {
    throw UsageError("source '" + uri.text() + "' " + why);
}

FramingKind take_framing(SourceUri& uri, std::optional<FramingKind> guess) {
    const std::optional<std::string> name = uri.take("framing");
    if (!name) {
        if (guess) {
            return *guess;
        }
        refuse(uri, "does not say what its datagrams are: give framing=vita49, spead or raw");
    }
    for (const FramingKind kind : framings) {
        if (*name == name_of(kind)) {
            return kind;
        }
    }
    refuse(uri, "has framing=" + *name + ": give vita49, spead or raw");
}

// `streams`: how many are joined.
FrameGeometry take_geometry(SourceUri& uri, const StreamOptions& options, uint32_t streams) {
    FrameGeometry geometry;
    const std::optional<uint32_t> channels = take_count(uri, "channels");
    geometry.channels = channels.value_or(options.channels.value_or(streams));
    if (geometry.channels % streams != 0) {
        refuse(uri, "has " + std::to_string(geometry.channels) + " channels in " +
                        std::to_string(streams) +
                        " streams: each stream must have as many, leave channels out for one each");
    }
    const std::optional<uint32_t> samples = take_count(uri, "samples");
    geometry.samples = samples.value_or(options.samples.value_or(geometry.samples));
    const std::optional<std::string> format = uri.take("format");
    geometry.format =
        format ? parse_sample_format(*format) : options.format.value_or(SampleFormat::i16);
    geometry.layout = Layout::sample_major;
    if (options.layout && *options.layout != Layout::sample_major && geometry.channels > 1) {
        refuse(uri,
               "is channel-major by --layout: datagrams hold interleaved samples, leave it out");
    }
    geometry.validate();
    return geometry;
}

Rational take_stream_rate(SourceUri& uri, const StreamOptions& options) {
    const std::optional<Rational> key = take_rate(uri);
    const std::optional<Rational> rate = key ? key : options.rate;
    if (!rate) {
        refuse(uri, "does not say its sample rate: give --rate or the key rate=, in Hz");
    }
    if (rate->value() > highest_rate) {
        refuse(uri, "has a rate of " + rate->text() + " Hz: give 1e12 at most");
    }
    return *rate;
}

uint32_t parse_stream_id(const SourceUri& uri, const std::string& key, std::string_view text) {
    const bool is_hexadecimal = text.starts_with("0x");
    const char* const begin = text.data() + (is_hexadecimal ? 2 : 0);
    const char* const end = text.data() + text.size();
    uint32_t id = 0;
    const auto [stop, error] = std::from_chars(begin, end, id, is_hexadecimal ? 16 : 10);
    if (error != std::errc() || stop != end) {
        refuse(uri, "has " + key + ": a stream id is a number like 0x1A or 26");
    }
    return id;
}

std::vector<uint32_t> take_stream_ids(SourceUri& uri, FramingKind framing) {
    const std::optional<std::string> list =
        framing == FramingKind::vita49 ? uri.take("streams") : std::nullopt;
    std::vector<uint32_t> ids;
    for (size_t begin = 0; list && begin <= list->size();) {
        const size_t end = std::min(list->find(',', begin), list->size());
        const uint32_t id = parse_stream_id(uri, "streams=" + *list,
                                            std::string_view(*list).substr(begin, end - begin));
        if (std::ranges::find(ids, id) != ids.end()) {
            refuse(uri, "has streams=" + *list + ", one of them twice: give each once");
        }
        ids.push_back(id);
        begin = end + 1;
    }
    return ids;
}

RawHeader take_header(SourceUri& uri) {
    RawHeader header;
    const std::optional<std::string> sequence = uri.take("sequence");
    if (!sequence) {
        refuse(uri,
               "does not say where its sequence number is: give sequence=u32be@0 (u16, u32 or u64, "
               "be or le, and the byte at which it begins), or sequence=none");
    }
    uint64_t least = 0;
    if (*sequence != "none") {
        header.sequence = SequenceField::parse(*sequence);
        least = header.sequence->end();
    }
    const uint64_t bytes = uri.take_unsigned("header").value_or(least);
    if (bytes < least || bytes > 65'500) {
        refuse(uri, "has header=" + std::to_string(bytes) +
                        ": give the bytes before the samples, " + std::to_string(least) +
                        " to 65500");
    }
    header.bytes = static_cast<uint32_t>(bytes);
    header.step = uri.take_unsigned("sequence-step").value_or(1);
    if (header.step < 1 || header.step > 1'000'000) {
        refuse(uri, "has sequence-step=" + std::to_string(header.step) + ": give 1 to 1000000");
    }
    return header;
}

bool take_big_endian(SourceUri& uri, FramingKind framing) {
    const std::optional<std::string> endian = uri.take("endian");
    if (endian && *endian != "little" && *endian != "big") {
        refuse(uri, "has endian=" + *endian + ": give little or big");
    }
    // Both standards say big; what has no standard is written by little-endian machines.
    return endian ? *endian == "big" : framing != FramingKind::raw;
}

void take_keys_of_framing(SourceUri& uri, PacketKeys& keys) {
    switch (keys.framing) {
        case FramingKind::vita49:
            if (const auto id = uri.take("stream")) {
                keys.stream_id = parse_stream_id(uri, "stream=" + *id, *id);
            }
            if (!keys.stream_ids.empty() && std::exchange(keys.stream_id, keys.stream_ids[0])) {
                refuse(uri, "has stream= and streams=: give one of them");
            }
            return;
        case FramingKind::spead:
            keys.heap_step = uri.take_unsigned("heap-step").value_or(1);
            if (keys.heap_step < 1 || keys.heap_step > uint64_t{1} << 40) {
                refuse(uri, "has heap-step=" + std::to_string(keys.heap_step) +
                                ": give by how much the heap count grows, 1 to 2^40");
            }
            return;
        case FramingKind::raw:
            keys.header = take_header(uri);
            return;
    }
}

}  // namespace

std::string_view name_of(FramingKind kind) {
    switch (kind) {
        case FramingKind::vita49:
            return "vita49";
        case FramingKind::spead:
            return "spead";
        case FramingKind::raw:
            return "raw";
    }
    return "unknown";
}

std::optional<FramingKind> framing_seen_in(std::span<const std::byte> datagram) {
    SpeadPacket spead;
    if (parse_spead(datagram, spead) == DatagramFault::none) {
        return FramingKind::spead;
    }
    Vita49Packet vita49;
    if (parse_vita49(datagram, vita49) == DatagramFault::none) {
        return FramingKind::vita49;
    }
    return std::nullopt;
}

bool PacketKeys::swaps_bytes() const {
    return big_endian != (std::endian::native == std::endian::big);
}

std::unique_ptr<Framing> PacketKeys::make_framing() const {
    const auto streams = static_cast<uint32_t>(std::max<size_t>(1, stream_ids.size()));
    const SampleLayout layout{stream.geometry.channels / streams,
                              stream.geometry.values_per_sample()};
    switch (framing) {
        case FramingKind::vita49:
            return std::make_unique<Vita49Framing>(layout, stream.rate, stream_id);
        case FramingKind::spead:
            return std::make_unique<SpeadFraming>(layout, heap_step);
        case FramingKind::raw:
            break;
    }
    return std::make_unique<RawFraming>(layout, header);
}

std::unique_ptr<StreamJoiner> PacketKeys::make_joiner() const {
    if (stream_ids.empty()) {
        return nullptr;
    }
    const SampleLayout layout{stream.geometry.channels, stream.geometry.values_per_sample()};
    return std::make_unique<StreamJoiner>(layout, stream.rate, stream_ids, reorder);
}

std::string PacketKeys::text() const {
    std::string what;
    switch (framing) {
        case FramingKind::vita49:
            what = "VITA 49 packets" +
                   (stream_ids.empty()
                        ? std::string()
                        : ", " + std::to_string(stream_ids.size()) + " streams joined,");
            break;
        case FramingKind::spead:
            what = "SPEAD heaps";
            break;
        case FramingKind::raw:
            what = "datagrams with a header of " + std::to_string(header.bytes) + " bytes" +
                   (header.sequence ? ", sequence " + header.sequence->text() : "");
            break;
    }
    return what + " of " + text_of(stream) + ", " + (big_endian ? "big" : "little") + "-endian";
}

PacketKeys take_packet_keys(SourceUri& uri, const StreamOptions& options,
                            std::optional<FramingKind> guess) {
    PacketKeys keys;
    keys.framing = take_framing(uri, guess);
    keys.stream_ids = take_stream_ids(uri, keys.framing);
    const auto streams = static_cast<uint32_t>(std::max<size_t>(1, keys.stream_ids.size()));
    keys.stream.geometry = take_geometry(uri, options, streams);
    keys.stream.rate = take_stream_rate(uri, options);
    keys.big_endian = take_big_endian(uri, keys.framing);
    const std::optional<uint32_t> reorder = take_count(uri, "reorder");
    keys.reorder = reorder.value_or(keys.reorder);
    if (keys.reorder < 1 || keys.reorder > 1024) {
        refuse(uri, "has reorder=" + std::to_string(keys.reorder) + ": give 1 to 1024 packets");
    }
    take_keys_of_framing(uri, keys);
    return keys;
}

}  // namespace echelle
