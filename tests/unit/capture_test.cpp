// Captures: what is written is what a replay plays, and what is lost is counted and marked.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/clock.hpp"
#include "coordinator/capture/capture_sequence.hpp"
#include "coordinator/capture/frame_capture.hpp"
#include "coordinator/capture/interleave.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

Stream stream_of(FrameGeometry geometry) {
    Stream stream;
    stream.geometry = geometry;
    stream.rate = {1000, 3};
    stream.epoch_ns = 1'700'000'000'123'456'789;
    return stream;
}

TEST(Interleave, PutsRowsOfChannelsIntoTheOrderOfFiles) {
    for (const SampleFormat format : {SampleFormat::i16, SampleFormat::ci16}) {
        for (const auto& [channels, row, samples] :
             {std::array{1U, 1U, 1U}, std::array{2U, 5U, 3U}, std::array{9U, 70U, 65U},
              std::array{17U, 33U, 33U}, std::array{128U, 64U, 64U}}) {
            const FrameGeometry geometry{channels, row, format, Layout::channel_major};
            const size_t values = geometry.values_per_sample();
            std::vector<int16_t> frame(geometry.frame_values());
            // A value that tells channel, sample and part.
            for (size_t i = 0; i < frame.size(); ++i) {
                frame[i] = static_cast<int16_t>(i * 7919 % 65'521 - 32'760);
            }
            std::vector<int16_t> out(size_t{samples} * channels * values);
            interleave(frame, geometry, samples, out);
            for (size_t s = 0; s < samples; ++s) {
                for (size_t c = 0; c < channels; ++c) {
                    for (size_t v = 0; v < values; ++v) {
                        ASSERT_EQ(out[(s * channels + c) * values + v],
                                  frame[(c * row + s) * values + v])
                            << channels << " " << s << " " << c;
                    }
                }
            }
        }
    }
}

TEST(CaptureSequence, CutsWhereTheLiveStreamIsCut) {
    constexpr uint32_t samples = 10;
    const struct {
        FrameStamp stamp;
        CaptureVerdict verdict;
        bool continues;
    } steps[] = {
        {{5, 50, 10, 0}, CaptureVerdict::taken, false},  // the first one
        {{6, 60, 10, 0}, CaptureVerdict::taken, true},
        {{6, 60, 10, 0}, CaptureVerdict::repeated, false},
        {{7, 70, 10, 0}, CaptureVerdict::taken, true},
        {{4, 40, 10, 0}, CaptureVerdict::out_of_order, false},
        {{8, 80, 10, frame_gap_before}, CaptureVerdict::taken, false},
        {{9, 95, 10, 0}, CaptureVerdict::taken, false},    // the index jumps
        {{11, 105, 10, 0}, CaptureVerdict::taken, false},  // the frame count jumps
        {{12, 115, 4, 0}, CaptureVerdict::taken, true},
        {{13, 119, 10, 0}, CaptureVerdict::taken, false},  // behind a partial frame
        {{14, 129, 0, 0}, CaptureVerdict::malformed, false},
        {{15, 139, 11, 0}, CaptureVerdict::malformed, false},
        {{14, 129, 10, 0}, CaptureVerdict::taken, false},  // a malformed one stood before it
        {{uint64_t{1} << 40, 139, 10, 0}, CaptureVerdict::malformed, false},
        {{15, 139, 10, 0}, CaptureVerdict::taken, false},
        {{16, 149, 10, 0}, CaptureVerdict::taken, true},
    };
    CaptureSequence sequence(samples);
    for (const auto& [stamp, verdict, continues] : steps) {
        const CaptureSequence::Step step = sequence.next(stamp);
        EXPECT_EQ(step.verdict, verdict) << stamp.frame_index;
        EXPECT_EQ(step.continues, continues) << stamp.frame_index;
    }
    sequence.break_here();
    EXPECT_FALSE(sequence.next({17, 159, 10, 0}).continues);
}

class CaptureFileTest : public testing::Test {
  protected:
    std::unique_ptr<CaptureFile> make(const FrameGeometry& geometry) const {
        return std::make_unique<CaptureFile>(folder_.file("x"), stream_of(geometry), "a test",
                                             true);
    }
    static std::span<const std::byte> bytes(std::string_view text) {
        return std::as_bytes(std::span(text));
    }
    std::unique_ptr<Source> open(const std::string& keys = {}) const {
        return open_source("sigmf:" + folder_.file("x") + keys, {});
    }

