#include "coordinator/sources/guppi_source.hpp"

#include <fstream>
#include <map>
#include <sstream>

#include "coordinator/sources/guppi_header.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

using Cards = std::map<std::string, std::string>;

std::string header_of(const Cards& cards) {
    std::string header;
    for (const auto& [keyword, value] : cards) {
        header += padded(padded(keyword, 8, ' ') + "= " + value, 80, ' ');
    }
    return header + padded("END", 80, ' ');
}

// Two channels of two polarisations; four samples in a block, one of which repeats.
const Cards usual = {
    {"BACKEND", "'GUPPI   '"}, {"OBSNCHAN", "2"},     {"NPOL", "4 / of reals"}, {"NBITS", "8"},
    {"TBIN", "0.015"},         {"BLOCSIZE", "32"},    {"OVERLAP", "1"},         {"PKTIDX", "0"},
    {"PKTSIZE", "4"},          {"STT_IMJD", "58132"}, {"STT_SMJD", "51093"}};

Cards with(Cards cards, const Cards& others) {
    for (const auto& [keyword, value] : others) {
        cards[keyword] = value;
    }
    return cards;
}

// [channel][time][polarisation][re, im], each value made of its place.
int value_at(int time, int channel, int polarisation, int part) {
    return 8 * time + 4 * channel + 2 * polarisation + part - 60;
}

std::string block_from(int first_time) {
    std::string data;
    for (int channel = 0; channel < 2; ++channel) {
        for (int time = first_time; time < first_time + 4; ++time) {
            for (int rest = 0; rest < 4; ++rest) {
                data += static_cast<char>(value_at(time, channel, rest / 2, rest % 2));
            }
        }
    }
    return data;
}

class GuppiSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& keys = {}) const {
        return open_guppi_source(SourceUri::parse("guppi:" + folder_.file("a.raw") + keys), {});
    }
    // Checks every sample of the frames against its place in the observation.
    static void expect_values(const std::vector<PlayedFrame>& frames, uint32_t samples) {
        for (const PlayedFrame& frame : frames) {
            for (uint32_t sample = 0; sample < frame.valid_samples; ++sample) {
                for (uint32_t row = 0; row < 4; ++row) {
                    const auto time = static_cast<int>(frame.first_sample + sample);
                    const size_t at = (size_t{row} * samples + sample) * 2;
                    const int channel = static_cast<int>(row) / 2;
                    const int polarisation = static_cast<int>(row) % 2;
                    EXPECT_EQ(frame.values[at], value_at(time, channel, polarisation, 0));
                    EXPECT_EQ(frame.values[at + 1], value_at(time, channel, polarisation, 1));
                }
            }
        }
    }

    TemporaryFolder folder_;
};

