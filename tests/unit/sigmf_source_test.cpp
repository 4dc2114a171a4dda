#include "coordinator/sources/sigmf_source.hpp"

#include <numeric>

#include <nlohmann/json.hpp>

#include "coordinator/sources/sigmf_pieces.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

class SigmfSourceTest : public testing::Test {
  protected:
    // Writes metadata with `global` fields besides version, and `captures`.
    void write_metadata(const std::string& global, const std::string& captures) const {
        folder_.write("x.sigmf-meta", R"({"global": {"core:version": "1.2.0", )" + global +
                                          R"(}, "captures": )" + captures + "}");
    }
    std::unique_ptr<Source> open(const std::string& keys = {},
                                 const StreamOptions& options = {}) const {
        return open_sigmf_source(SourceUri::parse("sigmf:" + folder_.file("x.sigmf-meta") + keys),
                                 options);
    }

    TemporaryFolder folder_;
    const std::string one_channel_ = R"("core:datatype": "ri16_le", "core:sample_rate": 100)";
    const std::string start_0_ = R"([{"core:sample_start": 0}])";
};

TEST_F(SigmfSourceTest, ReadsAPlainRecording) {
    write_metadata(R"("core:datatype": "ci16_le", "core:num_channels": 2,
                      "core:sample_rate": 66.66666666666667)",
                   R"([{"core:sample_start": 0, "core:datetime": "2021-06-18T23:17:51.163959Z"}])");
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    const auto source = open("?samples=2");
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{2, 2, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(stream.rate, (Rational{200, 3}));
    EXPECT_EQ(stream.epoch_ns, 1'624'058'271'163'959'000);
    EXPECT_EQ(source->total_samples(), 3U);
    EXPECT_EQ(source->longest_stretch(), 3U);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::block);
    expect_mentions(source->describe(),
                    {"x.sigmf-data", "2 channels, ci16", "200/3 Hz", "3 samples"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(frames[1].valid_samples, 1U);
    EXPECT_EQ(frames[1].values[3], 12);
}

TEST_F(SigmfSourceTest, ThePathMayNameEitherFileOrBoth) {
    write_metadata(one_channel_, start_0_);
    folder_.write("x.sigmf-data", little_endian({1, 2, 3}));
    for (const char* name : {"x.sigmf-meta", "x.sigmf-data", "x"}) {
        const auto source = open_sigmf_source(SourceUri::parse("sigmf:" + folder_.file(name)), {});
        EXPECT_EQ(source->total_samples(), 3U) << name;
    }
}

// The example of the specification for core:header_bytes, with signed samples: 500 samples from
// byte 4, the rest from byte 1008. (SigMF issue 205.)
TEST_F(SigmfSourceTest, HeadersAreSkippedAndSamplesRunOnBehindThem) {
    write_metadata(R"("core:datatype": "ci8", "core:sample_rate": 1, "core:dataset": "x.dat",
                      "core:trailing_bytes": 3)",
                   R"([{"core:sample_start": 0, "core:header_bytes": 4},
                       {"core:sample_start": 500, "core:header_bytes": 4}])");
    std::string values(1200, '\0');
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<char>(i % 199);
    }
    folder_.write("x.dat", "HEAD" + values.substr(0, 1000) + "HEAD" + values.substr(1000) + "END");
    const auto source = open("?samples=600");
    EXPECT_EQ(source->total_samples(), 600U);
    EXPECT_EQ(source->longest_stretch(), 600U);
    EXPECT_EQ(source->stream().over_range_low, -128);
    EXPECT_EQ(source->stream().over_range_high, 127);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(frames[0].valid_samples, 600U);
    for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(frames[0].values[i], static_cast<signed char>(values[i])) << i;
    }
}

