// The kernel's packing of scans. Offsets and values here follow from the kernel's documentation
// (Documentation/iio/iio_devbuf.rst), by hand.
#include "coordinator/sources/iio_scan.hpp"

#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

IioElement element(uint64_t index, bool is_signed, uint32_t bits, uint32_t storage_bits,
                   uint32_t shift = 0, bool is_big_endian = false, uint32_t repeat = 1) {
    return {"voltage" + std::to_string(index),
            index,
            bits,
            storage_bits,
            repeat,
            shift,
            is_signed,
            is_big_endian};
}

std::vector<int16_t> decoded(const IioScan& scan, const std::string& bytes) {
    std::vector<int16_t> values(bytes.size() / scan.bytes() * scan.values());
    scan.decode(std::as_bytes(std::span(bytes)), values);
    return values;
}

// libiio PR#1010: 32 bits, then 16. The kernel ends a scan at a multiple of 4 bytes, where libiio
// 0.24 counts 6.
TEST(IioScan, LibiioPr1010PaddingAtTheEndOfAScan) {
    const IioScan scan({element(0, true, 16, 32), element(1, true, 16, 16)}, 0);
    EXPECT_EQ(scan.bytes(), 8U);
    EXPECT_EQ(scan.unpadded_bytes(), 6U);
    EXPECT_EQ(scan.common_scans(), 4U);  // 24 bytes: four of libiio's, three of the kernel's
    EXPECT_EQ(decoded(scan, le(7, 4) + le(0xFFFE, 2) + "??" + le(0xFFFFFFF6, 4) + le(3, 2) + "??"),
              (std::vector<int16_t>{7, -2, -10, 3}));
    // The other way round the padding stands between them, and both agree.
    const IioScan turned({element(0, true, 16, 16), element(1, true, 16, 32)}, 0);
    EXPECT_EQ(turned.bytes(), 8U);
    EXPECT_EQ(turned.unpadded_bytes(), 8U);
    EXPECT_EQ(turned.common_scans(), 1U);
    EXPECT_EQ(decoded(turned, le(0xFFFE, 2) + "??" + le(7, 4)), (std::vector<int16_t>{-2, 7}));
}

// libiio PR#198: the first enabled channel has index 4. Where it stands depends on what is enabled
// before it, never on the index itself.
TEST(IioScan, LibiioPr198IndicesOrderAndDoNotPlace) {
    const IioScan scan({element(9, true, 8, 8), element(4, true, 16, 16), element(7, true, 16, 32)},
                       0);
    EXPECT_EQ(scan.bytes(), 12U);
    EXPECT_EQ(scan.unpadded_bytes(), 9U);
    EXPECT_EQ(decoded(scan, le(1000, 2) + "??" + le(2000, 4) + "\xFD" + "???"),
              (std::vector<int16_t>{1000, 2000, -3}));
}

TEST(IioScan, TakesTheBitsThatCountAndExtendsTheirSign) {
    const struct {
        IioElement element;
        std::string bytes;
        int16_t value;
    } cases[] = {
        {element(0, true, 12, 16), le(0x0FFF, 2), -1},
        {element(0, true, 12, 16), le(0x07FF, 2), 2047},
        {element(0, true, 12, 16), le(0xF800, 2), -2048},     // whatever stands above
        {element(0, true, 12, 16, 4), le(0x8005, 2), -2048},  // status bits below
        {element(0, true, 14, 16, 2, true), be(0xFFFC, 2), -1},
        {element(0, true, 16, 16, 0, true), be(0x8000, 2), -32768},
        {element(0, true, 16, 32, 8), le(0xAA8001BB, 4), -32767},
        {element(0, true, 16, 64, 48), le(0x8000000000000000, 8), -32768},
        {element(0, true, 1, 8), "\x01", -1},
        // Unsigned values are offset binary.
        {element(0, false, 12, 16), le(0, 2), -2048},
        {element(0, false, 12, 16), le(0x0800, 2), 0},
        {element(0, false, 16, 16), le(0xFFFF, 2), 32767},
        {element(0, false, 8, 8), "\x80", 0},
    };
    for (const auto& [element, bytes, value] : cases) {
        EXPECT_EQ(decoded(IioScan({element}, 0), bytes), std::vector{value})
            << element.bits << "/" << element.storage_bits << ">>" << element.shift;
    }
}

TEST(IioScan, WideValuesFitWhenTheirLowBitsAreDropped) {
    const IioScan scan({element(0, true, 24, 32, 8)}, 8);
    EXPECT_EQ(decoded(scan, le(0x800000FF, 4) + le(0x000100FF, 4)),
              (std::vector<int16_t>{-32768, 1}));
    EXPECT_EQ(scan.least(), -32768);
    EXPECT_EQ(scan.most(), 32767);
    const IioScan narrow({element(0, true, 12, 16), element(1, false, 10, 16)}, 0);
    EXPECT_EQ(narrow.least(), -2048);
    EXPECT_EQ(narrow.most(), 2047);
}

TEST(IioScan, ARepeatedElementIsAlignedToAllOfItAndGivesSeveralValues) {
    // 8 bits, then a quaternion: four times 16 bits, at a multiple of their 8 bytes.
    const IioScan scan({element(0, true, 8, 8), element(1, true, 16, 16, 0, false, 4)}, 0);
    EXPECT_EQ(scan.values(), 5U);
    EXPECT_EQ(scan.bytes(), 16U);
    EXPECT_EQ(decoded(scan, "\x05......." + le(1, 2) + le(2, 2) + le(0xFFFF, 2) + le(9, 2)),
              (std::vector<int16_t>{5, 1, 2, -1, 9}));
}

TEST(IioScan, RefusesWhatCannotBeAndWhatDoesNotFitInWords) {
    const auto message = [](const IioElement& element, uint32_t dropped = 0) {
        return usage_error([&] { IioScan({element}, dropped); });
    };
    expect_mentions(message(element(3, true, 24, 32, 8)),
                    {"voltage3", "24 bits", "le:s24/32>>8", "drop-bits=8"});
    expect_mentions(message(element(0, true, 24, 32), 24), {"drop-bits=24", "leaves nothing"});
    expect_mentions(message(element(0, true, 12, 12)), {"le:s12/12>>0", "cannot be"});
    expect_mentions(message(element(0, true, 0, 16)), {"cannot be"});
    expect_mentions(message(element(0, true, 12, 16, 5)), {"cannot be"});
    expect_mentions(message(element(0, false, 16, 16, 0, true, 0)), {"be:u16/16", "cannot be"});
}

}  // namespace
}  // namespace echelle
