// The replay keys of recordings. Every sample's value is its index where it was recorded, so what
// is played can be read off the values.
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "coordinator/sources/replay_plan.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

struct Played {
    uint64_t first_sample = 0;
    std::vector<int16_t> values;  // the valid ones
    bool gap_before = false;

    bool operator==(const Played&) const = default;
};

void PrintTo(const Played& frame, std::ostream* out) {
    *out << frame.first_sample << (frame.gap_before ? " after a gap" : "") << ": "
         << testing::PrintToString(frame.values);
}

class ReplayTest : public testing::Test {
  protected:
    // Samples 0 to 4 and 10 to 16 of one channel at 100 Hz, three to a frame: five are missing.
    ReplayTest() {
        folder_.write("x.sigmf-meta",
                      R"({"global": {"core:version": "1.2.0", "core:datatype": "ri16_le",
                          "core:sample_rate": 100}, "captures": [
                          {"core:sample_start": 0, "core:global_index": 0,
                           "core:datetime": "2021-06-18T23:17:51Z"},
                          {"core:sample_start": 5, "core:global_index": 10}]})");
        folder_.write("x.sigmf-data", little_endian({0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16}));
    }
    std::unique_ptr<Source> open(const std::string& keys) const {
        return open_source("sigmf:" + folder_.file("x.sigmf-meta") + "?samples=3&" + keys, {});
    }
    std::vector<Played> played(const std::string& keys) const {
        std::vector<Played> frames;
        uint64_t index = 0;
        for (const PlayedFrame& frame : play(*open(keys))) {
            EXPECT_EQ(frame.frame_index, index++);
            EXPECT_LE(frame.valid_samples, 3U);
            frames.push_back({frame.first_sample,
                              {frame.values.begin(), frame.values.begin() + frame.valid_samples},
                              (frame.flags & frame_gap_before) != 0});
        }
        return frames;
    }

    TemporaryFolder folder_;
};

TEST_F(ReplayTest, WhatIsSelectedIsExactToTheSampleAndGapsStayGaps) {
    const std::vector<Played> all = {
        {0, {0, 1, 2}}, {3, {3, 4}}, {10, {10, 11, 12}, true}, {13, {13, 14, 15}}, {16, {16}}};
    const std::pair<const char*, std::vector<Played>> cases[] = {
        {"pace=asap", all},
        {"start=0&count=17", all},
        {"start=0s&count=1000s", all},
        {"loop=1", all},
        {"start=2&count=2", {{2, {2, 3}}}},
        {"start=4&count=7", {{4, {4}}, {10, {10}, true}}},
        // In a gap: what comes first has nothing before it that it could be apart from.
        {"start=7", {{10, {10, 11, 12}}, {13, {13, 14, 15}}, {16, {16}}}},
        {"start=3&count=5", {{3, {3, 4}}}},
        {"start=0.02s&count=0.03s", {{2, {2, 3, 4}}}},
        // 0.105 s lies between samples 10 and 11: rounded up.
        {"start=0.105s&count=2", {{11, {11, 12}}}},
        {"start=1.1e-1s&count=1", {{11, {11}}}},
    };
    for (const auto& [keys, expected] : cases) {
        EXPECT_EQ(played(keys), expected) << keys;
    }
}

// Index and time run on; nothing is averaged over the restart.
TEST_F(ReplayTest, ALoopRestartsBehindAGap) {
    EXPECT_EQ(
        played("start=3&count=8&loop=2"),
        (std::vector<Played>{{3, {3, 4}}, {10, {10}, true}, {11, {3, 4}, true}, {18, {10}, true}}));
    const auto source = open("start=3&count=8&loop=2");
    EXPECT_EQ(source->total_samples(), 6U);
    EXPECT_EQ(source->longest_stretch(), 2U);
    EXPECT_EQ(open("loop=yes")->total_samples(), std::nullopt);
    EXPECT_EQ(open("loop=yes")->longest_stretch(), 7U);
    // Frames cut across pieces without a gap, and a pass that ends with a whole frame.
    EXPECT_EQ(played("start=10&count=3&loop=3"),
              (std::vector<Played>{
                  {10, {10, 11, 12}}, {13, {10, 11, 12}, true}, {16, {10, 11, 12}, true}}));
}

TEST_F(ReplayTest, AnEndlessLoopEndsWhenItIsStopped) {
    const auto source = open("loop=yes");
    Ring ring = Ring::anonymous(source->stream(), 3);
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        RingWriter writer(ring);
        source->run(writer, OverrunPolicy::drop, stop);
        writer.end();
    });
    while (ring.head() < 1000) {
        std::this_thread::yield();
    }
    stop = true;
    producer.join();
    EXPECT_TRUE(ring.ended());
    EXPECT_GE(source->facts()["replay"]["passes_done"], 199);  // of five frames each
}

TEST_F(ReplayTest, TimeComesFromTheRecording) {
    // 2021-06-18T23:17:51Z, by GNU date. Indices stay the recording's, so sample 10 is 0.1 s later.
    EXPECT_EQ(open("start=10")->stream().epoch_ns, 1'624'058'271'000'000'000);
    EXPECT_EQ(play(*open("start=10"))[0].first_sample, 10U);
}

