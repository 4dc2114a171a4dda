#include "coordinator/sources/dada_source.hpp"

#include <fstream>
#include <sstream>

#include "coordinator/sources/dada_header.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

// One complex channel of two polarisations in 8 bits: 4 bytes a sample.
std::string header_of(const std::string& more, size_t bytes = 4096) {
    return padded(
        "HEADER       DADA\nHDR_VERSION  1.0   # not HDR_SIZE 77\n# HDR_SIZE 99\nHDR_SIZE " +
            std::to_string(bytes) + "  # bytes\nNBIT 8\nNDIM 2\nNPOL 2\nNCHAN 1\n" + more,
        bytes);
}

const std::string start = "TSAMP 0.0625\nUTC_START 2013-07-02-01:37:40\n";

class DadaSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& path = "a.dada",
                                 const std::string& keys = {}) const {
        return open_dada_source(SourceUri::parse("dada:" + folder_.file(path) + keys), {});
    }

    TemporaryFolder folder_;
};

TEST_F(DadaSourceTest, ReadsAFile) {
    folder_.write("a.dada", header_of(start + "OBS_OFFSET 6400000000\nFILE_SIZE 64000\n") +
                                "\x01\x02\x03\x04\xFF\xFE\xFD\x80");
    const auto source = open("a.dada", "?samples=2");
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{2, 2, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(stream.rate, (Rational{16'000'000, 1}));
    // OBS_OFFSET is 1.6e9 samples, 100 s, behind UTC_START.
    EXPECT_EQ(stream.epoch_ns, int64_t{1'372'729'160} * 1'000'000'000);
    EXPECT_EQ(stream.over_range_low, -128);
    EXPECT_EQ(source->total_samples(), 2U);
    expect_mentions(source->describe(), {"PSRDADA", "a.dada", "8-bit"});
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, 2, 3, 4, -1, -2, -3, -128}));
}

TEST_F(DadaSourceTest, HeadersOfOtherSizesAndSixteenBits) {
    const std::string text = padded("NBIT 16\nHDR_SIZE 8192\nNCHAN 2\nNPOL 1\nTSAMP 15000\n", 8192);
    folder_.write("a.dada", text + little_endian({1, -2, 300, -400}));
    const auto source = open("a.dada", "?samples=2");
    EXPECT_EQ(source->stream().rate, (Rational{200, 3}));
    EXPECT_EQ(source->stream().geometry.format, SampleFormat::i16);
    EXPECT_EQ(source->stream().epoch_ns, 0);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -2, 300, -400}));
}

TEST_F(DadaSourceTest, AKeyIsAWholeWordAtTheStartOfALine) {
    const std::string text = "MY_HDR_SIZE 7\nHDR_SIZE_OLD 8\n  HDR_SIZE 9\n# HDR_SIZE 10\n";
    EXPECT_EQ(dada_header_bytes(text, "a"), 4096U);
    EXPECT_EQ(dada_header_bytes(text + "HDR_SIZE\t512\n", "a"), 512U);
}

TEST_F(DadaSourceTest, FilesOfASequenceFollowOneAnother) {
    folder_.write("b_2.dada", header_of(start + "OBS_OFFSET 12\n") + "\x04\x04\x04\x04");
    folder_.write("b_1.dada", header_of(start + "OBS_OFFSET 8\n") + "\x03\x03\x03\x03");
    // Named last, recorded first.
    folder_.write("b_3.dada", header_of(start + "OBS_OFFSET 0\n") + std::string(8, '\x02'));
    const auto source = open("b_*.dada", "?samples=4");
    EXPECT_EQ(source->longest_stretch(), 4U);
    expect_mentions(source->describe(), {"3 files"});
    EXPECT_EQ(play(*source).at(0).values,
              (std::vector<int16_t>{2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}));
}

