#include "common/frame.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

TEST(FrameGeometry, DefaultIsHalfAMebibyte) {
    const FrameGeometry geometry;
    EXPECT_EQ(geometry.frame_values(), 262'144U);
    EXPECT_EQ(geometry.frame_bytes(), 524'288U);
    EXPECT_NO_THROW(geometry.validate());
}

TEST(FrameGeometry, ComplexSamplesTakeTwoValues) {
    const FrameGeometry geometry{3, 5, SampleFormat::ci16, Layout::sample_major};
    EXPECT_EQ(geometry.bytes_per_sample(), 4U);
    EXPECT_EQ(geometry.frame_values(), 30U);
    EXPECT_EQ(geometry.frame_bytes(), 60U);
}

TEST(FrameGeometry, AcceptsTheLimits) {
    constexpr auto i16 = SampleFormat::i16;
    constexpr auto rows = Layout::channel_major;
    EXPECT_NO_THROW((FrameGeometry{1, 1, i16, rows}.validate()));
    EXPECT_NO_THROW((FrameGeometry{65'536, 8192, i16, rows}.validate()));    // 1 GiB
    EXPECT_NO_THROW((FrameGeometry{32, 16'777'216, i16, rows}.validate()));  // 1 GiB
}

TEST(FrameGeometry, RefusesWhatLiesBeyondThem) {
    constexpr auto i16 = SampleFormat::i16;
    constexpr auto rows = Layout::channel_major;
    const FrameGeometry cases[] = {
        {0, 2048, i16, rows},
        {65'537, 1, i16, rows},
        {1, 0, i16, rows},
        {1, 16'777'217, i16, rows},
        {65'536, 8193, i16, rows},
        {65'536, 8192, SampleFormat::ci16, rows},
        {65'536, 16'777'216, SampleFormat::ci16, rows},
        {UINT32_MAX, UINT32_MAX, i16, rows},
        {1, 1, static_cast<SampleFormat>(0), rows},
        {1, 1, static_cast<SampleFormat>(3), rows},
        {1, 1, i16, static_cast<Layout>(0)},
        {1, 1, i16, static_cast<Layout>(3)},
    };
    for (const FrameGeometry& geometry : cases) {
        EXPECT_THROW(geometry.validate(), UsageError)
            << geometry.channels << " x " << geometry.samples;
    }
}

TEST(FrameNames, AreThoseOfTheCommandLine) {
    EXPECT_EQ(name_of(SampleFormat::i16), "i16");
    EXPECT_EQ(name_of(SampleFormat::ci16), "ci16");
    EXPECT_EQ(name_of(Layout::channel_major), "channel-major");
    EXPECT_EQ(name_of(Layout::sample_major), "sample-major");
    EXPECT_EQ(parse_sample_format("i16"), SampleFormat::i16);
    EXPECT_EQ(parse_sample_format("ci16"), SampleFormat::ci16);
    EXPECT_EQ(parse_layout("channel-major"), Layout::channel_major);
    EXPECT_EQ(parse_layout("sample-major"), Layout::sample_major);
}

TEST(FrameNames, OthersAreRefused) {
    for (const char* text : {"", "i8", "I16", "i16 ", "float"}) {
        EXPECT_THROW(parse_sample_format(text), UsageError) << text;
    }
    for (const char* text : {"", "channel", "channel_major", "Sample-major"}) {
        EXPECT_THROW(parse_layout(text), UsageError) << text;
    }
}

}  // namespace
}  // namespace echelle
