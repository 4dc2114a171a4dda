#include "common/card_frame.hpp"

#include <bit>
#include <cstring>

#include "common/crc32.hpp"
#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

// The bytes as gateware writes them. The structs below are the layout, on little-endian machines.
static_assert(std::endian::native == std::endian::little);

struct WireHeader {
    uint32_t magic;          //  0
    uint16_t version;        //  4
    uint16_t header_bytes;   //  6
    uint32_t flags;          //  8
    uint16_t stream;         // 12
    uint8_t format;          // 14  SampleFormat
    uint8_t layout;          // 15  Layout
    uint32_t channels;       // 16
    uint32_t samples;        // 20
    uint32_t payload_bytes;  // 24
    uint32_t rate_hz;        // 28
    uint64_t sequence;       // 32
    uint64_t sample_index;   // 40
    int64_t time_ns;         // 48
    uint32_t zero;           // 56
    uint32_t crc;            // 60  of the 60 bytes before it
};
static_assert(sizeof(WireHeader) == card_header_bytes);

struct WireTrailer {
    uint32_t magic;     //  0
    uint32_t data_crc;  //  4
    uint64_t sequence;  //  8
    uint32_t flags;     // 16
    uint8_t zero[40];   // 20
    uint32_t crc;       // 60  of the 60 bytes before it
};
static_assert(sizeof(WireTrailer) == card_trailer_bytes);

constexpr size_t checked_bytes = 60;

uint32_t crc_of(std::span<const std::byte> bytes) {
    return crc32(bytes.first(checked_bytes));
}

bool is_possible(const FrameGeometry& geometry, const WireHeader& wire) {
    if (wire.header_bytes < card_header_bytes || wire.header_bytes > most_card_header_bytes ||
        wire.header_bytes % card_alignment != 0) {
        return false;
    }
    try {
        geometry.validate();
    } catch (const UsageError&) {
        return false;
    }
    return geometry.frame_bytes() == wire.payload_bytes;
}

}  // namespace

size_t card_payload_bytes(const FrameGeometry& geometry) {
    return (geometry.frame_bytes() + card_alignment - 1) / card_alignment * card_alignment;
}

size_t card_frame_bytes(const CardFrameHeader& header) {
    return header.header_bytes + card_payload_bytes(header.geometry) +
           (header.has_trailer() ? card_trailer_bytes : 0);
}

CardFrameVerdict parse_card_header(std::span<const std::byte> bytes, CardFrameHeader& header) {
    ECHELLE_INVARIANT(bytes.size() >= card_header_bytes);
    WireHeader wire{};
    std::memcpy(&wire, bytes.data(), sizeof wire);
    if (wire.magic != card_header_magic) {
        return CardFrameVerdict::no_magic;
    }
    if (wire.crc != crc_of(bytes)) {
        return CardFrameVerdict::bad_crc;
    }
    if (wire.version >> 8 != card_frame_version >> 8) {
        return CardFrameVerdict::unknown_version;
    }
    const FrameGeometry geometry{wire.channels, wire.samples, SampleFormat{wire.format},
                                 Layout{wire.layout}};
    if (!is_possible(geometry, wire)) {
        return CardFrameVerdict::impossible;
    }
    header.header_bytes = wire.header_bytes;
    header.flags = wire.flags;
    header.stream = wire.stream;
    header.rate_hz = wire.rate_hz;
    header.geometry = geometry;
    header.sequence = wire.sequence;
    header.sample_index = wire.sample_index;
    header.time_ns = wire.time_ns;
    return CardFrameVerdict::good;
}

CardFrameVerdict parse_card_trailer(std::span<const std::byte> bytes, CardFrameTrailer& trailer) {
    ECHELLE_INVARIANT(bytes.size() >= card_trailer_bytes);
    WireTrailer wire{};
    std::memcpy(&wire, bytes.data(), sizeof wire);
    if (wire.magic != card_trailer_magic) {
        return CardFrameVerdict::no_magic;
    }
    if (wire.crc != crc_of(bytes)) {
        return CardFrameVerdict::bad_crc;
    }
    trailer = {wire.data_crc, wire.flags, wire.sequence};
    return CardFrameVerdict::good;
}

void write_card_header(const CardFrameHeader& header, std::span<std::byte> bytes) {
    ECHELLE_INVARIANT(bytes.size() >= card_header_bytes);
    WireHeader wire{};
    wire.magic = card_header_magic;
    wire.version = card_frame_version;
    wire.header_bytes = header.header_bytes;
    wire.flags = header.flags;
    wire.stream = header.stream;
    wire.format = static_cast<uint8_t>(header.geometry.format);
    wire.layout = static_cast<uint8_t>(header.geometry.layout);
    wire.channels = header.geometry.channels;
    wire.samples = header.geometry.samples;
    wire.payload_bytes = static_cast<uint32_t>(header.geometry.frame_bytes());
    wire.rate_hz = header.rate_hz;
    wire.sequence = header.sequence;
    wire.sample_index = header.sample_index;
    wire.time_ns = header.time_ns;
    std::memcpy(bytes.data(), &wire, sizeof wire);
    wire.crc = crc_of(bytes);
    std::memcpy(bytes.data(), &wire, sizeof wire);
}

void write_card_trailer(const CardFrameTrailer& trailer, std::span<std::byte> bytes) {
    ECHELLE_INVARIANT(bytes.size() >= card_trailer_bytes);
    WireTrailer wire{};
    wire.magic = card_trailer_magic;
    wire.data_crc = trailer.data_crc;
    wire.sequence = trailer.sequence;
    wire.flags = trailer.flags;
    std::memcpy(bytes.data(), &wire, sizeof wire);
    wire.crc = crc_of(bytes);
    std::memcpy(bytes.data(), &wire, sizeof wire);
}

}  // namespace echelle
