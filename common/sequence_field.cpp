#include "common/sequence_field.hpp"

#include <charconv>

#include "common/error.hpp"

namespace echelle {

SequenceField SequenceField::parse(std::string_view text) {
    SequenceField field;
    const size_t at = text.find('@');
    const std::string_view type = text.substr(0, at);
    bool is_known = false;
    for (const uint32_t bytes : {2U, 4U, 8U}) {
        for (const bool is_big : {true, false}) {
            if (type == "u" + std::to_string(8 * bytes) + (is_big ? "be" : "le")) {
                field.bytes = bytes;
                field.is_big_endian = is_big;
                is_known = true;
            }
        }
    }
    if (at != std::string_view::npos) {
        constexpr uint32_t farthest = 65'000;
        const std::string_view offset = text.substr(at + 1);
        const char* const end = offset.data() + offset.size();
        const auto [stop, error] = std::from_chars(offset.data(), end, field.offset);
        is_known = is_known && error == std::errc() && stop == end && field.offset <= farthest;
    }
    if (!is_known) {
        throw UsageError("sequence=" + std::string(text) +
                         " is not understood: give u16, u32 or u64, then be or le, then @ and the "
                         "byte at which it begins, like u32be@4, or none");
    }
    return field;
}

std::string SequenceField::text() const {
    return "u" + std::to_string(8 * bytes) + (is_big_endian ? "be@" : "le@") +
           std::to_string(offset);
}

uint64_t SequenceField::read(std::span<const std::byte> header) const {
    uint64_t number = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
        const uint32_t place = is_big_endian ? i : bytes - 1 - i;
        number = number << 8 | std::to_integer<uint64_t>(header[offset + place]);
    }
    return number;
}

void SequenceField::write(uint64_t number, std::span<std::byte> header) const {
    for (uint32_t i = 0; i < bytes; ++i) {
        const uint32_t place = is_big_endian ? bytes - 1 - i : i;
        header[offset + place] = static_cast<std::byte>(number >> (8 * i));
    }
}

uint64_t SequenceField::swapped(uint64_t number) const {
    return __builtin_bswap64(number) >> (64 - 8 * bytes);
}

int64_t SequenceField::distance(uint64_t to, uint64_t from) const {
    const unsigned unused = 64 - 8 * bytes;
    return static_cast<int64_t>((to - from) << unused) >> unused;
}

}  // namespace echelle
