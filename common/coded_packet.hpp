// SpectrumPacket 2.0: the values of a 1.1 packet in half or a quarter of the bytes, with a stated
// error. docs/packet.md defines every byte.
//
//   byte 0    header, 20 bytes, as in every version
//   byte 20   coding block, 16 bytes, big-endian
//   byte 36   fft_size coded values, little-endian
//   then      trailer, as in 1.1
//
// Nothing here allocates but where said, and nothing trusts a length it has read. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/packet.hpp"

namespace echelle {

inline constexpr uint32_t packet_version_2_0 = 0x00020000;
inline constexpr size_t packet_coding_bytes = 16;

enum class PacketCoding : uint16_t {
    // value = step x float16; step a power of two that puts the largest value into [2^14, 2^15).
    // Off by 2^-11 of the value or 2^-39 of the largest one (-117 dB), whichever is more.
    float16 = 1,
    // value = 10^((offset + step x code) / 10), step 0.5 dB. Off by 0.25 dB, and 0 where the value
    // is more than some 126 dB below the largest one. Code 0 is 0, code 255 not a finite number.
    decibel8 = 2,
};

constexpr size_t bytes_per_value(PacketCoding coding) {
    return coding == PacketCoding::float16 ? 2 : 1;
}
constexpr size_t coded_packet_bytes(PacketCoding coding, uint32_t fft_size) {
    return packet_header_bytes + packet_coding_bytes + bytes_per_value(coding) * fft_size +
           packet_trailer_bytes;
}

// The 2.0 packet of a sealed 1.1 packet of our own. `to` has exactly coded_packet_bytes of its
// fft_size, at any alignment.
void encode_coded_packet(std::span<const std::byte> packet_1_1, PacketCoding coding,
                         std::span<std::byte> to);

// A decoded packet; refers to the caller's bytes.
struct CodedPacketView {
    PacketHeader header;
    PacketCoding coding = PacketCoding::float16;
    float offset = 0;  // dB; 0 for float16
    float step = 1;    // dB, or what one float16 unit is worth
    std::span<const std::byte> data;
    PacketTrailer trailer;

    // The values in the trailer's unit; `to` holds header.fft_size.
    void values(std::span<float> to) const;
};

// Checks lengths, version and every CRC of exactly one packet of version 2.x. `view` is meaningful
// only when the answer is none.
PacketError decode_coded_packet(std::span<const std::byte> bytes, CodedPacketView& view);

}  // namespace echelle
