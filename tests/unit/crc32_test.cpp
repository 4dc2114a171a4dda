#include "common/crc32.hpp"

#include <string>
#include <utility>
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

std::vector<std::byte> bytes_of(size_t count) {
    std::vector<std::byte> bytes(count);
    for (size_t index = 0; index < count; ++index) {
        bytes[index] = static_cast<std::byte>(index * 7);
    }
    return bytes;
}

TEST(Crc32, IsZlibsAtEveryLength) {
    // zlib.crc32(bytes(i * 7 % 256 for i in range(length)))
    const std::pair<size_t, uint32_t> published[] = {
        {1, 0xD202EF8DU},   {16, 0x54126BA2U},  {112, 0x25452B01U},  {255, 0x89B9AECBU},
        {256, 0x1A5C07A3U}, {257, 0x9DC741D8U}, {2052, 0x2F5083FCU}, {70000, 0x1331463BU}};
    for (const auto& [length, value] : published) {
        EXPECT_EQ(crc32(bytes_of(length)), value) << length;
    }
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
