#include "coordinator/sources/wav_source.hpp"

#include <filesystem>
#include <fstream>

#include "coordinator/sources/riff_sizes.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

// WAVE_FORMAT_PCM of 48 kHz.
std::string format_chunk(uint32_t channels, uint32_t bits, uint32_t tag = 1) {
    const uint32_t block = channels * bits / 8;
    return "fmt " + le(16, 4) + le(tag, 2) + le(channels, 2) + le(48'000, 4) +
           le(48'000 * block, 4) + le(block, 2) + le(bits, 2);
}

// A WAV whose header says `data_bytes`, whatever follows.
std::string wav(const std::string& format, const std::string& samples, uint64_t data_bytes) {
    const std::string chunks = "WAVE" + format + "data" + le(data_bytes, 4) + samples;
    return "RIFF" + le(chunks.size(), 4) + chunks;
}

std::string wav(const std::string& format, const std::string& samples) {
    return wav(format, samples, samples.size());
}

class WavSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& keys = {},
                                 const StreamOptions& options = {}) const {
        return open_wav_source(SourceUri::parse("wav:" + folder_.file("a.wav") + keys), options);
    }
    void write(const std::string& bytes) const { folder_.write("a.wav", bytes); }

    TemporaryFolder folder_;
    const std::string samples_ = little_endian({1, -1, 2, -2, 32767, -32768});
};

TEST_F(WavSourceTest, ReadsSixteenBitSamples) {
    write(wav(format_chunk(2, 16), samples_));
    const auto source = open("?samples=2");
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{2, 2, SampleFormat::i16, Layout::sample_major}));
    EXPECT_EQ(stream.rate, (Rational{48'000, 1}));
    EXPECT_EQ(stream.epoch_ns, 0);
    EXPECT_EQ(stream.over_range_low, -32768);
    EXPECT_EQ(source->total_samples(), 3U);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::block);
    expect_mentions(source->describe(), {"WAV", "a.wav", "2 channels", "Signed 16 bit PCM"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, -1, 2, -2}));
    EXPECT_EQ(frames[1].valid_samples, 1U);
    EXPECT_EQ(frames[1].values[0], 32767);
    EXPECT_EQ(frames[1].values[1], -32768);
}

// WAV's 8-bit samples are offset binary: 128 is silence.
TEST_F(WavSourceTest, EightBitSamplesAreWidenedExactly) {
    std::string bytes;
    for (int value = 0; value < 256; ++value) {
        bytes += static_cast<char>(value);
    }
    write(wav(format_chunk(1, 8), bytes));
    const auto source = open("?samples=256");
    EXPECT_EQ(source->stream().over_range_low, -128);
    EXPECT_EQ(source->stream().over_range_high, 127);
    const std::vector<int16_t> values = play(*source).at(0).values;
    for (int value = 0; value < 256; ++value) {
        EXPECT_EQ(values[static_cast<size_t>(value)], value - 128);
    }
}

TEST_F(WavSourceTest, PairsOfChannelsAreComplexWhenTheUserSaysSo) {
    write(wav(format_chunk(2, 16), samples_));
    const auto source = open("?format=ci16&samples=3");
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{1, 3, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -1, 2, -2, 32767, -32768}));
    StreamOptions options;
    options.format = SampleFormat::ci16;
    EXPECT_EQ(open("", options)->stream().geometry.channels, 1U);
    write(wav(format_chunk(3, 16), samples_));
    expect_mentions(usage_error([&] { open("?format=ci16"); }), {"3 channels", "pairs"});
}

TEST_F(WavSourceTest, MoreChannelsThanSpeakers) {
    std::vector<int> values(128 * 3);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<int>(i) - 100;
    }
    write(wav(format_chunk(128, 16), little_endian(values)));
    const auto source = open("?samples=3");
    EXPECT_EQ(source->stream().geometry.channels, 128U);
    EXPECT_EQ(play(*source).at(0).values, std::vector<int16_t>(values.begin(), values.end()));
}