TEST_F(DadaSourceTest, AMissingFileIsAGapAndAnOverlapIsReadOnce) {
    folder_.write("b_0.dada", header_of(start + "OBS_OFFSET 0\n") + std::string(8, '\x01'));
    folder_.write("b_1.dada", header_of(start + "OBS_OFFSET 4\nOBS_OVERLAP 4\n") +
                                  "\x01\x01\x01\x01" + std::string(4, '\x02'));
    folder_.write("b_3.dada", header_of(start + "OBS_OFFSET 40\n") + std::string(4, '\x03'));
    const auto whole = open("b_*.dada", "?samples=8");
    const std::vector<PlayedFrame> frames = play(*whole);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].valid_samples, 3U);
    EXPECT_EQ(frames[0].values[8], 2);
    EXPECT_EQ(frames[1].first_sample, 10U);
    EXPECT_EQ(frames[1].flags, uint32_t{frame_gap_before});
    EXPECT_EQ(whole->longest_stretch(), 3U);
}

TEST_F(DadaSourceTest, FilesOfTwoObservationsAreRefused) {
    folder_.write("b_0.dada", header_of(start) + std::string(8, '\x01'));
    folder_.write("b_1.dada", header_of("TSAMP 0.0625\nUTC_START 2014-07-02-01:37:40\n") +
                                  std::string(8, '\x01'));
    expect_mentions(usage_error([&] { open("b_*.dada"); }), {"b_1.dada", "UTC_START"});
    expect_mentions(usage_error([&] { open("c_*.dada"); }), {"no file matches", "c_*.dada"});
}

TEST_F(DadaSourceTest, ATruncatedTailIsReportedInBytes) {
    folder_.write("a.dada", header_of(start) + "\x01\x02\x03\x04\x05\x06\x07");
    const auto source = open();
    EXPECT_EQ(source->total_samples(), 1U);
    expect_mentions(source->describe(), {"last 3 bytes", "a.dada"});
}

TEST_F(DadaSourceTest, RefusesFieldsThatLie) {
    const std::pair<const char*, const char*> lies[] = {
        {"HDR_SIZE", "0"},
        {"HDR_SIZE", "99999999999"},
        {"HDR_SIZE", "8192"},
        {"HDR_SIZE", "-1"},
        {"NBIT", "4"},
        {"NBIT", "32"},
        {"NBIT", "x"},
        {"NDIM", "3"},
        {"NPOL", "0"},
        {"NCHAN", "4000000000"},
        {"TSAMP", "0"},
        {"TSAMP", "nan"},
        {"TSAMP", "-3"},
        {"OBS_OFFSET", "-1"},
        {"OBS_OFFSET", "99999999999999999999"},
        {"UTC_START", "today"},
        {"UTC_START", "2013-13-02-01:37:40"},
        {"ORDER", "FTP"},
    };
    for (const auto& [key, value] : lies) {
        // The first line of a key counts.
        folder_.write(
            "a.dada",
            padded(std::string(key) + " " + value + "\n" + header_of(start).substr(0, 300), 4096) +
                "12345678");
        expect_mentions(usage_error([&] { open(); }), {"a.dada", key});
    }
    folder_.write("a.dada", header_of(start));
    expect_mentions(usage_error([&] { open(); }), {"no samples"});
    folder_.write("a.dada", header_of("") + "12345678");
    expect_mentions(usage_error([&] { open(); }), {"rate"});
    EXPECT_EQ(open("a.dada", "?rate=5")->stream().rate, (Rational{5, 1}));
    folder_.write("a.dada", header_of(start + "OBS_OFFSET 9000000000000000000\n") + "12345678");
    expect_mentions(usage_error([&] { open("a.dada", ""); }), {"a.dada", "2262"});
}

// The sample of the baseband package, in the order that its header says: time, polarisation.
TEST(DadaSample, IsReadAsItStandsInTheFile) {
    const std::string path = ECHELLE_SHARED_DATA "/sample.dada";
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "no real recordings here";
    }
    const auto source = open_dada_source(SourceUri::parse("dada:" + path + "?samples=16000"), {});
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{2, 16000, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(source->stream().rate, (Rational{16'000'000, 1}));
    // 2013-07-02T01:39:20, as the package's own documentation gives it.
    EXPECT_EQ(source->stream().epoch_ns, int64_t{1'372'729'160} * 1'000'000'000);
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string data = bytes.str().substr(4096);
    const std::vector<int16_t> values = play(*source).at(0).values;
    ASSERT_EQ(values.size(), data.size());
    for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], static_cast<int8_t>(data[i])) << i;
    }
}

}  // namespace
}  // namespace echelle
