// A card's bytes for tests: whole frames as they stand on the wire.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/card_frame.hpp"
#include "common/crc32.hpp"

namespace echelle {

// 2 channels x 16 samples: 64 bytes of samples, 192 on the wire.
inline CardFrameHeader small_card_header(uint64_t sequence) {
    CardFrameHeader header;
    header.flags = card_has_trailer;
    header.geometry = {2, 16, SampleFormat::i16, Layout::sample_major};
    header.rate_hz = 1'000'000;
    header.sequence = sequence;
    header.sample_index = sequence * 16;
    return header;
}

// Its samples all have the value of its sequence's low byte, in both halves.
inline std::string card_frame_of(const CardFrameHeader& header) {
    std::string bytes(card_frame_bytes(header), '\0');
    const std::span<std::byte> wire = std::as_writable_bytes(std::span(bytes));
    const auto payload = wire.subspan(header.header_bytes, header.geometry.frame_bytes());
    std::fill(payload.begin(), payload.end(), static_cast<std::byte>(header.sequence));
    write_card_header(header, wire);
    if (header.has_trailer()) {
        write_card_trailer({crc32(payload), 0, header.sequence}, wire.last(card_trailer_bytes));
    }
    return bytes;
}

inline std::string small_card_frame(uint64_t sequence) {
    return card_frame_of(small_card_header(sequence));
}

}  // namespace echelle
