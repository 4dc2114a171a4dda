#include "coordinator/sources/raw_source.hpp"

#include <numeric>
#include <utility>

#include <sys/stat.h>

#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

class RawSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& name, const std::string& keys,
                                 const StreamOptions& options = {}) const {
        return open_raw_source(SourceUri::parse("raw:" + folder_.file(name) + "?" + keys), options);
    }

    TemporaryFolder folder_;
};

TEST_F(RawSourceTest, InterleavedSamplesBecomeFramesAndAPartialOne) {
    folder_.write("a.bin", little_endian({1, -1, 2, -2, 3, -3, 4, -4, 5, -5}));
    const auto source = open("a.bin", "channels=2&rate=48e3&samples=2");
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{2, 2, SampleFormat::i16, Layout::sample_major}));
    EXPECT_EQ(stream.rate, (Rational{48000, 1}));
    EXPECT_EQ(stream.epoch_ns, 0);
    EXPECT_EQ(stream.over_range_low, -32768);
    EXPECT_EQ(stream.over_range_high, 32767);
    EXPECT_EQ(source->total_samples(), 5U);
    EXPECT_EQ(source->longest_stretch(), 5U);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::block);
    expect_mentions(source->describe(), {"a.bin", "2 channels", "sample-major assumed",
                                         "5 samples per channel", "48000 Hz"});

    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, -1, 2, -2}));
    EXPECT_EQ(frames[1].values, (std::vector<int16_t>{3, -3, 4, -4}));
    EXPECT_EQ(frames[2].values[0], 5);
    EXPECT_EQ(frames[2].values[1], -5);
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].frame_index, i);
        EXPECT_EQ(frames[i].first_sample, 2 * i);
        EXPECT_EQ(frames[i].valid_samples, i < 2 ? 2U : 1U);
        EXPECT_EQ(frames[i].flags, 0U);
    }
}

TEST_F(RawSourceTest, ChannelMajorRowsKeepTheirLengthInThePartialFrame) {
    // Two channels; a frame of 3 samples, then one of 2: rows 1 2 3, 11 12 13, 4 5, 14 15.
    folder_.write("a.bin", little_endian({1, 2, 3, 11, 12, 13, 4, 5, 14, 15}));
    const auto source = open("a.bin", "channels=2&rate=1&samples=3&layout=channel-major");
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 11, 12, 13}));
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[1].first_sample, 3U);
    const std::vector<int16_t>& last = frames[1].values;
    EXPECT_EQ((std::vector<int16_t>{last[0], last[1], last[3], last[4]}),
              (std::vector<int16_t>{4, 5, 14, 15}));
}

TEST_F(RawSourceTest, ChannelMajorComplexPartialFrame) {
    // One complex sample of two channels: re im re im; the ring's rows hold two samples.
    folder_.write("a.bin", little_endian({1, 2, 3, 4}));
    const auto source =
        open("a.bin", "channels=2&rate=1&samples=2&layout=channel-major&format=ci16");
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 1U);
    const std::vector<int16_t>& row = frames[0].values;
    EXPECT_EQ((std::vector<int16_t>{row[0], row[1], row[4], row[5]}),
              (std::vector<int16_t>{1, 2, 3, 4}));
}

TEST_F(RawSourceTest, BigEndianSamplesAreSwapped) {
    folder_.write("a.bin", std::string("\x01\x02\x80\x00\x7F\xFF\xFF\xFE", 8));
    const auto source = open("a.bin", "channels=1&rate=1&samples=4&endian=big");
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{0x0102, -32768, 32767, -2}));
}

TEST_F(RawSourceTest, EightBitSamplesAreWidenedExactly) {
    std::string bytes(256, '\0');
    std::iota(bytes.begin(), bytes.end(), '\x80');  // -128 ... 127
    folder_.write("a.bin", bytes);
    const auto source = open("a.bin", "channels=1&rate=1&samples=256&format=i8");
    EXPECT_EQ(source->stream().geometry.format, SampleFormat::i16);
    EXPECT_EQ(source->stream().over_range_low, -128);
    EXPECT_EQ(source->stream().over_range_high, 127);
    std::vector<int16_t> expected(256);
    std::iota(expected.begin(), expected.end(), int16_t{-128});
    EXPECT_EQ(play(*source).at(0).values, expected);
}

TEST_F(RawSourceTest, EightBitComplexSamplesTakeTwoBytes) {
    folder_.write("a.bin", "\x01\xFF\x02\xFE");
    const auto source = open("a.bin", "channels=1&rate=1&samples=2&format=ci8");
    EXPECT_EQ(source->total_samples(), 2U);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -1, 2, -2}));
}

