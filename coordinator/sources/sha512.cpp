#include "coordinator/sources/sha512.hpp"

#include <algorithm>
#include <array>

#include "coordinator/sources/recording_files.hpp"

namespace echelle {

void Sha512::update(std::span<const std::byte> bytes) {
    sha512_update(&state_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
}

std::string Sha512::text() const {
    sha512_ctx last = state_;  // taking the digest ends it
    std::array<uint8_t, SHA512_DIGEST_SIZE> digest{};
    sha512_digest(&last, digest.size(), digest.data());
    std::string text;
    for (const uint8_t byte : digest) {
        constexpr std::string_view digits = "0123456789abcdef";
        text += digits[byte >> 4U];
        text += digits[byte & 0xFU];
    }
    return text;
}

std::string sha512_of(const RegularFile& file, uint64_t offset, uint64_t bytes) {
    constexpr uint64_t part_bytes = uint64_t{1} << 20;
    Sha512 digest;
    while (bytes > 0) {
        const std::string part =
            bytes_of_file(file, offset, static_cast<size_t>(std::min(bytes, part_bytes)));
        if (part.empty()) {
            break;  // the file is shorter: another digest
        }
        digest.update(std::as_bytes(std::span(part)));
        offset += part.size();
        bytes -= part.size();
    }
    return digest.text();
}

}  // namespace echelle
