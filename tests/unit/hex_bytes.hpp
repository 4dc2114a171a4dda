// Bytes written out in hexadecimal, as a standard's figures show them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace echelle {

// "1C55 000A" -> 4 bytes; blanks between digits mean nothing.
inline std::string hex(std::string_view text) {
    std::string bytes;
    int high = -1;
    for (const char c : text) {
        if (c == ' ') {
            continue;
        }
        const int digit = c <= '9' ? c - '0' : (c & ~0x20) - 'A' + 10;
        if (high < 0) {
            high = digit;
        } else {
            bytes += static_cast<char>(high * 16 + digit);
            high = -1;
        }
    }
    return bytes;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

}  // namespace echelle