// More samples than the buffers that widening and swapping go through.
TEST_F(RawSourceTest, LongFramesAreConvertedPartByPart) {
    constexpr size_t samples = 200'001;
    std::string narrow;
    std::string wide;
    for (size_t i = 0; i < samples; ++i) {
        narrow += static_cast<char>(i % 251);
        wide += static_cast<char>(i % 127);  // high byte first
        narrow.size() % 2 == 0 ? wide += '\x01' : wide += '\x02';
    }
    folder_.write("narrow.bin", narrow);
    folder_.write("wide.bin", wide);
    const auto widened = open("narrow.bin", "channels=1&rate=1&samples=200001&format=i8");
    const auto swapped = open("wide.bin", "channels=1&rate=1&samples=200001&endian=big");
    const std::vector<int16_t> widened_values = play(*widened).at(0).values;
    const std::vector<int16_t> swapped_values = play(*swapped).at(0).values;
    for (size_t i = 0; i < samples; ++i) {
        const int byte = static_cast<int>(i % 251);
        ASSERT_EQ(widened_values[i], byte < 128 ? byte : byte - 256) << i;
        ASSERT_EQ(swapped_values[i], static_cast<int>(i % 127) * 256 + (i % 2 == 1 ? 1 : 2)) << i;
    }
}