    TemporaryFolder folder_;
};

TEST_F(CaptureFileTest, WhatIsTakenBackIsNeitherInTheDataNorInTheirHash) {
    const auto file = make({1, 4, SampleFormat::i16, Layout::sample_major});
    file->begin_segment(0, false);
    file->append(bytes("abcd"));
    file->append(bytes("efgh"));
    file->take_back();
    file->append(bytes("ijkl"));
    file->finish();
    EXPECT_EQ(content_of(folder_.file("x.sigmf-data")), "abcdijkl");
    // printf abcdijkl | sha512sum, by GNU coreutils.
    expect_mentions(content_of(folder_.file("x.sigmf-meta")),
                    {"223e6528cd23e045531317de500566274d990e2c2b1b4f60c6b7537397e80f98"
                     "4be10179726b9c2420bdaeb8d0c8bc3661c71417416dea10a9336347f7c01f88"});
    expect_mentions(open("?verify=sha512")->describe(), {"4 samples per channel", "verified"});
}

// A run that is killed leaves what it had written at any moment: whole segments, and the last one
// cut off anywhere.
TEST_F(CaptureFileTest, AnUnfinishedFileOpens) {
    const FrameGeometry geometry{3, 4, SampleFormat::i16, Layout::sample_major};
    const auto file = make(geometry);
    file->begin_segment(100, false);
    EXPECT_TRUE(fs::exists(folder_.file("x.sigmf-meta")));
    file->append(bytes("abcdefghijkl"));  // two samples of three channels
    file->begin_segment(500, true);
    EXPECT_EQ(open()->total_samples(), 2U);  // killed before the new segment has a sample
    file->append(bytes("mnopqr"));
    std::ofstream(folder_.file("x.sigmf-data"), std::ios::app) << "stu";
    const auto source = open();
    expect_mentions(source->describe(), {"killed", "last 3 bytes", "1 gap"});
    EXPECT_EQ(source->total_samples(), 3U);
    EXPECT_EQ(source->stream().geometry.samples, 4U);
    EXPECT_EQ(source->stream().epoch_ns, 1'700'000'000'123'456'789);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].first_sample, 100U);
    EXPECT_EQ(frames[1].first_sample, 500U);
    EXPECT_EQ(frames[1].flags, frame_gap_before);
}

TEST_F(CaptureFileTest, AFileWithoutSamplesIsRemoved) {
    {
        const auto file = make({1, 4, SampleFormat::i16, Layout::sample_major});
        file->begin_segment(0, false);
        file->finish();
    }
    EXPECT_TRUE(fs::is_empty(folder_.file("")));
}

TEST_F(CaptureFileTest, ASegmentThatGotNoSampleIsReplacedByTheNext) {
    const auto file = make({1, 4, SampleFormat::i16, Layout::sample_major});
    file->begin_segment(7, false);
    file->append(bytes("ab"));
    file->begin_segment(20, true);
    file->begin_segment(30, true);
    file->append(bytes("cd"));
    EXPECT_EQ(file->segments(), 2U);
    const std::vector<PlayedFrame> frames = play(*open());
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[1].first_sample, 30U);
}

// ---- from the ring

class FrameCaptureTest : public testing::Test {
  protected:
    static constexpr uint64_t slots = 8;