// The example of the specification for core:global_index, made shorter: 5 samples lost.
TEST_F(SigmfSourceTest, AGlobalIndexThatJumpsIsAGap) {
    write_metadata(one_channel_, R"([{"core:sample_start": 0, "core:global_index": 0},
                                     {"core:sample_start": 5, "core:global_index": 10}])");
    folder_.write("x.sigmf-data", little_endian({0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16}));
    const auto source = open("?samples=3");
    EXPECT_EQ(source->total_samples(), 12U);
    EXPECT_EQ(source->longest_stretch(), 7U);
    expect_mentions(source->describe(), {"12 samples per channel, 1 gap"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 5U);
    const struct {
        uint64_t first_sample;
        uint32_t valid_samples;
        uint32_t flags;
    } expected[] = {{0, 3, 0}, {3, 2, 0}, {10, 3, frame_gap_before}, {13, 3, 0}, {16, 1, 0}};
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].frame_index, i);
        EXPECT_EQ(frames[i].first_sample, expected[i].first_sample);
        EXPECT_EQ(frames[i].valid_samples, expected[i].valid_samples);
        EXPECT_EQ(frames[i].flags, expected[i].flags);
        for (uint32_t s = 0; s < frames[i].valid_samples; ++s) {
            // Every value was made equal to its index in the original stream.
            EXPECT_EQ(frames[i].values[s], static_cast<int>(frames[i].first_sample + s));
        }
    }
}

TEST_F(SigmfSourceTest, CapturesThatFollowOneAnotherRunOn) {
    write_metadata(one_channel_,
                   R"([{"core:sample_start": 0, "core:global_index": 70, "core:frequency": 1e9},
                       {"core:sample_start": 1, "core:global_index": 71},
                       {"core:sample_start": 1, "core:global_index": 71},
                       {"core:sample_start": 3, "core:global_index": 73, "core:frequency": 1e9}])");
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4, 5}));
    const auto source = open("?samples=4");
    EXPECT_EQ(source->longest_stretch(), 5U);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 4}));
    EXPECT_EQ(frames[0].first_sample, 0U);
    EXPECT_EQ(frames[1].values[0], 5);
    EXPECT_EQ(frames[1].flags, 0U);
}

TEST_F(SigmfSourceTest, AnotherFrequencyAndAnIndexThatFallsAreGapsOfUnknownLength) {
    write_metadata(one_channel_,
                   R"([{"core:sample_start": 0, "core:global_index": 50, "core:frequency": 1e9},
                       {"core:sample_start": 2, "core:global_index": 52, "core:frequency": 2e9},
                       {"core:sample_start": 4, "core:global_index": 7}])");
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4, 5, 6}));
    const std::vector<PlayedFrame> frames = play(*open("?samples=8"));
    ASSERT_EQ(frames.size(), 3U);
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].first_sample, 2 * i);
        EXPECT_EQ(frames[i].valid_samples, 2U);
        EXPECT_EQ(frames[i].flags, i == 0 ? 0U : uint32_t{frame_gap_before});
    }
}

TEST_F(SigmfSourceTest, TheFirstCaptureNeedNotBeginWithTheFile) {
    write_metadata(one_channel_, R"([{"core:sample_start": 2}])");
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4}));
    const std::vector<PlayedFrame> frames = play(*open("?samples=2"));
    ASSERT_EQ(frames.size(), 1U);
    EXPECT_EQ(frames[0].first_sample, 0U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{3, 4}));
}

TEST_F(SigmfSourceTest, IndicesCountFromTheOffsetOfASplitRecording) {
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4}));
    for (const char* captures : {R"([{"core:sample_start": 1000}, {"core:sample_start": 1002}])",
                                 R"([{"core:sample_start": 0}, {"core:sample_start": 2}])", "[]"}) {
        write_metadata(one_channel_ + R"(, "core:offset": 1000)", captures);
        const auto source = open("?samples=4");
        EXPECT_EQ(source->longest_stretch(), 4U) << captures;
        EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, 2, 3, 4})) << captures;
    }
}

TEST_F(SigmfSourceTest, TheRateMayComeFromTheUserWhenTheRecordingHasNone) {
    write_metadata(R"("core:datatype": "ri16_le")", start_0_);
    folder_.write("x.sigmf-data", little_endian({1}));
    expect_mentions(usage_error([&] { open(); }), {"core:sample_rate", "--rate"});
    StreamOptions options;
    options.rate = Rational{5, 1};
    EXPECT_EQ(open("", options)->stream().rate, (Rational{5, 1}));
    EXPECT_EQ(open("?rate=200/3", options)->stream().rate, (Rational{200, 3}));
}

