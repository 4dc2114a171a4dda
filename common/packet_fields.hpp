// The packet's header and trailer, byte for byte: what every version of SpectrumPacket has in
// common (docs/packet.md). Used by the rooms that write and read packets; nothing here allocates or
// trusts a length it has read. Any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "common/packet.hpp"

namespace echelle {

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

constexpr uint32_t major_of(uint32_t version) {
    return version >> 16;
}
constexpr uint32_t minor_of(uint32_t version) {
    return version & 0xFFFF;
}

// The header with its CRC, of the version given; `to` has 20 bytes.
void write_header(std::byte* to, const PacketHeader& header, uint32_t version);
// Whether the CRC of the 20 bytes at `from` is right.
bool header_is_intact(const std::byte* from);
PacketHeader read_header(const std::byte* from);

// The 112 bytes of a trailer with its CRC; data_crc32 takes the place of the field in `trailer`.
void write_trailer(std::byte* to, const PacketTrailer& trailer, uint32_t data_crc32);
PacketTrailer read_trailer(const std::byte* from);
uint32_t data_crc32_in(const std::byte* trailer);
uint64_t sequence_in(const std::byte* trailer);
uint16_t flags_in(const std::byte* trailer);
// Checks the bytes after the data: of exactly one trailer of 112 bytes or more, whose last 4 are
// the CRC of all before them.
PacketError check_trailer(std::span<const std::byte> bytes);

// What stands in a sealed 1.1 packet of our own, which needs no check.
struct SealedPacket {
    PacketHeader header;
    PacketTrailer trailer;
};
SealedPacket read_sealed(std::span<const std::byte> packet);

}  // namespace echelle