    void make(const std::string& keys, Layout layout = Layout::channel_major) {
        stream_ = stream_of({2, 4, SampleFormat::i16, layout});
        stream_.over_range_low = -128;
        stream_.over_range_high = 127;
        ring_.emplace(Ring::anonymous(stream_, slots));
        writer_.emplace(*ring_);
        FrameCapture::Setup setup;
        setup.ring = &*ring_;
        setup.taken = &taken_;
        setup.stream = stream_;
        setup.options = CaptureOptions::parse(folder_.file("") + "?" + keys);
        setup.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
        capture_ = FrameCapture::begin(std::move(setup));
    }
    void TearDown() override {
        if (capture_) {
            capture_->finish(10'000'000'000);
        }
    }

    // A frame whose values tell frame, channel and sample.
    void publish(const FrameStamp& stamp) {
        const std::span<int16_t> frame = writer_->begin();
        for (size_t i = 0; i < frame.size(); ++i) {
            frame[i] = static_cast<int16_t>(100 * stamp.frame_index + i);
        }
        writer_->commit(stamp);
        published_.push_back({stamp.frame_index,
                              stamp.first_sample,
                              stamp.valid_samples,
                              stamp.flags,
                              {frame.begin(), frame.end()}});
    }
    void take_all() { taken_.store(writer_->position(), std::memory_order_release); }
    // Until everything that was taken is written or lost.
    CaptureBooks settled() {
        const int64_t deadline_ns = monotonic_ns() + 20'000'000'000;
        CaptureBooks books = capture_->books();
        while ((books.in_flight > 0 || books.in == 0) && monotonic_ns() < deadline_ns) {
            std::this_thread::yield();
            books = capture_->books();
        }
        EXPECT_EQ(books.in, books.written + books.lost.in_all() + books.in_flight);
        return books;
    }
    void finish() {
        EXPECT_TRUE(capture_->finish(10'000'000'000));
        const CaptureBooks books = capture_->books();
        EXPECT_EQ(books.in, books.written + books.lost.in_all());
        EXPECT_FALSE(books.capturing);
    }
    std::vector<std::string> recordings() const {
        std::vector<std::string> paths;
        for (const auto& entry : fs::directory_iterator(folder_.file(""))) {
            if (entry.path().extension() == ".sigmf-meta") {
                paths.push_back(entry.path());
            }
        }
        std::sort(paths.begin(), paths.end());
        return paths;
    }

    TemporaryFolder folder_;
    Stream stream_;
    std::optional<Ring> ring_;
    std::optional<RingWriter> writer_;
    std::atomic<uint64_t> taken_{0};
    std::vector<std::string> warnings_;
    std::shared_ptr<FrameCapture> capture_;
    std::vector<PlayedFrame> published_;
};

class FrameCaptureInLayout : public FrameCaptureTest, public testing::WithParamInterface<Layout> {};

// Frame by frame what was published, but interleaved: samples, indices, gaps and stream.
TEST_P(FrameCaptureInLayout, AReplayIsTheStreamThatItWas) {
    make("start=now", GetParam());
    publish({70, 700, 4, 0});
    publish({71, 704, 4, 0});
    publish({72, 708, 3, 0});
    publish({73, 711, 4, 0});                 // a gap of no known length: the grid restarts
    publish({75, 719, 4, frame_gap_before});  // a frame is missing
    publish({76, 723, 2, 0});
    take_all();
    EXPECT_EQ(settled().written, 6U);
    finish();
    const CaptureBooks books = capture_->books();
    EXPECT_EQ(books.segments, 3U);
    EXPECT_EQ(books.files, 1U);
    EXPECT_EQ(books.bytes, 21U * 4);
    ASSERT_EQ(recordings(), std::vector{books.last_file});
    const auto source = open_source(books.last_file + "?verify=sha512", {});
    const Stream stream = source->stream();
    EXPECT_EQ(stream.rate, stream_.rate);
    EXPECT_EQ(stream.epoch_ns, stream_.epoch_ns);
    EXPECT_EQ(stream.over_range_low, -128);
    EXPECT_EQ(stream.over_range_high, 127);
    EXPECT_EQ(stream.geometry, (FrameGeometry{2, 4, SampleFormat::i16, Layout::sample_major}));
    const std::vector<PlayedFrame> played = play(*source);
    ASSERT_EQ(played.size(), published_.size());
    for (size_t i = 0; i < played.size(); ++i) {
        EXPECT_EQ(played[i].first_sample, published_[i].first_sample);
        EXPECT_EQ(played[i].valid_samples, published_[i].valid_samples);
        EXPECT_EQ(played[i].flags, i == 3 || i == 4 ? frame_gap_before : 0U) << i;
        for (uint32_t s = 0; s < played[i].valid_samples; ++s) {
            for (uint32_t c = 0; c < 2; ++c) {
                const size_t from = GetParam() == Layout::channel_major ? c * 4 + s : s * 2 + c;
                EXPECT_EQ(played[i].values[s * 2 + c], published_[i].values[from]);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(BothLayouts, FrameCaptureInLayout,
                         testing::Values(Layout::channel_major, Layout::sample_major));

TEST_F(FrameCaptureTest, NothingIsCapturedThatIngestHasNotTaken) {
    make("start=now");
    publish({0, 0, 4, 0});
    publish({1, 4, 4, 0});
    taken_.store(1, std::memory_order_release);
    EXPECT_EQ(settled().in, 1U);
    finish();
    EXPECT_EQ(capture_->books().written, 1U);
    EXPECT_EQ(open_source(recordings().at(0), {})->total_samples(), 4U);
}

TEST_F(FrameCaptureTest, WhatIsOverwrittenBeforeItIsWrittenIsCountedAndMarked) {
    make("start=now");
    publish({0, 0, 4, 0});
    take_all();
    EXPECT_EQ(settled().written, 1U);
    // The capture sees none of these before the ring has come round.
    for (uint64_t index = 1; index <= 20; ++index) {
        publish({index, 4 * index, 4, 0});
    }
    take_all();
    const CaptureBooks books = settled();
    EXPECT_EQ(books.in, 21U);
    EXPECT_EQ(books.lost.overwritten, books.lost.in_all());
    EXPECT_GE(books.lost.overwritten, 12U);  // the ring holds eight of the twenty
    EXPECT_EQ(books.segments, 2U);
    finish();
    const auto source = open_source(recordings().at(0), {});
    EXPECT_EQ(*source->total_samples(), 4 * books.written);
    expect_mentions(source->describe(), {"1 gap"});
    EXPECT_EQ(play(*source).at(1).first_sample, 4 + 4 * books.lost.overwritten);
}

TEST_F(FrameCaptureTest, FramesThatTheRunDoesNotUseAreNotInIt) {
    make("start=now");
    publish({5, 20, 4, 0});
    publish({5, 20, 4, 0});
    publish({3, 12, 4, 0});
    publish({6, 24, 4, 0});
    publish({7, 28, 9, 0});
    take_all();
    const CaptureBooks books = settled();
    EXPECT_EQ(books.written, 2U);
    EXPECT_EQ(books.lost.repeated, 1U);
    EXPECT_EQ(books.lost.out_of_order, 1U);
    EXPECT_EQ(books.lost.malformed, 1U);
    EXPECT_EQ(books.segments, 1U);
}

TEST_F(FrameCaptureTest, AFileEndsAtItsSizeOrItsTime) {
    // A frame has 16 bytes and lasts 12 ms.
    for (const char* keys : {"size=32", "size=40", "seconds=0.024", "seconds=0.0201"}) {
        taken_ = 0;
        make(keys);
        for (uint64_t index = 0; index < 5; ++index) {
            publish({index, 4 * index, 4, 0});
        }
        take_all();
        settled();
        finish();
        const std::vector<std::string> files = recordings();
        ASSERT_EQ(files.size(), 3U) << keys;
        EXPECT_EQ(open_source(files[0], {})->total_samples(), 8U);
        // A later file knows its place in the stream.
        EXPECT_EQ(play(*open_source(files[1], {})).at(0).first_sample, 8U);
        EXPECT_EQ(open_source(files[2], {})->total_samples(), 4U);
        for (const auto& entry : fs::directory_iterator(folder_.file(""))) {
            fs::remove_all(entry.path());
        }
        capture_.reset();
    }
}

TEST_F(FrameCaptureTest, ADiskThatRefusesCostsFramesAndNotTheRun) {
    make("size=16");  // a file for each frame
    publish({0, 0, 4, 0});
    take_all();
    EXPECT_EQ(settled().written, 1U);
    fs::remove_all(folder_.file(""));
    publish({1, 4, 4, 0});
    publish({2, 8, 4, 0});
    take_all();
    CaptureBooks books = settled();
    EXPECT_EQ(books.written, 1U);
    EXPECT_EQ(books.lost.write_failed, 2U);
    expect_mentions(books.problem, {"cannot make", "No such file"});
    // It is tried again, once a second.
    fs::create_directory(folder_.file(""));
    const int64_t deadline_ns = monotonic_ns() + 20'000'000'000;
    for (uint64_t index = 3; books.written < 2 && monotonic_ns() < deadline_ns; ++index) {
        publish({index, 4 * index, 4, 0});
        take_all();
        const timespec pause{0, 50'000'000};
        nanosleep(&pause, nullptr);
        books = settled();
    }
    EXPECT_EQ(books.written, 2U);
    finish();
    ASSERT_EQ(warnings_.size(), 1U);
    expect_mentions(warnings_[0], {"cannot make", "the run goes on"});
}

TEST_F(FrameCaptureTest, CommandsStartAndStopItAndKeepWhatTheRingHolds) {
    make("start=later");
    EXPECT_THROW(capture_->stop(), CaptureRefusal);
    EXPECT_THROW(capture_->keep_last(1), CaptureRefusal);  // nothing has come in
    for (uint64_t index = 0; index < 10; ++index) {
        publish({index, 4 * index, 4, 0});
    }
    take_all();
    EXPECT_EQ(capture_->books().in, 0U);
    // A frame lasts 12 ms: three and a bit are four.
    EXPECT_EQ(capture_->keep_last(0.037), 4U);
    while (capture_->books().capturing) {
        std::this_thread::yield();
    }
    EXPECT_EQ(capture_->keep_last(1000), slots);
    while (capture_->books().capturing) {
        std::this_thread::yield();
    }
    capture_->start();
    EXPECT_THROW(capture_->start(), CaptureRefusal);
    publish({10, 40, 4, 0});
    take_all();
    capture_->stop();
    while (capture_->books().capturing) {
        std::this_thread::yield();
    }
    publish({11, 44, 4, 0});
    take_all();
    finish();
    const std::vector<std::string> files = recordings();
    ASSERT_EQ(files.size(), 3U);
    const auto first_and_count = [](const std::string& path) {
        const auto frames = play(*open_source(path, {}));
        return std::pair(frames.at(0).first_sample, frames.size());
    };
    EXPECT_EQ(first_and_count(files[0]), std::pair(uint64_t{24}, size_t{4}));
    EXPECT_EQ(first_and_count(files[1]), std::pair(uint64_t{8}, size_t{8}));
    EXPECT_EQ(first_and_count(files[2]), std::pair(uint64_t{40}, size_t{1}));
}

TEST_F(FrameCaptureTest, WhatIsNotWrittenWhenPatienceEndsIsLostByThatName) {
    make("start=now");
    for (uint64_t index = 0; index < 5; ++index) {
        publish({index, 4 * index, 4, 0});
    }
    take_all();
    EXPECT_TRUE(capture_->finish(-1));
    const CaptureBooks books = capture_->books();
    EXPECT_EQ(books.in, 5U);
    EXPECT_EQ(books.written + books.lost.stopped, 5U);
}

TEST(CaptureOptions, ReadsSizesAndRefusesInWords) {
    const CaptureOptions options = CaptureOptions::parse("/a/b?size=1.5G&seconds=2&start=later");
    EXPECT_EQ(options.directory, "/a/b");
    EXPECT_EQ(options.most_file_bytes, 1'500'000'000U);
    EXPECT_EQ(options.most_file_seconds, 2.0);
    EXPECT_FALSE(options.at_once);
    EXPECT_TRUE(options.with_sha512);
    const struct {
        const char* text;
        std::vector<std::string_view> words;
    } cases[] = {
        {"", {"no directory"}},
        {"x?size=0", {"size=0", "500M"}},
        {"x?size=1T", {"size=1T", "500M"}},
        {"x?size=1e30", {"size=1e30", "500M"}},
        {"x?seconds=-1", {"seconds=-1", "more than 0"}},
        {"x?seconds=soon", {"seconds=soon", "finite number"}},
        {"x?start=maybe", {"start=maybe", "now or later"}},
        {"x?sha512=maybe", {"sha512=maybe", "yes or no"}},
        {"x?colour=red", {"colour", "it takes"}},
    };
    for (const auto& [text, words] : cases) {
        const std::string message = usage_error([given = text] { CaptureOptions::parse(given); });
        for (const std::string_view word : words) {
            expect_mentions(message, {word});
        }
    }
    const TemporaryFolder folder;
    const std::string file = folder.write("file", "x");
    expect_mentions(usage_error([&] { make_capture_directory(file); }),
                    {"file", "not a directory"});
    expect_mentions(usage_error([&] { make_capture_directory(folder.file("no/such")); }),
                    {"no/such", "No such file"});
    make_capture_directory(folder.file("new"));
    EXPECT_TRUE(fs::is_empty(folder.file("new")));
}

}  // namespace
}  // namespace echelle