TEST_F(SigmfSourceTest, WhatTheMetadataSaysMayNotBeContradicted) {
    write_metadata(R"("core:datatype": "ri16_le", "core:sample_rate": 100, "core:num_channels": 2)",
                   start_0_);
    folder_.write("x.sigmf-data", little_endian({1, 2}));
    StreamOptions agreeing;
    agreeing.channels = 2;
    agreeing.rate = Rational{100, 1};
    agreeing.format = SampleFormat::i16;
    agreeing.layout = Layout::sample_major;
    agreeing.samples = 77;
    EXPECT_EQ(open("", agreeing)->stream().geometry.samples, 77U);

    expect_mentions(usage_error([&] { open("?rate=99"); }), {"rate 99", "100"});
    StreamOptions rate;
    rate.rate = Rational{101, 1};
    expect_mentions(usage_error([&] { open("", rate); }), {"rate 101", "100"});
    StreamOptions channels;
    channels.channels = 128;
    expect_mentions(usage_error([&] { open("", channels); }), {"--channels 128", "says 2"});
    StreamOptions format;
    format.format = SampleFormat::ci16;
    expect_mentions(usage_error([&] { open("", format); }), {"--format ci16", "says i16"});
    StreamOptions layout;
    layout.layout = Layout::channel_major;
    expect_mentions(usage_error([&] { open("", layout); }),
                    {"--layout channel-major", "says sample-major"});
}

TEST_F(SigmfSourceTest, RefusesDataThatDoNotFit) {
    const std::string two = R"("core:datatype": "ri16_le", "core:sample_rate": 1,
                               "core:num_channels": 2)";
    folder_.write("x.sigmf-data", little_endian({1, 2, 3}));
    write_metadata(two, start_0_);
    expect_mentions(usage_error([&] { open(); }), {"6 bytes", "4 bytes", "tail=drop", "last 2"});
    const auto source = open("?tail=drop");
    EXPECT_EQ(source->total_samples(), 1U);
    expect_mentions(source->describe(), {"last 2 bytes dropped"});

    write_metadata(two, R"([{"core:sample_start": 0}, {"core:sample_start": 9}])");
    expect_mentions(usage_error([&] { open("?tail=drop"); }),
                    {"captures[1]", "sample 9", "byte 6"});
    write_metadata(two, R"([{"core:sample_start": 18446744073709551615}])");
    expect_mentions(usage_error([&] { open(); }), {"captures[0]", "18446744073709551615"});
    write_metadata(two, R"([{"core:sample_start": 0, "core:header_bytes": 18446744073709551615},
                            {"core:sample_start": 1, "core:header_bytes": 18446744073709551615}])");
    expect_mentions(usage_error([&] { open(); }), {"captures[0]"});
    write_metadata(two + R"(, "core:trailing_bytes": 7)", start_0_);
    expect_mentions(usage_error([&] { open(); }), {"core:trailing_bytes is 7", "6 bytes"});
    write_metadata(two, R"([{"core:sample_start": 1, "core:header_bytes": 2}])");
    expect_mentions(usage_error([&] { open(); }), {"no samples"});
    write_metadata(one_channel_,
                   R"([{"core:sample_start": 0, "core:global_index": 0},
                       {"core:sample_start": 1, "core:global_index": 18446744073709551615}])");
    expect_mentions(usage_error([&] { open(); }), {"core:global_index", "2^63"});
}

