// A sequence number in the header of a datagram: its width, byte order and place. What sends and
// what receives such datagrams are both told in the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace echelle {

struct SequenceField {
    uint32_t bytes = 8;  // 2, 4 or 8
    bool is_big_endian = true;
    uint32_t offset = 0;  // in the header

    // "u32be@4", "u16le" (offset 0). Throws UsageError.
    static SequenceField parse(std::string_view text);
    std::string text() const;
    uint64_t end() const { return uint64_t{offset} + bytes; }

    // `header` has end() bytes at least. A number too large for the field is cut to its low bits.
    uint64_t read(std::span<const std::byte> header) const;
    void write(uint64_t number, std::span<std::byte> header) const;
    // The same bytes taken in the other order.
    uint64_t swapped(uint64_t number) const;
    // From one number to the other the nearer way round.
    int64_t distance(uint64_t to, uint64_t from) const;
};

}  // namespace echelle
