#include "coordinator/sources/blue_source.hpp"

#include <limits>

#include "coordinator/sources/blue_header.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

struct Fields {
    std::string head = "EEEI";
    std::string data = "EEEI";
    uint64_t detached = 0;
    double data_start = 512;
    double data_bytes = 8;
    uint64_t type = 1000;
    std::string format = "SI";
    double timecode = 0;
    double xstart = 0;
    double xdelta = 0.015;
    uint64_t xunits = 1;
};

std::string header_of(const Fields& fields) {
    const bool big = fields.head == "IEEE";
    const auto number = [big](uint64_t value, size_t count) {
        return big ? be(value, count) : le(value, count);
    };
    const auto real = [&number](double value) {
        return number(std::bit_cast<uint64_t>(value), sizeof value);
    };
    std::string bytes = "BLUE" + fields.head + fields.data + number(fields.detached, 4);
    bytes = padded(bytes, 32) + real(fields.data_start) + real(fields.data_bytes) +
            number(fields.type, 4) + fields.format;
    bytes = padded(bytes, 56) + real(fields.timecode);
    return padded(
        padded(bytes, 256) + real(fields.xstart) + real(fields.xdelta) + number(fields.xunits, 4),
        512);
}

class BlueSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& keys = {}) const {
        return open_blue_source(SourceUri::parse("blue:" + folder_.file("a.prm") + keys), {});
    }

    TemporaryFolder folder_;
    const std::string samples_ = little_endian({1, -2, 300, -32768});
};

TEST_F(BlueSourceTest, ReadsRealSixteenBitSamples) {
    // 2000-01-01T00:00:00 is 1577836800 s after 1950.
    Fields fields;
    fields.timecode = 1'577'836'800;
    fields.xstart = 0.25;
    folder_.write("a.prm", header_of(fields) + samples_ + "extended header");
    const auto source = open("?samples=4");
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{1, 4, SampleFormat::i16, Layout::sample_major}));
    EXPECT_EQ(source->stream().rate, (Rational{200, 3}));
    EXPECT_EQ(source->stream().epoch_ns, int64_t{946'684'800'250'000'000});
    EXPECT_EQ(source->total_samples(), 4U);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -2, 300, -32768}));
}

TEST_F(BlueSourceTest, ReadsBothByteOrdersComplexAndEightBits) {
    Fields fields;
    fields.head = "IEEE";
    fields.data = "IEEE";
    fields.format = "CI";
    folder_.write("a.prm", header_of(fields) + be(1, 2) + be(0xFFFE, 2) + be(300, 2) + be(4, 2));
    auto source = open("?samples=2");
    EXPECT_EQ(source->stream().geometry.format, SampleFormat::ci16);
    EXPECT_EQ(source->stream().epoch_ns, 0);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -2, 300, 4}));
    fields.head = "EEEI";
    fields.format = "CB";
    fields.data_bytes = 4;
    folder_.write("a.prm", header_of(fields) + "\x01\xFF\x02\x80");
    source = open("?samples=2");
    EXPECT_EQ(source->stream().over_range_low, -128);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -1, 2, -128}));
}

TEST_F(BlueSourceTest, DetachedSamplesLieBesideTheHeader) {
    Fields fields;
    fields.detached = 1;
    fields.data_start = 0;
    folder_.write("a.prm", header_of(fields));
    expect_mentions(usage_error([&] { open(); }), {"a.det", "No such file"});
    folder_.write("a.det", samples_);
    EXPECT_EQ(play(*open("?samples=4")).at(0).values, (std::vector<int16_t>{1, -2, 300, -32768}));
}

TEST_F(BlueSourceTest, ATruncatedTailIsReportedInBytes) {
    Fields fields;
    fields.data_bytes = 1000;
    folder_.write("a.prm", header_of(fields) + samples_ + "x");
    const auto source = open();
    EXPECT_EQ(source->total_samples(), 4U);
    expect_mentions(source->describe(), {"991 of data_size 1000", "last 1 bytes"});
}

TEST_F(BlueSourceTest, RefusesFieldsThatLie) {
    const auto refused = [&](auto set, const char* field) {
        Fields fields;
        set(fields);
        folder_.write("a.prm", header_of(fields) + samples_);
        expect_mentions(usage_error([&] { open(); }), {"a.prm", field});
    };
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinite = std::numeric_limits<double>::infinity();
    refused([](Fields& f) { f.data = "VAX "; }, "data_rep");
    refused([](Fields& f) { f.type = 2000; }, "type");
    for (const char* format : {"SF", "CF", "SD", "SL", "VI", "SP"}) {
        refused([format](Fields& f) { f.format = format; }, "format");
    }
    for (const double value : {nan, infinite, -1.0, 1.5, 1e300}) {
        refused([value](Fields& f) { f.data_start = value; }, "data_start");
        refused([value](Fields& f) { f.data_bytes = value; }, "data_size");
    }
    refused([](Fields& f) { f.data_start = 16; }, "data_start");
    refused([](Fields& f) { f.data_start = 1e15; }, "data_start");
    refused([](Fields& f) { f.data_bytes = 0; }, "data_size");
    for (const double value : {nan, 0.0, -1.0, infinite, 1e-300}) {
        refused([value](Fields& f) { f.xdelta = value; }, "xdelta");
    }
    refused([](Fields& f) { f.xunits = 3; }, "xunits");
    refused([nan](Fields& f) { f.timecode = nan; }, "timecode");
    refused([](Fields& f) { f.timecode = 1e300; }, "timecode");
    for (const std::string& bytes : {std::string(), std::string("BLUE"), std::string(600, 'x')}) {
        folder_.write("a.prm", bytes);
        expect_mentions(usage_error([&] { open(); }), {"a.prm", "512"});
    }
}

}  // namespace
}  // namespace echelle