TEST_F(SigmfSourceTest, RefusesUnusableFiles) {
    expect_mentions(usage_error([&] { open(); }), {"x.sigmf-meta", "No such file"});
    write_metadata(one_channel_, start_0_);
    expect_mentions(usage_error([&] { open(); }), {"x.sigmf-data", "No such file"});
    folder_.write("x.sigmf-data", "");
    expect_mentions(usage_error([&] { open(); }), {"x.sigmf-data", "no samples"});
    expect_mentions(usage_error([&] { open("?tail=keep"); }), {"tail=keep"});
    expect_mentions(usage_error([&] { open("?channels=2"); }), {"'channels'", "rate"});
    expect_mentions(usage_error([&] { open("?samples=0"); }), {"samples", "0"});
    write_metadata(one_channel_ + R"(, "core:dataset": "y.dat", "core:metadata_only": true)",
                   start_0_);
    expect_mentions(usage_error([&] { open(); }), {"y.dat", "core:metadata_only"});
    for (const char* path : {"sigmf:", "sigmf:x.sigmf", "sigmf:/dev/null"}) {
        EXPECT_THROW(open_sigmf_source(SourceUri::parse(path), {}), UsageError) << path;
    }
}

// The digest of "abc" is the example of FIPS 180-4.
const std::string abc_sha512 =
    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

TEST_F(SigmfSourceTest, TheSamplesAreVerifiedOnRequest) {
    const std::string eight_bits = R"("core:datatype": "ri8", "core:sample_rate": 1)";
    write_metadata(eight_bits + R"(, "core:sha512": ")" + abc_sha512 + "\"", start_0_);
    folder_.write("x.sigmf-data", "abc");
    expect_mentions(open("?verify=sha512")->describe(), {"SHA-512 verified"});
    folder_.write("x.sigmf-data", "abd");
    EXPECT_EQ(open()->total_samples(), 3U);
    expect_mentions(usage_error([&] { open("?verify=sha512"); }),
                    {"x.sigmf-data", "core:sha512 " + abc_sha512, "fetch them again"});
    write_metadata(eight_bits, start_0_);
    expect_mentions(usage_error([&] { open("?verify=sha512"); }), {"no core:sha512"});
    expect_mentions(usage_error([&] { open("?verify=md5"); }), {"verify=md5"});
    write_metadata(eight_bits + R"(, "core:sha512": "12")", start_0_);
    expect_mentions(usage_error([&] { open(); }), {"core:sha512", "128 hexadecimal digits"});
}

TEST_F(SigmfSourceTest, AnnotationsAreKept) {
    folder_.write("x.sigmf-data", little_endian({1, 2, 3}));
    folder_.write("x.sigmf-meta", R"({"global": {"core:version": "1.2.0", )" + one_channel_ +
                                      R"(}, "captures": [], "annotations": [
        {"core:sample_start": 1, "core:sample_count": 2, "core:label": "burst",
         "core:freq_lower_edge": -1.5, "nested": {"core:label": "not this"}}, 7,
        {"core:sample_start": 2}]})");
    const nlohmann::json facts = open()->facts();
    ASSERT_EQ(facts.at("annotations").size(), 2U);
    const nlohmann::json& first = facts.at("annotations")[0];
    EXPECT_EQ(first.at("core:sample_start"), 1);
    EXPECT_EQ(first.at("core:label"), "burst");
    EXPECT_EQ(first.at("core:freq_lower_edge"), -1.5);
    EXPECT_EQ(facts.at("annotations_left_out"), 0);
    std::string many;
    for (int i = 0; i < 5000; ++i) {
        many += (i == 0 ? "" : ",") + std::string(R"({"core:sample_start": 1})");
    }
    folder_.write("x.sigmf-meta", R"({"annotations": [)" + many +
                                      R"(], "global": {"core:version": "1.2.0", )" + one_channel_ +
                                      R"(}, "captures": []})");
    EXPECT_EQ(open()->facts().at("annotations").size(), 1000U);
    EXPECT_EQ(open()->facts().at("annotations_left_out"), 4000);
}