// Sony's W64: GUIDs for names, sizes that count the chunk's header, chunks on 8-byte borders.
TEST_F(WavSourceTest, ReadsW64) {
    const std::string riff =
        "riff" + std::string("\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0", 12);
    const std::string tail("\xF3\xAC\xD3\x11\x8C\xD1\0\xC0\x4F\x8E\xDB\x8A", 12);
    const std::string format = format_chunk(2, 16).substr(8);
    const std::string chunks = "wave" + tail + "fmt " + tail + le(24 + 16, 8) + format + "data" +
                               tail + le(24 + samples_.size(), 8) + samples_;
    write(riff + le(24 + chunks.size(), 8) + chunks);
    EXPECT_EQ(play(*open("?samples=3")).at(0).values,
              (std::vector<int16_t>{1, -1, 2, -2, 32767, -32768}));
    // Behind the samples there are more.
    write(riff + le(24 + chunks.size(), 8) + chunks + std::string(40, '\x05'));
    expect_mentions(usage_error([&] { open(); }), {"12 bytes of samples", "raw:"});
}

TEST_F(WavSourceTest, ReadsRf64) {
    const std::string chunks = "WAVEds64" + le(28, 4) + le(0, 8) + le(samples_.size(), 8) +
                               le(3, 8) + le(0, 4) + format_chunk(2, 16) + "data" +
                               le(0xFFFFFFFF, 4) + samples_;
    write("RF64" + le(0xFFFFFFFF, 4) + chunks);
    const auto source = open("?samples=3");
    expect_mentions(source->describe(), {"RF64"});
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -1, 2, -2, 32767, -32768}));
}

// libsndfile opens it with no frames and no error.
TEST_F(WavSourceTest, ADataSizeOfZeroIsNoEmptyRecording) {
    write(wav(format_chunk(2, 16), samples_, 0));
    expect_mentions(usage_error([&] { open(); }),
                    {"0 bytes of samples", "12 bytes", "raw:", "channels=2", "offset=44",
                     "rate=48000", "format=i16"});
    write(wav(format_chunk(2, 16), "", 0));
    expect_mentions(usage_error([&] { open(); }), {"no samples"});
    write(wav(format_chunk(2, 16), "LIST" + le(4, 4) + "abcd", 0));
    expect_mentions(usage_error([&] { open(); }), {"no samples"});
}

// libsndfile issue 300: the size wraps at 4 GiB, and only the remainder is read. The file is
// sparse.
TEST_F(WavSourceTest, AWavBeyondFourGibibytesIsDetected) {
    write(wav(format_chunk(2, 16), samples_, 12));
    std::filesystem::resize_file(folder_.file("a.wav"), 44 + 12 + (uint64_t{1} << 32));
    expect_mentions(usage_error([&] { open(); }),
                    {"12 bytes of samples", "wrapped at 4 GiB", "RF64", "raw:", "offset=44"});
}

TEST_F(WavSourceTest, AnRf64BeyondFourGibibytesIsReadToItsEnd) {
    constexpr uint64_t data_bytes = (uint64_t{1} << 32) + 4096;
    const std::string head = "RF64" + le(0xFFFFFFFF, 4) + "WAVEds64" + le(28, 4) +
                             le(data_bytes + 72, 8) + le(data_bytes, 8) + le(data_bytes / 4, 8) +
                             le(0, 4) + format_chunk(2, 16) + "data" + le(0xFFFFFFFF, 4);
    write(head);
    std::filesystem::resize_file(folder_.file("a.wav"), head.size() + data_bytes);
    EXPECT_EQ(open()->total_samples(), data_bytes / 4);
}

// libsndfile clips it without a word.
TEST_F(WavSourceTest, ADataSizeBeyondTheFileIsReportedAndWhatIsThereIsUsed) {
    write(wav(format_chunk(2, 16), samples_ + "x", 1000));
    const auto source = open("?samples=3");
    EXPECT_EQ(source->total_samples(), 3U);
    expect_mentions(source->describe(), {"cut short", "987 of 1000 bytes", "last 1 are less"});
}

