// IEEE CRC-32 (reflected polynomial 0xEDB88320), the same value as Python's zlib.crc32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelle {

uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace echelle
