#include "common/crc32.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace echelle {
namespace {

TEST(Crc32, IsThePublishedCheckValue) {
    const std::string digits = "123456789";
    EXPECT_EQ(crc32(std::as_bytes(std::span(digits))), 0xCBF43926U);
}

TEST(Crc32, OfNothingIsZero) {
    EXPECT_EQ(crc32({}), 0U);
}

TEST(Crc32, IsZlibsAtEveryAlignment) {
    // zlib.crc32(bytes(i * 7 % 256 for i in range(300)))
    for (size_t shift = 0; shift < 16; ++shift) {
        std::vector<std::byte> bytes(shift + 300);
        for (size_t index = 0; index < 300; ++index) {
            bytes[shift + index] = static_cast<std::byte>(index * 7);
        }
        EXPECT_EQ(crc32(std::span(bytes).subspan(shift)), 0xE000B1FBU) << shift;
    }
}

}  // namespace
}  // namespace echelle
