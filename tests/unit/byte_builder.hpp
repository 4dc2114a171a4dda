// Files for the tests of readers, byte by byte as their formats' specifications say.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelle {

// `count` bytes of an unsigned number.
inline std::string le(uint64_t value, size_t count) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) {
        bytes += static_cast<char>(value >> (8 * i));
    }
    return bytes;
}

inline std::string be(uint64_t value, size_t count) {
    const std::string bytes = le(value, count);
    return {bytes.rbegin(), bytes.rend()};
}

inline std::string le_double(double value) {
    return le(std::bit_cast<uint64_t>(value), sizeof value);
}

// Not inlined: GCC 12 warns of out-of-bounds copies in short strings that it has merged.
[[gnu::noinline]] inline std::string padded(const std::string& text, size_t size,
                                            char with = '\0') {
    std::string bytes(size, with);
    text.copy(bytes.data(), size);
    return bytes;
}

}  // namespace echelle
