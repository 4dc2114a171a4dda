#include "coordinator/sources/sha512.hpp"

#include <algorithm>
#include <array>

#include <nettle/sha2.h>

#include "coordinator/sources/recording_files.hpp"

namespace echelle {

std::string sha512_of(const RegularFile& file, uint64_t offset, uint64_t bytes) {
    constexpr uint64_t part_bytes = uint64_t{1} << 20;
    sha512_ctx state{};
    sha512_init(&state);
    while (bytes > 0) {
        const std::string part =
            bytes_of_file(file, offset, static_cast<size_t>(std::min(bytes, part_bytes)));
        if (part.empty()) {
            break;  // the file is shorter: another digest
        }
        sha512_update(&state, part.size(), reinterpret_cast<const uint8_t*>(part.data()));
        offset += part.size();
        bytes -= part.size();
    }
    std::array<uint8_t, SHA512_DIGEST_SIZE> digest{};
    sha512_digest(&state, digest.size(), digest.data());
    std::string text;
    for (const uint8_t byte : digest) {
        constexpr std::string_view digits = "0123456789abcdef";
        text += digits[byte >> 4U];
        text += digits[byte & 0xFU];
    }
    return text;
}

}  // namespace echelle