TEST_F(RawSourceTest, OffsetSkipsAHeaderAndTailDropsARest) {
    folder_.write("a.bin", "HEADER" + little_endian({1, 2, 3, 4}) + "xyz");
    const auto source = open("a.bin", "channels=2&rate=1&samples=8&offset=6&tail=drop");
    EXPECT_EQ(source->total_samples(), 2U);
    expect_mentions(source->describe(), {"from byte 6", "last 3 bytes dropped"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(frames[0].valid_samples, 2U);
    EXPECT_TRUE(std::equal(frames[0].values.begin(), frames[0].values.begin() + 4,
                           std::vector<int16_t>{1, 2, 3, 4}.begin()));
}

// RedPitaya issue 289: blocks of a raw file with headers that were read as samples.
TEST_F(RawSourceTest, BlockHeadersAreLeftOut) {
    const std::string file = "HEAD" + little_endian({1, 2, 3, 4}) + "HEAD" +
                             little_endian({5, 6, 7, 8}) + "HEAD" + little_endian({9, 10});
    folder_.write("a.bin", file);
    const auto source = open("a.bin", "channels=2&rate=1&samples=5&block=8&block-header=4");
    EXPECT_EQ(source->total_samples(), 5U);
    expect_mentions(source->describe(), {"4 header bytes left out before each 8"});
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    // Frames that begin and end anywhere in a block.
    const auto short_frames = open("a.bin", "channels=2&rate=1&samples=3&block=8&block-header=4");
    EXPECT_EQ(play(*short_frames).at(1).values[0], 7);
    expect_mentions(usage_error([&] { open("a.bin", "channels=2&rate=1&block=8"); }),
                    {"block-header="});
    expect_mentions(usage_error([&] { open("a.bin", "channels=2&rate=1&block=6&block-header=4"); }),
                    {"multiple of 4"});
}

TEST_F(RawSourceTest, UnsignedSamplesAreOffsetBinary) {
    folder_.write("a.bin", std::string("\x00\x80\xFF\x81", 4));
    EXPECT_EQ(play(*open("a.bin", "channels=1&rate=1&samples=4&format=u8")).at(0).values,
              (std::vector<int16_t>{-128, 0, 127, 1}));
    EXPECT_EQ(play(*open("a.bin", "channels=1&rate=1&samples=2&format=u16")).at(0).values,
              (std::vector<int16_t>{0, 0x01FF}));
    EXPECT_EQ(
        play(*open("a.bin", "channels=1&rate=1&samples=2&format=u16&endian=big")).at(0).values,
        (std::vector<int16_t>{0x0080 - 0x8000, 0x7F81}));
}

TEST_F(RawSourceTest, KeysWinOverOptions) {
    folder_.write("a.bin", little_endian({1, 2, 3, 4}));
    StreamOptions options;
    options.channels = 4;
    options.samples = 16;
    options.rate = Rational{5, 1};
    options.format = SampleFormat::i16;
    options.layout = Layout::channel_major;
    EXPECT_EQ(open("a.bin", "", options)->stream().geometry,
              (FrameGeometry{4, 16, SampleFormat::i16, Layout::channel_major}));
    EXPECT_EQ(open("a.bin", "", options)->stream().rate, (Rational{5, 1}));
    const auto source =
        open("a.bin", "channels=1&samples=2&rate=200/3&format=ci16&layout=sample-major", options);
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{1, 2, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(source->stream().rate, (Rational{200, 3}));
}

TEST_F(RawSourceTest, RefusesUnusableInput) {
    folder_.write("empty.bin", "");
    folder_.write("odd.bin", "12345");
    folder_.write("good.bin", "12345678");
    const struct {
        const char* file;
        const char* keys;
        std::initializer_list<std::string_view> parts;
    } cases[] = {
        {"none.bin", "channels=2&rate=1", {"none.bin", "No such file"}},
        {"empty.bin", "channels=2&rate=1", {"empty.bin", "empty"}},
        {"", "channels=2&rate=1", {"directory", "regular file"}},
        {"good.bin", "rate=1", {"--channels"}},
        {"good.bin", "channels=1", {"--rate"}},
        {"good.bin", "channels=0&rate=1", {"channels 0"}},
        {"good.bin", "channels=65537&rate=1", {"65537"}},
        {"good.bin", "channels=4294967297&rate=1", {"4294967297", "out of range"}},
        {"good.bin", "channels=1&rate=0", {"rate", "zero"}},
        {"good.bin", "channels=1&rate=-5", {"rate", "-5"}},
        {"good.bin", "channels=1&rate=1&samples=0", {"samples", "0"}},
        {"good.bin", "channels=1&rate=1&format=f32", {"format=f32", "ci8"}},
        {"good.bin", "channels=1&rate=1&endian=middle", {"endian=middle"}},
        {"good.bin", "channels=1&rate=1&format=i8&endian=big", {"endian=big", "8-bit"}},
        {"good.bin", "channels=1&rate=1&layout=rows", {"rows"}},
        {"good.bin", "channels=1&rate=1&tail=keep", {"tail=keep"}},
        {"good.bin", "channels=1&rate=1&offset=8", {"offset=8", "8 bytes"}},
        {"good.bin", "channels=1&rate=1&offset=-1", {"offset=-1"}},
        {"good.bin", "chanels=1&rate=1", {"'chanels'", "channels"}},
        {"good.bin", "channels=3&rate=1", {"8 bytes", "6 bytes", "tail=drop", "last 2"}},
        {"odd.bin", "channels=1&rate=1", {"5 bytes", "tail=drop"}},
        {"odd.bin", "channels=3&rate=1&tail=drop", {"5 bytes", "less than one sample"}},
    };
    for (const auto& [file, keys, parts] : cases) {
        SCOPED_TRACE(std::string(file) + "?" + keys);
        expect_mentions(usage_error([&, f = file, k = keys] { open(f, k); }), parts);
    }
    expect_mentions(
        usage_error([] { open_raw_source(SourceUri::parse("raw:?channels=1&rate=1"), {}); }),
        {"names no file"});
}

TEST_F(RawSourceTest, RefusesFifosAndDevicesWithoutWaiting) {
    ASSERT_EQ(mkfifo(folder_.file("fifo").c_str(), 0600), 0);
    expect_mentions(usage_error([&] { open("fifo", "channels=1&rate=1"); }),
                    {"a FIFO", "regular file"});
    expect_mentions(usage_error([] {
                        open_raw_source(SourceUri::parse("raw:/dev/zero?channels=1&rate=1"), {});
                    }),
                    {"a device", "regular file"});
}

TEST_F(RawSourceTest, RefusesAFileThatMayNotBeRead) {
    if (geteuid() == 0) {
        GTEST_SKIP() << "root may read everything";
    }
    chmod(folder_.write("a.bin", "12").c_str(), 0);
    expect_mentions(usage_error([&] { open("a.bin", "channels=1&rate=1"); }),
                    {"a.bin", "Permission denied"});
}

TEST_F(RawSourceTest, AFileThatShrinksWhileItIsReadIsAFailure) {
    const std::string path = folder_.write("a.bin", std::string(80, 'x'));
    const auto source = open("a.bin", "channels=1&rate=1&samples=10");
    std::filesystem::resize_file(path, 50);
    try {
        play(*source);
        FAIL() << "played to the end";
    } catch (const RunError& error) {
        expect_mentions(error.what(), {"a.bin", "byte 50", "80 bytes", "shrank"});
    }
}

TEST_F(RawSourceTest, StopEndsAWaitForRoom) {
    folder_.write("a.bin", std::string(2000, 'x'));
    const auto source = open("a.bin", "channels=1&rate=1&samples=10");
    Ring ring = Ring::anonymous(source->stream(), 3);
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        RingWriter writer(ring);
        source->run(writer, OverrunPolicy::block, stop);
    });
    EXPECT_TRUE(ring.wait_for_frame(2, 5'000'000'000));
    EXPECT_FALSE(ring.wait_for_frame(3, 50'000'000));  // nobody released a frame
    stop = true;
    producer.join();
    EXPECT_EQ(ring.head(), 3U);
}

TEST_F(RawSourceTest, WithThePolicyDropItNeverWaits) {
    folder_.write("a.bin", std::string(2000, 'x'));
    const auto source = open("a.bin", "channels=1&rate=1&samples=10");
    Ring ring = Ring::anonymous(source->stream(), 3);
    RingWriter writer(ring);
    const std::atomic<bool> stop{false};
    source->run(writer, OverrunPolicy::drop, stop);
    EXPECT_EQ(ring.head(), 100U);
    EXPECT_EQ(ring.slot(99).first_sample, 990U);
}

}  // namespace
}  // namespace echelle