// sdrangel issue 2325: a bad time, and two captures of one time.
TEST_F(SigmfSourceTest, TimesThatCannotBeAreNamed) {
    folder_.write("x.sigmf-data", little_endian({1, 2, 3, 4}));
    const std::string second = R"(, {"core:sample_start": 2, "core:datetime": ")";
    const std::string first = R"([{"core:sample_start": 0,
                                   "core:datetime": "2021-06-18T23:17:51Z"})";
    write_metadata(one_channel_, first + second + R"(2021-06-18T23:17:51Z"}])");
    const auto source = open();
    EXPECT_EQ(source->longest_stretch(), 4U);
    expect_mentions(source->describe(), {"core:datetime of captures[1]", "not after"});
    write_metadata(one_channel_, first + second + R"(2021-06-31T00:00:00Z"}])");
    expect_mentions(usage_error([&] { open(); }),
                    {"captures[1]", "core:datetime", "2021-06-31T00:00:00Z"});
    write_metadata(one_channel_, first + second + R"(2021-06-18T23:17:52Z"}])");
    EXPECT_EQ(open()->describe().find("core:datetime"), std::string::npos);
}

TEST_F(SigmfSourceTest, UnsignedSamplesAreOffsetBinary) {
    write_metadata(R"("core:datatype": "cu8", "core:sample_rate": 1)", start_0_);
    folder_.write("x.sigmf-data", std::string("\x00\x80\xFF\x7F", 4));
    const auto source = open("?samples=2");
    EXPECT_EQ(source->stream().over_range_low, -128);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{-128, 0, 127, -1}));
    write_metadata(R"("core:datatype": "ru16_be", "core:sample_rate": 1)", start_0_);
    EXPECT_EQ(play(*open("?samples=2")).at(0).values,
              (std::vector<int16_t>{0x80 - 0x8000, 0x7F7F}));
}

// POSIX ustar (IEEE 1003.1), written by hand.
std::string tar_member(const std::string& name, const std::string& content) {
    const auto octal = [](uint64_t value, int digits) {
        std::string text;
        for (int i = 0; i < digits; ++i) {
            text.insert(text.begin(), static_cast<char>('0' + (value & 7U)));
            value >>= 3U;
        }
        return text + '\0';
    };
    std::string header = padded(name, 100) + octal(0644, 7) + octal(0, 7) + octal(0, 7) +
                         octal(content.size(), 11) + octal(0, 11) + "        0";
    header = padded(padded(header, 257) + std::string("ustar\00000", 8), 512);
    uint64_t sum = 0;
    for (const char byte : header) {
        sum += static_cast<unsigned char>(byte);
    }
    header.replace(148, 7, octal(sum, 6));
    return header + padded(content, (content.size() + 511) / 512 * 512);
}

std::string metadata_of(const std::string& global) {
    return R"({"global": {"core:version": "1.2.0", "core:sample_rate": 5, )" + global +
           R"(}, "captures": []})";
}

TEST_F(SigmfSourceTest, AnArchiveIsReadInPlace) {
    const std::string end(1024, '\0');
    const std::string one =
        tar_member("x/x.sigmf-meta", metadata_of(R"("core:datatype": "ri16_le")")) +
        tar_member("x/x.sigmf-data", little_endian({1, -2, 3}));
    const std::string path = folder_.write("x.sigmf", one + end);
    const auto source = open_sigmf_source(SourceUri::parse("sigmf:" + path + "?samples=3"), {});
    expect_mentions(source->describe(), {"x.sigmf:x/x.sigmf-data"});
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, -2, 3}));

    const std::string two =
        tar_member("y/y.sigmf-meta",
                   metadata_of(R"("core:datatype": "ri8", "core:dataset": "y.dat")")) +
        tar_member("y/y.dat", "abcd");
    folder_.write("x.sigmf", one + two + end);
    expect_mentions(usage_error([&] { open_sigmf_source(SourceUri::parse("sigmf:" + path), {}); }),
                    {"archive of x, y", "recording="});
    for (const char* name : {"y", "y/y", "y.sigmf-meta"}) {
        const auto chosen =
            open_sigmf_source(SourceUri::parse("sigmf:" + path + "?recording=" + name), {});
        EXPECT_EQ(chosen->total_samples(), 4U) << name;
    }
    // Cut short in its data, and without any.
    folder_.write("x.sigmf", one.substr(0, one.size() - 510));
    expect_mentions(usage_error([&] { open_sigmf_source(SourceUri::parse("sigmf:" + path), {}); }),
                    {"x.sigmf", "fetch the whole archive"});
    folder_.write("x.sigmf", one.substr(0, 1024) + end);
    expect_mentions(usage_error([&] { open_sigmf_source(SourceUri::parse("sigmf:" + path), {}); }),
                    {"holds no 'x/x.sigmf-data'"});
    folder_.write("x.sigmf", "no archive at all");
    expect_mentions(usage_error([&] { open_sigmf_source(SourceUri::parse("sigmf:" + path), {}); }),
                    {"x.sigmf", "tar"});
}