TEST_F(WavSourceTest, ChunksBehindTheSamplesAreNoSamples) {
    write(wav(format_chunk(1, 16), little_endian({1, 2, 3}) + "LIST" + le(4, 4) + "abcd", 6));
    EXPECT_EQ(open()->total_samples(), 3U);
    // An odd number of bytes is followed by a pad byte.
    write(
        wav(format_chunk(1, 8), std::string("\x80\x81\x82\0", 4) + "LIST" + le(4, 4) + "abcd", 3));
    EXPECT_EQ(open()->total_samples(), 3U);
}

TEST_F(WavSourceTest, RefusesWhatSixteenBitsDontHold) {
    write(wav(format_chunk(1, 24), std::string(12, '\1')));
    expect_mentions(usage_error([&] { open(); }), {"24 bit", "sox", "-b 16"});
    write(wav(format_chunk(1, 32), std::string(12, '\1')));
    expect_mentions(usage_error([&] { open(); }), {"32 bit", "sox"});
    write(wav(format_chunk(1, 32, 3), std::string(12, '\1')));
    expect_mentions(usage_error([&] { open(); }), {"float", "sox"});
}

TEST_F(WavSourceTest, RefusesWhatIsNoSoundFile) {
    for (const std::string& bytes : {std::string(), std::string("RIFF"), std::string(100, 'x'),
                                     std::string("RIFF\x24\0\0\0WAVEfmt ", 16)}) {
        write(bytes);
        expect_mentions(usage_error([&] { open(); }), {"a.wav"});
    }
    EXPECT_THROW(open_wav_source(SourceUri::parse("wav:/no/such.wav"), {}), UsageError);
    EXPECT_THROW(open_wav_source(SourceUri::parse("wav:/dev/null"), {}), UsageError);
    expect_mentions(usage_error([] { open_wav_source(SourceUri::parse("wav:"), {}); }),
                    {"wav:capture.wav"});
    write(wav(format_chunk(2, 16), samples_));
    expect_mentions(usage_error([&] { open("?offset=4"); }), {"'offset'", "samples"});
    expect_mentions(usage_error([&] { open("?rate=44100"); }), {"44100", "48000"});
}

RiffSizes sizes_of(const std::string& bytes, uint64_t file_bytes) {
    const auto read = [&bytes](uint64_t offset, std::span<std::byte> to) {
        const std::string_view rest =
            std::string_view(bytes).substr(std::min<uint64_t>(offset, bytes.size()), to.size());
        std::transform(rest.begin(), rest.end(), to.begin(),
                       [](char c) { return static_cast<std::byte>(c); });
        return rest.size();
    };
    const std::optional<RiffSizes> sizes = read_riff_sizes(read, file_bytes);
    EXPECT_TRUE(sizes.has_value());
    return sizes.value_or(RiffSizes{});
}

TEST(RiffSizes, SamplesThatLookLikeAChunkAreNoChunkWhenTheyDoNotFit) {
    const std::string hidden = "TEXT" + le(0x7FFFFFFF, 4) + "more";
    const std::string bytes = wav(format_chunk(1, 16), hidden, 0);
    EXPECT_EQ(sizes_of(bytes, bytes.size()).unaccounted(), hidden.size());
}

TEST(RiffSizes, AnOpenSizeReachesToTheEnd) {
    const std::string bytes = wav(format_chunk(1, 16), "12345678", 0xFFFFFFFF);
    const RiffSizes sizes = sizes_of(bytes, bytes.size());
    EXPECT_TRUE(sizes.data_open);
    EXPECT_EQ(sizes.data_bytes, 8U);
    EXPECT_EQ(sizes.missing(), 0U);
    EXPECT_EQ(sizes.unaccounted(), 0U);
}

}  // namespace
}  // namespace echelle
