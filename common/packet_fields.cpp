#include "common/packet_fields.hpp"

#include "common/crc32.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr size_t header_crc_at = 16;

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

}  // namespace

void write_header(std::byte* to, const PacketHeader& header, uint32_t version) {
    store_big(to, version);
    store_big(to + 4, header.timestamp_us);
    store_big(to + 8, header.channel_id);
    store_big(to + 12, header.fft_size);
    store_big(to + header_crc_at, crc32({to, header_crc_at}));
}

bool header_is_intact(const std::byte* from) {
    return load_big<uint32_t>(from + header_crc_at) == crc32({from, header_crc_at});
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

uint32_t data_crc32_in(const std::byte* trailer) {
    return load_big<uint32_t>(trailer + at::data_crc32);
}

uint64_t sequence_in(const std::byte* trailer) {
    return load_big<uint64_t>(trailer + at::sequence);
}

uint16_t flags_in(const std::byte* trailer) {
    return load_big<uint16_t>(trailer + at::flags);
}

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

SealedPacket read_sealed(std::span<const std::byte> packet) {
    ECHELLE_INVARIANT(packet.size() >= packet_bytes_1_1(0));
    return {.header = read_header(packet.data()),
            .trailer = read_trailer(packet.data() + packet.size() - packet_trailer_bytes)};
}

}  // namespace echelle