TEST_F(GuppiSourceTest, ChannelsAndPolarisationsAreTakenApartAndTheOverlapLeftOut) {
    folder_.write("a.raw", header_of(usual) + block_from(0) +
                               header_of(with(usual, {{"PKTIDX", "6"}})) + block_from(3));
    const auto source = open("?samples=4");
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{4, 4, SampleFormat::ci16, Layout::channel_major}));
    EXPECT_EQ(stream.rate, (Rational{200, 3}));
    // MJD 58132 is 2018-01-14.
    EXPECT_EQ(stream.epoch_ns, (int64_t{1'515'888'000} + 51093) * 1'000'000'000);
    EXPECT_EQ(stream.over_range_low, -128);
    EXPECT_EQ(source->total_samples(), 6U);
    EXPECT_EQ(source->longest_stretch(), 6U);
    expect_mentions(source->describe(), {"GUPPI", "a.raw", "overlap of 1"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[1].flags, 0U);
    expect_values(frames, 4);
}

TEST_F(GuppiSourceTest, APacketIndexThatJumpsIsAGap) {
    folder_.write("a.raw", header_of(usual) + block_from(0) +
                               header_of(with(usual, {{"PKTIDX", "12"}})) + block_from(6));
    const auto source = open("?samples=4");
    EXPECT_EQ(source->total_samples(), 6U);
    EXPECT_EQ(source->longest_stretch(), 3U);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[1].first_sample, 6U);
    EXPECT_EQ(frames[1].flags, uint32_t{frame_gap_before});
    expect_values(frames, 4);
}

TEST_F(GuppiSourceTest, ASequenceOfFilesIsOneRecording) {
    folder_.write("a.0001.raw", header_of(with(usual, {{"PKTIDX", "6"}})) + block_from(3));
    folder_.write("a.0000.raw", header_of(usual) + block_from(0));
    const auto source =
        open_guppi_source(SourceUri::parse("guppi:" + folder_.file("a.*.raw") + "?samples=4"), {});
    EXPECT_EQ(source->longest_stretch(), 6U);
    expect_mentions(source->describe(), {"2 files"});
    expect_values(play(*source), 4);
    folder_.write("a.0002.raw",
                  header_of(with(usual, {{"PKTIDX", "12"}, {"TBIN", "0.03"}})) + block_from(6));
    expect_mentions(usage_error([&] {
                        open_guppi_source(SourceUri::parse("guppi:" + folder_.file("a.*.raw")), {});
                    }),
                    {"a.0002.raw", "TBIN"});
}

TEST_F(GuppiSourceTest, DirectIoPadsTheHeader) {
    const Cards cards = with(usual, {{"DIRECTIO", "1"}});
    const std::string header = header_of(cards);
    ASSERT_NE(header.size() % 512, 0U);
    folder_.write("a.raw", padded(header, (header.size() + 511) / 512 * 512) + block_from(0));
    expect_values(play(*open("?samples=4")), 4);
}

TEST_F(GuppiSourceTest, TimeFirstBlocksAndSixteenBits) {
    const Cards cards = with(usual, {{"PKTFMT", "'SIMPLE  '"},
                                     {"NBITS", "16"},
                                     {"NPOL", "1"},
                                     {"BLOCSIZE", "24"},
                                     {"OVERLAP", "0"}});
    folder_.write("a.raw",
                  header_of(cards) + little_endian({1, 2, 300, 400, 5, 6, 7, 8, -9, -10, 11, 12}));
    const auto source = open("?samples=3");
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{2, 3, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(play(*source).at(0).values,
              (std::vector<int16_t>{1, 2, 300, 400, 5, 6, 7, 8, -9, -10, 11, 12}));
}

TEST_F(GuppiSourceTest, ATruncatedTailIsReportedInBytes) {
    const std::string whole = header_of(usual) + block_from(0);
    const std::string next = header_of(with(usual, {{"PKTIDX", "6"}})) + block_from(3);
    folder_.write("a.raw", whole + next.substr(0, next.size() - 5));
    auto source = open();
    EXPECT_EQ(source->total_samples(), 3U);
    expect_mentions(source->describe(), {"cut short", std::to_string(next.size() - 5) + " bytes"});
    folder_.write("a.raw", whole + next.substr(0, 100));
    expect_mentions(open()->describe(), {"last 100 bytes", "no whole header"});
    folder_.write("a.raw", whole.substr(0, whole.size() - 1));
    expect_mentions(usage_error([&] { open(); }), {"no whole block"});
}

TEST_F(GuppiSourceTest, LossThatCannotBeSeenOrThatWasFilledIsSaid) {
    Cards cards = usual;
    cards.erase("PKTIDX");
    cards["DROPBLK"] = "0.25";
    folder_.write("a.raw", header_of(cards) + block_from(0));
    expect_mentions(open()->describe(), {"can't be seen", "1 blocks lost packets", "zeros"});
}

TEST_F(GuppiSourceTest, HashpipesPacketsPerBlockCountAsWell) {
    const Cards cards = with(usual, {{"PIPERBLK", "64"}, {"PKTSIZE", "8192"}, {"PKTIDX", "640"}});
    folder_.write("a.raw", header_of(cards) + block_from(0) +
                               header_of(with(cards, {{"PKTIDX", "704"}})) + block_from(3) +
                               header_of(with(cards, {{"PKTIDX", "832"}})) + block_from(9));
    const auto source = open("?samples=8");
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].valid_samples, 6U);
    EXPECT_EQ(frames[1].first_sample, 9U);
}

