#include "common/card_frame.hpp"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/byte_builder.hpp"

namespace echelle {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

// Field by field as docs/capture-cards.md says; the checksums are Python's zlib.crc32.
const std::string wire_header =
    "ECHF" + le(0x0100, 2) + le(64, 2) + le(0b1101, 4) + le(7, 2) + le(2, 1) + le(1, 1) + le(3, 4) +
    le(5, 4) + le(60, 4) + le(250'000'000, 4) + le(0x1122334455667788, 8) +
    le(0x8877665544332211, 8) + le(1'700'000'000'123'456'789, 8) + le(0, 4) + le(0x48C043C6, 4);
const std::string wire_trailer = "ECHT" + le(0xDEADBEEF, 4) + le(0x1122334455667788, 8) + le(4, 4) +
                                 std::string(40, '\0') + le(0xDD8C04B2, 4);

CardFrameHeader some_header() {
    CardFrameHeader header;
    header.flags = card_has_trailer | card_over_range | card_time_is_unix;
    header.stream = 7;
    header.geometry = {3, 5, SampleFormat::ci16, Layout::channel_major};
    header.rate_hz = 250'000'000;
    header.sequence = 0x1122334455667788;
    header.sample_index = 0x8877665544332211;
    header.time_ns = 1'700'000'000'123'456'789;
    return header;
}

// The header with one field changed, and its checksum made right again.
CardFrameVerdict verdict_with(size_t at, const std::string& field) {
    std::string bytes = wire_header;
    bytes.replace(at, field.size(), field);
    uint32_t crc = ~0U;
    for (size_t i = 0; i < 60; ++i) {
        crc ^= static_cast<unsigned char>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
        }
    }
    bytes.replace(60, 4, le(~crc, 4));
    CardFrameHeader header;
    return parse_card_header(bytes_of(bytes), header);
}

TEST(CardFrame, HeaderByteForByte) {
    std::string written(64, '\xAA');
    write_card_header(some_header(), std::as_writable_bytes(std::span(written)));
    EXPECT_EQ(written, wire_header);
    CardFrameHeader read;
    EXPECT_EQ(parse_card_header(bytes_of(wire_header), read), CardFrameVerdict::good);
    EXPECT_EQ(read, some_header());
}

TEST(CardFrame, TrailerByteForByte) {
    const CardFrameTrailer trailer{0xDEADBEEF, card_over_range, 0x1122334455667788};
    std::string written(64, '\xAA');
    write_card_trailer(trailer, std::as_writable_bytes(std::span(written)));
    EXPECT_EQ(written, wire_trailer);
    CardFrameTrailer read;
    EXPECT_EQ(parse_card_trailer(bytes_of(wire_trailer), read), CardFrameVerdict::good);
    EXPECT_EQ(read, trailer);
}

TEST(CardFrame, SizesOnTheWire) {
    CardFrameHeader header = some_header();
    EXPECT_EQ(card_payload_bytes(header.geometry), 64U);  // 60 and 4 of padding
    EXPECT_EQ(card_frame_bytes(header), 64U + 64 + 64);
    header.flags = 0;
    header.header_bytes = 4096;
    header.geometry = {128, 2048, SampleFormat::i16, Layout::channel_major};
    EXPECT_EQ(card_frame_bytes(header), 4096U + 524'288);
}

TEST(CardFrame, EveryFlippedBitIsNoticed) {
    for (size_t bit = 0; bit < 64 * 8; ++bit) {
        std::string bytes = wire_header;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
        CardFrameHeader header;
        EXPECT_EQ(parse_card_header(bytes_of(bytes), header),
                  bit < 32 ? CardFrameVerdict::no_magic : CardFrameVerdict::bad_crc);
    }
}

TEST(CardFrame, FieldsThatCannotBe) {
    const auto impossible = CardFrameVerdict::impossible;
    EXPECT_EQ(verdict_with(4, le(0x0200, 2)), CardFrameVerdict::unknown_version);
    EXPECT_EQ(verdict_with(4, le(0x01FF, 2)), CardFrameVerdict::good) << "a later minor version";
    EXPECT_EQ(verdict_with(6, le(0, 2)), impossible);
    EXPECT_EQ(verdict_with(6, le(96, 2)), impossible);
    EXPECT_EQ(verdict_with(6, le(4160, 2)), impossible);
    EXPECT_EQ(verdict_with(6, le(4096, 2)), CardFrameVerdict::good);
    EXPECT_EQ(verdict_with(14, le(3, 1)), impossible);
    EXPECT_EQ(verdict_with(15, le(0, 1)), impossible);
    EXPECT_EQ(verdict_with(16, le(0, 4)), impossible);
    EXPECT_EQ(verdict_with(16, le(4, 4)), impossible) << "more channels than payload_bytes";
    EXPECT_EQ(verdict_with(20, le(0xFFFFFFFF, 4)), impossible);
    EXPECT_EQ(verdict_with(24, le(64, 4)), impossible);
}

}  // namespace
}  // namespace echelle