TEST_F(SigmfSourceTest, ACollectionNamesItsRecordings) {
    write_metadata(one_channel_, start_0_);
    folder_.write("x.sigmf-data", little_endian({1, 2, 3}));
    const auto collection = [this](const std::string& streams) {
        return folder_.write(
            "c.sigmf-collection",
            R"({"collection": {"core:version": "1.2.0", "core:streams": )" + streams + "}}");
    };
    const auto open_it = [](const std::string& path, const std::string& keys) {
        return open_sigmf_source(SourceUri::parse("sigmf:" + path + keys), {});
    };
    const std::string path = collection(R"([{"name": "x", "hash": "12"}])");
    EXPECT_EQ(open_it(path, "")->total_samples(), 3U);
    expect_mentions(usage_error([&] { open_it(path, "?verify=sha512"); }),
                    {"x.sigmf-meta", "says 12"});
    collection(R"([{"name": "z"}, {"name": "x.sigmf-meta"}])");
    expect_mentions(usage_error([&] { open_it(path, ""); }), {"collection of z, x", "recording="});
    EXPECT_EQ(open_it(path, "?recording=x")->total_samples(), 3U);
    expect_mentions(usage_error([&] { open_it(path, "?recording=z"); }), {"z.sigmf-meta"});
    for (const char* streams : {"[]", "7", R"([{"name": "../x"}])", R"([{"name": 3}])", "[7]",
                                R"([{"hash": "12"}])", R"([{"name": ".."}])"}) {
        collection(streams);
        expect_mentions(usage_error([&] { open_it(path, ""); }), {"c.sigmf-collection"});
    }
    expect_mentions(usage_error([&] { open("?recording=x"); }), {"leave recording= out"});
}

// Expected values: numpy.fromfile(..., '<i2').reshape(-1, 2) of the SigMF project's own logo.
TEST(SigmfLogo, IsReadAsNumpyReadsIt) {
    const std::string path = ECHELLE_SHARED_DATA "/sigmf_logo.sigmf-meta";
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "no real recordings here";
    }
    const auto source = open_sigmf_source(SourceUri::parse("sigmf:" + path), {});
    EXPECT_EQ(source->stream().geometry,
              (FrameGeometry{2, 2048, SampleFormat::i16, Layout::sample_major}));
    EXPECT_EQ(source->stream().rate, (Rational{48000, 1}));
    EXPECT_EQ(source->stream().epoch_ns, 1'624'058'271'163'959'000);
    EXPECT_EQ(source->total_samples(), 288'000U);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 141U);
    EXPECT_EQ(frames[0].values[0], -1);
    EXPECT_EQ(frames[0].values[2], 2);
    EXPECT_EQ(frames[70].values[0], 9076);
    EXPECT_EQ(frames[70].values[1], -774);
    EXPECT_EQ(frames[140].valid_samples, 288'000U % 2048U);
    int64_t sums[2] = {0, 0};
    int64_t squares[2] = {0, 0};
    for (const PlayedFrame& frame : frames) {
        for (size_t i = 0; i < size_t{2} * frame.valid_samples; ++i) {
            const int64_t value = frame.values[i];
            sums[i % 2] += value;
            squares[i % 2] += value * value;
        }
    }
    EXPECT_EQ(sums[0], -14'266'661);
    EXPECT_EQ(sums[1], 347'585'780);
    EXPECT_EQ(squares[0], 8'350'442'399'863);
    EXPECT_EQ(squares[1], 8'331'230'732'952);
}

}  // namespace
}  // namespace echelle