TEST_F(GuppiSourceTest, RefusesFieldsThatLie) {
    const std::pair<const char*, const char*> lies[] = {
        {"BLOCSIZE", "0"},
        {"BLOCSIZE", "33"},
        {"BLOCSIZE", "18446744073709551615"},
        {"BLOCSIZE", "-1"},
        {"OBSNCHAN", "0"},
        {"OBSNCHAN", "99999999"},
        {"NPOL", "3"},
        {"NBITS", "4"},
        {"NBITS", "2"},
        {"TBIN", "0"},
        {"TBIN", "nan"},
        {"TBIN", "-1"},
        {"TBIN", "1e-300"},
        {"OVERLAP", "4"},
        {"OVERLAP", "99999999999"},
        {"STT_IMJD", "99999999"},
        {"STT_SMJD", "1e9"},
        {"PKTIDX", "x"},
    };
    for (const auto& [keyword, value] : lies) {
        folder_.write("a.raw", header_of(with(usual, {{keyword, value}})) + block_from(0));
        expect_mentions(usage_error([&] { open(); }), {"a.raw", keyword});
    }
    Cards cards = usual;
    cards.erase("TBIN");
    folder_.write("a.raw", header_of(cards) + block_from(0));
    expect_mentions(usage_error([&] { open(); }), {"TBIN missing"});
    for (const std::string& bytes : {std::string(), std::string(500, 'x'), std::string(500, ' ')}) {
        folder_.write("a.raw", bytes);
        expect_mentions(usage_error([&] { open(); }), {"a.raw"});
    }
    // A second block whose index wraps what a sample index can hold.
    folder_.write("a.raw", header_of(usual) + block_from(0) +
                               header_of(with(usual, {{"PKTIDX", "9000000000000000000"}})) +
                               block_from(0));
    expect_mentions(open()->describe(), {"can't be seen"});
    EXPECT_THROW(open("?pols=3"), UsageError);
    EXPECT_EQ(open("?pols=1")->stream().geometry.channels, 2U);
}

// The sample of the baseband package; values counted out with Python from the bytes of the file.
TEST(GuppiPuppi, BlocksOfARealRecordingFollowOneAnother) {
    const std::string path = ECHELLE_SHARED_DATA "/sample_puppi.raw";
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "no real recordings here";
    }
    const auto source = open_guppi_source(SourceUri::parse("guppi:" + path + "?samples=500"), {});
    EXPECT_EQ(source->stream().geometry.channels, 8U);
    EXPECT_EQ(source->stream().rate, (Rational{250, 1}));
    EXPECT_EQ(source->total_samples(), 3840U);
    EXPECT_EQ(source->longest_stretch(), 3840U);
    // Its blocks were cut out of longer ones, so what is left out doesn't repeat in this file.
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string file = bytes.str();
    const auto byte = [&file](size_t block, size_t channel, size_t time, size_t rest) {
        const size_t at = block * (6400 + 16384) + 6400 + (channel * 1024 + time) * 4 + rest;
        return static_cast<int8_t>(file.at(at));
    };
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 8U);
    for (const PlayedFrame& frame : frames) {
        for (size_t sample = 0; sample < frame.valid_samples; ++sample) {
            const size_t time = frame.first_sample + sample;
            for (size_t row = 0; row < 8; ++row) {
                for (size_t part = 0; part < 2; ++part) {
                    ASSERT_EQ(frame.values[(row * 500 + sample) * 2 + part],
                              byte(time / 960, row / 2, time % 960, row % 2 * 2 + part));
                }
            }
        }
    }
}

}  // namespace
}  // namespace echelle
