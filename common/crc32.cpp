#include "common/crc32.hpp"

#include <libdeflate.h>

namespace echelle {

uint32_t crc32(std::span<const std::byte> bytes) {
    return libdeflate_crc32(0, bytes.data(), bytes.size());
}

}  // namespace echelle