// A frame comes when its last sample would have been taken, the gap's time included, and never
// before. How much later is up to the machine; that no delay adds up is not: the whole is waited
// for once.
TEST_F(ReplayTest, APaceIsKeptByAbsoluteDeadlines) {
    const struct {
        const char* pace;
        double seconds;  // of 17 samples at 100 Hz
    } cases[] = {{"realtime", 0.17}, {"1x", 0.17}, {"4x", 0.17 / 4}, {"0.5x", 0.17 / 0.5}};
    for (const auto& [pace, seconds] : cases) {
        const auto source = open(std::string("pace=") + pace);
        EXPECT_EQ(source->default_policy(), OverrunPolicy::drop);
        const int64_t began_ns = monotonic_ns();
        EXPECT_EQ(play(*source).size(), 5U);
        const double took = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
        EXPECT_GE(took, seconds) << pace;
        EXPECT_LT(took, seconds + 5) << pace;
    }
    EXPECT_EQ(open("pace=asap")->default_policy(), OverrunPolicy::block);
}

TEST_F(ReplayTest, AWaitForAPaceEndsWhenItIsStopped) {
    const auto source = open("pace=0.00001x");  // the first frame is due in 50 minutes
    Ring ring = Ring::anonymous(source->stream(), 3);
    std::atomic<bool> stop{false};
    std::thread producer([&] {
        RingWriter writer(ring);
        source->run(writer, OverrunPolicy::drop, stop);
    });
    const timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
    stop = true;
    const int64_t began_ns = monotonic_ns();
    producer.join();
    EXPECT_LT(monotonic_ns() - began_ns, 5'000'000'000);
    EXPECT_EQ(ring.head(), 0U);
}

TEST_F(ReplayTest, ChannelMajorRowsAndSeveralPiecesAreEnteredInTheMiddle) {
    // Two channels, rows of four samples, the last block shorter: channel 1 is 100 more.
    folder_.write("rows.bin", little_endian({0, 1, 2,   3,  100, 101, 102, 103,
                                             4, 5, 6,   7,  104, 105, 106, 107,  //
                                             8, 9, 108, 109}));
    const auto source = open_source("raw:" + folder_.file("rows.bin") +
                                        "?channels=2&rate=10&samples=4&layout=channel-major"
                                        "&start=0.3s&count=6",
                                    {});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{3, 4, 5, 6, 103, 104, 105, 106}));
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[1].values[0], 7);
    EXPECT_EQ(frames[1].values[1], 8);
    EXPECT_EQ(frames[1].values[4], 107);
    EXPECT_EQ(frames[1].values[5], 108);
}

TEST_F(ReplayTest, WhatCannotBePlayedIsRefusedInWords) {
    const struct {
        const char* keys;
        std::vector<std::string_view> words;
    } cases[] = {
        {"pace=slow", {"pace=slow", "realtime, asap"}},
        {"pace=0x", {"pace=0x", "positive"}},
        {"pace=-2x", {"pace=-2x", "positive"}},
        {"pace=x", {"pace=x"}},
        {"loop=no", {"loop=no", "yes, or how often"}},
        {"loop=0", {"loop=0", "1 or more"}},
        {"loop=9223372036854775807", {"loop=9223372036854775807", "2^63", "loop=yes"}},
        {"start=17", {"start=17", "17 samples", "smaller"}},
        {"start=1e9s", {"start=1e9s", "17 samples", "smaller"}},
        {"start=99999999999999999999", {"start=99999999999999999999", "whole number"}},
        {"start=-1", {"start=-1", "whole number of samples"}},
        {"start=1.5", {"start=1.5", "1.5s"}},
        {"start=-1s", {"start=-1s", "positive"}},
        {"start=nans", {"start=nans", "positive"}},
        {"count=0", {"count=0", "1 or more"}},
        {"count=0s", {"count=0s", "1 or more"}},
        {"start=6&count=3", {"count=3", "missing", "more"}},
    };
    for (const auto& [keys, words] : cases) {
        const std::string message = usage_error([&, name = keys] { open(name); });
        for (const std::string_view word : words) {
            expect_mentions(message, {word});
        }
    }
}

TEST(ReplayPlan, ReportsEveryPartOfASelectionOverManyPieces) {
    std::vector<SamplePiece> pieces(3);
    pieces[0].samples = 10;
    pieces[1].samples = 5;  // follows the first
    pieces[2].samples = 20;
    pieces[2].gap_before = true;  // of unknown length
    ReplayKeys keys;
    keys.start = ReplayLength{"4", 4, std::nullopt};
    keys.count = ReplayLength{"20", 20, std::nullopt};
    const ReplayPlan plan(pieces, keys, {1, 1}, "x");
    EXPECT_EQ(plan.stretches(),
              (std::vector<ReplayStretch>{
                  {0, 4, 6, 4, false}, {1, 0, 5, 10, false}, {2, 0, 9, 15, true}}));
    EXPECT_EQ(plan.samples(), 20U);
    EXPECT_EQ(plan.longest_stretch(), 11U);
    EXPECT_EQ(plan.gaps(), 1U);
    EXPECT_EQ(plan.span(), 20U);
}

}  // namespace
}  // namespace echelle
