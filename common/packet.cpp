#include "common/packet.hpp"

#include <bit>
#include <cstring>

#include "common/crc32.hpp"
#include "common/invariant.hpp"
#include "common/packet_fields.hpp"

namespace echelle {

// The engine's floats stand in the packet as it wrote them, and the wire's are little-endian.
static_assert(std::endian::native == std::endian::little,
              "packets are sealed without copying their data: needs a little-endian machine");

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
        case PacketError::unknown_coding:
            return "unknown_coding";
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
    write_trailer(to, trailer, data_crc32_in(to));
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
    if (!header_is_intact(bytes.data())) {
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
