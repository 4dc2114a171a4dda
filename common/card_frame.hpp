// The frame on a card's wire: a header of 64 bytes, the samples, and (where the card makes one) a
// trailer of 64 bytes. docs/capture-cards.md documents every byte for gateware; fpga_sim/gateware
// makes such frames in hardware, echelle-fpga-sim in software, coordinator/sources/reframer.hpp
// finds them in a stream of bytes.
//
//   [header, header_bytes] [samples, payload_bytes] [zeros to a multiple of 64] [trailer, 64]
//
// Little-endian. One AXI4-Stream packet (TLAST) for each frame. What is known only when the last
// sample has passed (the checksum of the samples, over-range) stands in the trailer, so that
// gateware needs no memory for a whole frame. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/frame.hpp"

namespace echelle {

inline constexpr size_t card_header_bytes = 64;
inline constexpr size_t card_trailer_bytes = 64;
inline constexpr size_t most_card_header_bytes = 4096;
// Sizes on the wire are multiples of it: the beat of a 512-bit bus, and what XDMA wants of a
// transfer's length.
inline constexpr size_t card_alignment = 64;
inline constexpr uint32_t card_header_magic = 0x46484345;   // bytes "ECHF"
inline constexpr uint32_t card_trailer_magic = 0x54484345;  // bytes "ECHT"
inline constexpr uint16_t card_frame_version = 0x0100;      // major in the high byte

enum CardFrameFlag : uint32_t {
    card_has_trailer = 1 << 0,   // header: a trailer follows the samples
    card_overflow = 1 << 1,      // header: the card lost frames just before this one
    card_over_range = 1 << 2,    // header or trailer: a sample of this frame was over range
    card_time_is_unix = 1 << 3,  // header: time_ns counts from the Unix epoch
};

struct CardFrameHeader {
    uint16_t header_bytes = card_header_bytes;  // a multiple of 64, at most 4096
    uint32_t flags = 0;                         // CardFrameFlag
    uint16_t stream = 0;   // another number whenever sequence and sample_index begin anew
    uint32_t rate_hz = 0;  // samples per second of each channel; 0: not said
    FrameGeometry geometry;
    uint64_t sequence = 0;      // frames of this stream before this one, lost ones included
    uint64_t sample_index = 0;  // of the frame's first sample in the stream, per channel
    int64_t time_ns = 0;        // the card's clock at the first sample

    bool has_trailer() const { return (flags & card_has_trailer) != 0; }
    bool operator==(const CardFrameHeader&) const = default;
};

struct CardFrameTrailer {
    uint32_t data_crc = 0;  // IEEE CRC-32 of the payload_bytes of samples, without the padding
    uint32_t flags = 0;     // CardFrameFlag
    uint64_t sequence = 0;  // the header's

    bool operator==(const CardFrameTrailer&) const = default;
};

enum class CardFrameVerdict {
    good,
    no_magic,         // it begins otherwise
    bad_crc,          // the magic, and then other bytes than the card wrote
    unknown_version,  // of another major version
    impossible,       // a good CRC on fields that cannot be: the gateware is wrong
};

// Bytes of samples with their padding, and of the whole frame on the wire.
size_t card_payload_bytes(const FrameGeometry& geometry);
size_t card_frame_bytes(const CardFrameHeader& header);

// Reads the first card_header_bytes of `bytes`, which must have that many. `header` is set when the
// verdict is good; its geometry is then valid and says as much as the header's payload_bytes.
CardFrameVerdict parse_card_header(std::span<const std::byte> bytes, CardFrameHeader& header);
CardFrameVerdict parse_card_trailer(std::span<const std::byte> bytes, CardFrameTrailer& trailer);

// Writes card_header_bytes (of header.header_bytes; the caller zeroes what follows them) and
// card_trailer_bytes, checksums included.
void write_card_header(const CardFrameHeader& header, std::span<std::byte> bytes);
void write_card_trailer(const CardFrameTrailer& trailer, std::span<std::byte> bytes);

}  // namespace echelle
