#include "common/packet.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "common/crc32.hpp"
#include "common/invariant.hpp"

namespace echelle {

namespace {

// The engine's floats stand in the packet as it wrote them, and the wire's are little-endian.
static_assert(std::endian::native == std::endian::little,
              "packets are sealed without copying their data: needs a little-endian machine");

constexpr size_t header_crc_at = 16;
constexpr uint32_t major_of(uint32_t version) {
    return version >> 16;
}
constexpr uint32_t minor_of(uint32_t version) {
    return version & 0xFFFF;
}

// Offsets inside the trailer, as docs/packet.md lists them.
namespace at {
constexpr size_t magic = 0;
constexpr size_t trailer_bytes = 4;
constexpr size_t flags = 6;
constexpr size_t sequence = 8;
constexpr size_t timestamp_ns = 16;
constexpr size_t first_sample = 24;
constexpr size_t rate_numerator = 32;
constexpr size_t rate_denominator = 40;
constexpr size_t first_bin_hz = 48;
constexpr size_t bin_spacing_hz = 56;
constexpr size_t nperseg = 64;
constexpr size_t noverlap = 68;
constexpr size_t segments_averaged = 72;
constexpr size_t segments_expected = 76;
constexpr size_t window = 80;
constexpr size_t scaling = 82;
constexpr size_t detrend = 83;
constexpr size_t average = 84;
constexpr size_t zero = 85;
constexpr size_t mean = 88;
constexpr size_t rms = 92;
constexpr size_t over_range_count = 96;
constexpr size_t worker = 100;
constexpr size_t data_crc32 = 104;
constexpr size_t trailer_crc32 = 108;
}  // namespace at

constexpr size_t zero_bytes = at::mean - at::zero;
constexpr size_t crc_bytes = 4;
constexpr size_t trailer_prefix_bytes = at::flags;  // what tells magic and length
static_assert(at::trailer_crc32 + crc_bytes == packet_trailer_bytes);

template <size_t bytes>
using UnsignedOf = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <typename Unsigned>
Unsigned swapped(Unsigned value) {
    if constexpr (sizeof(Unsigned) == 1) {
        return value;
    } else if constexpr (sizeof(Unsigned) == 2) {
        return __builtin_bswap16(value);
    } else if constexpr (sizeof(Unsigned) == 4) {
        return __builtin_bswap32(value);
    } else {
        return __builtin_bswap64(value);
    }
}

// Integers, floats and enums of 1, 2, 4 or 8 bytes, at any alignment.
template <typename Value>
void store_big(std::byte* to, Value value) {
    const auto bits = swapped(std::bit_cast<UnsignedOf<sizeof(Value)>>(value));
    std::memcpy(to, &bits, sizeof bits);
}

template <typename Value>
Value load_big(const std::byte* from) {
    UnsignedOf<sizeof(Value)> bits{};
    std::memcpy(&bits, from, sizeof bits);
    return std::bit_cast<Value>(swapped(bits));
}

void write_header(std::byte* to, const PacketHeader& header, uint32_t version) {
    store_big(to, version);
    store_big(to + 4, header.timestamp_us);
    store_big(to + 8, header.channel_id);
    store_big(to + 12, header.fft_size);
    store_big(to + header_crc_at, crc32({to, header_crc_at}));
}

PacketHeader read_header(const std::byte* from) {
    return {.version = load_big<uint32_t>(from),
            .timestamp_us = load_big<uint32_t>(from + 4),
            .channel_id = load_big<uint32_t>(from + 8),
            .fft_size = load_big<uint32_t>(from + 12)};
}

void write_trailer(std::byte* to, const PacketTrailer& trailer, uint32_t data_crc32) {
    store_big(to + at::magic, packet_trailer_magic);
    store_big(to + at::trailer_bytes, uint16_t{packet_trailer_bytes});
    store_big(to + at::flags, trailer.flags);
    store_big(to + at::sequence, trailer.sequence);
    store_big(to + at::timestamp_ns, trailer.timestamp_ns);
    store_big(to + at::first_sample, trailer.first_sample);
    store_big(to + at::rate_numerator, trailer.rate.numerator);
    store_big(to + at::rate_denominator, trailer.rate.denominator);
    store_big(to + at::first_bin_hz, trailer.first_bin_hz);
    store_big(to + at::bin_spacing_hz, trailer.bin_spacing_hz);
    store_big(to + at::nperseg, trailer.nperseg);
    store_big(to + at::noverlap, trailer.noverlap);
    store_big(to + at::segments_averaged, trailer.segments_averaged);
    store_big(to + at::segments_expected, trailer.segments_expected);
    store_big(to + at::window, trailer.window);
    store_big(to + at::scaling, trailer.scaling);
    store_big(to + at::detrend, trailer.detrend);
    store_big(to + at::average, trailer.average);
    std::memset(to + at::zero, 0, zero_bytes);
    store_big(to + at::mean, trailer.mean);
    store_big(to + at::rms, trailer.rms);
    store_big(to + at::over_range_count, trailer.over_range_count);
    store_big(to + at::worker, trailer.worker);
    store_big(to + at::data_crc32, data_crc32);
    store_big(to + at::trailer_crc32, crc32({to, at::trailer_crc32}));
}

PacketTrailer read_trailer(const std::byte* from) {
    return {.flags = load_big<uint16_t>(from + at::flags),
            .sequence = load_big<uint64_t>(from + at::sequence),
            .timestamp_ns = load_big<int64_t>(from + at::timestamp_ns),
            .first_sample = load_big<uint64_t>(from + at::first_sample),
            .rate = {.numerator = load_big<uint64_t>(from + at::rate_numerator),
                     .denominator = load_big<uint64_t>(from + at::rate_denominator)},
            .first_bin_hz = load_big<double>(from + at::first_bin_hz),
            .bin_spacing_hz = load_big<double>(from + at::bin_spacing_hz),
            .nperseg = load_big<uint32_t>(from + at::nperseg),
            .noverlap = load_big<uint32_t>(from + at::noverlap),
            .segments_averaged = load_big<uint32_t>(from + at::segments_averaged),
            .segments_expected = load_big<uint32_t>(from + at::segments_expected),
            .window = load_big<WindowKind>(from + at::window),
            .scaling = load_big<Scaling>(from + at::scaling),
            .detrend = load_big<Detrend>(from + at::detrend),
            .average = load_big<AverageMode>(from + at::average),
            .mean = load_big<float>(from + at::mean),
            .rms = load_big<float>(from + at::rms),
            .over_range_count = load_big<uint32_t>(from + at::over_range_count),
            .worker = load_big<uint32_t>(from + at::worker),
            .data_crc32 = load_big<uint32_t>(from + at::data_crc32)};
}

// Checks the bytes after the data: of exactly one trailer of 112 bytes or more, whose last 4 are
// the CRC of all before them.
PacketError check_trailer(std::span<const std::byte> bytes) {
    if (bytes.size() < trailer_prefix_bytes) {
        return PacketError::too_short;
    }
    const size_t length = load_big<uint16_t>(bytes.data() + at::trailer_bytes);
    if (load_big<uint32_t>(bytes.data() + at::magic) != packet_trailer_magic ||
        length < packet_trailer_bytes) {
        return PacketError::bad_trailer;
    }
    if (bytes.size() != length) {
        return bytes.size() < length ? PacketError::too_short : PacketError::too_long;
    }
    const size_t covered = length - crc_bytes;
    const bool intact = load_big<uint32_t>(bytes.data() + covered) == crc32(bytes.first(covered));
    return intact ? PacketError::none : PacketError::bad_crc;
}

}  // namespace

std::string_view name_of(PacketError error) {
    switch (error) {
        case PacketError::none:
            return "none";
        case PacketError::too_short:
            return "too_short";
        case PacketError::too_long:
            return "too_long";
        case PacketError::bad_crc:
            return "bad_crc";
        case PacketError::unknown_major:
            return "unknown_major";
        case PacketError::bad_trailer:
            return "bad_trailer";
    }
    return "unknown";
}

std::span<float> packet_data(std::span<std::byte> packet, uint32_t fft_size) {
    ECHELLE_INVARIANT(packet.size() >= packet_bytes_1_0(fft_size));
    std::byte* data = packet.data() + packet_header_bytes;
    ECHELLE_INVARIANT(std::bit_cast<uintptr_t>(data) % alignof(float) == 0);
    return {reinterpret_cast<float*>(data), fft_size};
}

void seal_packet_1_0(std::span<std::byte> packet, PacketHeader header) {
    ECHELLE_INVARIANT(packet.size() == packet_bytes_1_0(header.fft_size));
    write_header(packet.data(), header, packet_version_1_0);
}

void seal_packet_1_1(std::span<std::byte> packet, PacketHeader header, PacketTrailer trailer) {
    ECHELLE_INVARIANT(packet.size() == packet_bytes_1_1(header.fft_size));
    write_header(packet.data(), header, packet_version_1_1);
    const auto data = packet.subspan(packet_header_bytes, size_t{4} * header.fft_size);
    write_trailer(packet.data() + packet_bytes_1_0(header.fft_size), trailer, crc32(data));
}

void reseal_trailer(std::span<std::byte> packet, PacketTrailer trailer) {
    ECHELLE_INVARIANT(packet.size() >= packet_bytes_1_1(0));
    const PacketHeader header = read_header(packet.data());
    ECHELLE_INVARIANT(header.version == packet_version_1_1);
    ECHELLE_INVARIANT(packet.size() == packet_bytes_1_1(header.fft_size));
    std::byte* to = packet.data() + packet_bytes_1_0(header.fft_size);
    write_trailer(to, trailer, load_big<uint32_t>(to + at::data_crc32));
}

float PacketView::value(size_t index) const {
    ECHELLE_INVARIANT(index < data.size() / sizeof(float));
    float value = 0;
    std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
    return value;
}

PacketError decode_packet(std::span<const std::byte> bytes, PacketView& view) {
    if (bytes.size() < packet_header_bytes) {
        return PacketError::too_short;
    }
    if (load_big<uint32_t>(bytes.data() + header_crc_at) != crc32(bytes.first(header_crc_at))) {
        return PacketError::bad_crc;
    }
    const PacketHeader header = read_header(bytes.data());
    if (major_of(header.version) != 1) {
        return PacketError::unknown_major;
    }
    const auto body = bytes.subspan(packet_header_bytes);
    if (header.fft_size > body.size() / sizeof(float)) {
        return PacketError::too_short;
    }
    const auto data = body.first(sizeof(float) * header.fft_size);
    const auto rest = body.subspan(data.size());
    const bool has_trailer = minor_of(header.version) >= 1;
    if (!has_trailer) {
        if (!rest.empty()) {
            return PacketError::too_long;
        }
        view = {.header = header, .data = data, .has_trailer = false, .trailer = {}};
        return PacketError::none;
    }
    if (const PacketError error = check_trailer(rest); error != PacketError::none) {
        return error;
    }
    const PacketTrailer trailer = read_trailer(rest.data());
    if (trailer.data_crc32 != crc32(data)) {
        return PacketError::bad_crc;
    }
    view = {.header = header, .data = data, .has_trailer = true, .trailer = trailer};
    return PacketError::none;
}

}  // namespace echelle
