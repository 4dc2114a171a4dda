#include "fpga_sim/frame_producer.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

SimArguments small(uint64_t frames, Pace pace = Pace::asap) {
    SimArguments arguments;
    arguments.channels = 2;
    arguments.samples = 100;
    arguments.rate = Rational{100'000, 1};  // a frame lasts 1 ms
    arguments.signal = "tone(1kHz, 1000) + noise(10)";
    arguments.frames = frames;
    arguments.pace = pace;
    return arguments;
}

struct Produced {
    Ring ring;
    ProducerCounts counts;
};

// Runs to the end in a ring that nothing is released from.
Produced produce(const SimArguments& arguments, uint64_t slots) {
    const SimOptions options = complete_sim_options(arguments);
    Produced produced{Ring::anonymous(options.stream, slots), {}};
    const std::atomic<bool> stop = false;
    FrameProducer producer(options);
    producer.fill(produced.ring, stop);
    RingWriter writer(produced.ring);
    producer.run(writer, false, stop);
    produced.counts = producer.counts();
    return produced;
}

std::vector<int16_t> generated(const SimArguments& arguments, uint64_t frame_index) {
    const SimOptions options = complete_sim_options(arguments);
    std::vector<int16_t> frame(options.stream.geometry.frame_values());
    FrameGenerator(options.signal, options.stream, options.seed)
        .generate(frame_index * options.stream.geometry.samples, frame);
    return frame;
}

std::vector<int16_t> samples_at(const Ring& ring, uint64_t position) {
    const std::span<const int16_t> frame = ring.frame(position);
    return {frame.begin(), frame.end()};
}

std::vector<int16_t> file_samples(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<int16_t> samples(std::filesystem::file_size(path) / sizeof(int16_t));
    file.read(reinterpret_cast<char*>(samples.data()),
              static_cast<std::streamsize>(samples.size() * sizeof(int16_t)));
    return samples;
}

std::string scratch(const std::string& name) {
    return testing::TempDir() + "echelle_frame_producer_" + std::to_string(getpid()) + "_" + name;
}

TEST(FrameProducer, PublishesEveryFrameWithItsStamp) {
    const SimArguments arguments = small(6);
    const Produced produced = produce(arguments, 8);
    ASSERT_EQ(produced.ring.head(), 6U);
    for (uint64_t p = 0; p < 6; ++p) {
        const RingSlot& slot = produced.ring.slot(p);
        EXPECT_TRUE(produced.ring.holds(p));
        EXPECT_EQ(slot.frame_index, p);
        EXPECT_EQ(slot.first_sample, p * 100);
        EXPECT_EQ(slot.valid_samples, 100U);
        EXPECT_EQ(slot.flags, 0U);
        EXPECT_EQ(samples_at(produced.ring, p), generated(arguments, p));
    }
    EXPECT_EQ(produced.counts.published, 6U);
}

TEST(FrameProducer, GeneratedOnceItReplaysTheSlotsUnderNewStamps) {
    SimArguments arguments = small(11);
    arguments.generate = Generate::once;
    const Produced produced = produce(arguments, 4);
    ASSERT_EQ(produced.ring.head(), 11U);
    for (uint64_t p = 7; p < 11; ++p) {
        EXPECT_EQ(produced.ring.slot(p).frame_index, p);
        EXPECT_EQ(produced.ring.slot(p).first_sample, p * 100);
        EXPECT_EQ(samples_at(produced.ring, p), generated(arguments, p % 4));
    }
    EXPECT_NE(samples_at(produced.ring, 0), samples_at(produced.ring, 1));
}

TEST(FrameProducer, WaitsForRoomAndLosesNothing) {
    const SimArguments arguments = small(50);
    const SimOptions options = complete_sim_options(arguments);
    Ring ring = Ring::anonymous(options.stream, 4);
    std::atomic<bool> stop = false;
    RingWriter writer(ring);
    FrameProducer producer(options);
    std::thread thread([&] { producer.run(writer, true, stop); });
    EXPECT_TRUE(ring.wait_for_frame(3, 10'000'000'000));
    // Full: a fifth frame would come within microseconds if anything let it.
    EXPECT_FALSE(ring.wait_for_frame(4, 100'000'000));
    for (uint64_t p = 0; p < 50; ++p) {
        EXPECT_TRUE(ring.wait_for_frame(p, 10'000'000'000));
        EXPECT_TRUE(ring.holds(p));
        EXPECT_EQ(ring.slot(p).frame_index, p);
        EXPECT_EQ(samples_at(ring, p), generated(arguments, p));
        ring.release_before(p + 1);
    }
    thread.join();
    EXPECT_EQ(producer.counts().published, 50U);
}

TEST(FrameProducer, StopsWhereverItWaits) {
    SimArguments blocked = small(50);
    SimArguments slow = small(50, Pace::realtime);
    slow.rate = Rational{1, 1};  // 100 s for a frame
    SimArguments paused = small(50);
    paused.faults.pause_every = 1;
    paused.faults.pause_ms = 100'000;
    for (const SimArguments& arguments : {blocked, slow, paused}) {
        const SimOptions options = complete_sim_options(arguments);
        Ring ring = Ring::anonymous(options.stream, 2);
        std::atomic<bool> stop = false;
        RingWriter writer(ring);
        FrameProducer producer(options);
        std::thread thread([&] { producer.run(writer, true, stop); });
        ring.wait_for_frame(1, 100'000'000);
        const int64_t asked = monotonic_ns();
        stop = true;
        thread.join();
        // 50 ms by design; the rest is for a busy machine.
        EXPECT_LT(monotonic_ns() - asked, 5'000'000'000);
        EXPECT_LT(producer.counts().published, 50U);
    }
}

TEST(FrameProducer, ADroppedFrameLeavesAMarkedGap) {
    SimArguments arguments = small(10);
    arguments.faults.drop_every = 4;  // frames 3 and 7
    const Produced produced = produce(arguments, 16);
    const std::vector<uint64_t> expected{0, 1, 2, 4, 5, 6, 8, 9};
    ASSERT_EQ(produced.ring.head(), expected.size());
    for (uint64_t p = 0; p < expected.size(); ++p) {
        const RingSlot& slot = produced.ring.slot(p);
        EXPECT_EQ(slot.frame_index, expected[p]);
        EXPECT_EQ(slot.first_sample, expected[p] * 100);
        EXPECT_EQ(slot.flags, expected[p] == 4 || expected[p] == 8 ? frame_gap_before : 0U);
        EXPECT_EQ(samples_at(produced.ring, p), generated(arguments, expected[p]));
    }
    EXPECT_EQ(produced.counts.dropped, 2U);
}

TEST(FrameProducer, DropsTheFractionAskedForAsTheSeedSays) {
    SimArguments arguments = small(20'000);
    arguments.channels = 1;
    arguments.samples = 1;
    arguments.faults.drop = 0.1;
    const Produced one = produce(arguments, 32'768);
    const Produced two = produce(arguments, 32'768);
    // Binomial: 2000 of 20,000, standard deviation sqrt(20,000 * 0.1 * 0.9) = 42.4.
    EXPECT_NEAR(static_cast<double>(one.counts.dropped), 2000, 5 * 42.4);
    ASSERT_EQ(one.ring.head(), two.ring.head());
    for (uint64_t p = 0; p < one.ring.head(); ++p) {
        ASSERT_EQ(one.ring.slot(p).frame_index, two.ring.slot(p).frame_index);
    }
    arguments.seed = 2;
    EXPECT_NE(produce(arguments, 32'768).counts.dropped, one.counts.dropped);
}

TEST(FrameProducer, ARepeatedFrameComesTwice) {
    SimArguments arguments = small(4);
    arguments.faults.repeat_every = 2;  // frames 1 and 3
    const Produced produced = produce(arguments, 16);
    const std::vector<uint64_t> expected{0, 1, 1, 2, 3, 3};
    ASSERT_EQ(produced.ring.head(), expected.size());
    for (uint64_t p = 0; p < expected.size(); ++p) {
        EXPECT_EQ(produced.ring.slot(p).frame_index, expected[p]);
        EXPECT_EQ(samples_at(produced.ring, p), generated(arguments, expected[p]));
    }
    EXPECT_EQ(produced.counts.repeated, 2U);
    EXPECT_EQ(produced.counts.published, 6U);
}

TEST(FrameProducer, AGapIsMarkedOnceWhenTheNextFrameIsRepeated) {
    SimArguments arguments = small(6);
    arguments.faults.drop_every = 3;    // frames 2 and 5
    arguments.faults.repeat_every = 4;  // frame 3
    const Produced produced = produce(arguments, 16);
    ASSERT_EQ(produced.ring.head(), 5U);  // 0 1 3 3 4
    EXPECT_EQ(produced.ring.slot(2).flags, frame_gap_before);
    EXPECT_EQ(produced.ring.slot(3).frame_index, 3U);
    EXPECT_EQ(produced.ring.slot(3).flags, 0U);
}

TEST(FrameProducer, InRealTimeNoFrameComesBeforeItsLastSample) {
    for (const Generate generate : {Generate::once, Generate::each}) {
        SimArguments arguments = small(60, Pace::realtime);
        arguments.generate = generate;
        const int64_t before = monotonic_ns();
        const Produced produced = produce(arguments, 64);
        ASSERT_EQ(produced.ring.head(), 60U);
        for (uint64_t p = 0; p < 60; ++p) {
            EXPECT_GE(produced.ring.slot(p).complete_ns,
                      before + static_cast<int64_t>(p + 1) * 1'000'000);
        }
        // It takes 60 ms; the rest is for a busy machine.
        EXPECT_LT(monotonic_ns() - before, 5'000'000'000);
    }
}

TEST(FrameProducer, CatchesUpAfterAPauseWithoutLeavingFramesOut) {
    SimArguments arguments = small(40, Pace::realtime);
    arguments.faults.pause_every = 10;
    arguments.faults.pause_ms = 8;  // before frames 9, 19, 29 and 39, which are a millisecond apart
    const Produced produced = produce(arguments, 64);
    ASSERT_EQ(produced.ring.head(), 40U);
    EXPECT_GE(produced.ring.slot(9).complete_ns - produced.ring.slot(8).complete_ns, 8'000'000);
    EXPECT_GE(produced.counts.late, 4U);
    for (uint64_t p = 0; p < 40; ++p) {
        EXPECT_EQ(produced.ring.slot(p).frame_index, p);
    }
}

TEST(FrameProducer, AnOverRangeBurstHasAKnownLengthOnEveryChannel) {
    for (const Layout layout : {Layout::channel_major, Layout::sample_major}) {
        for (const SampleFormat format : {SampleFormat::i16, SampleFormat::ci16}) {
            SimArguments arguments = small(6);
            arguments.layout = layout;
            arguments.format = format;
            arguments.faults.over_range_every = 3;
            const Produced produced = produce(arguments, 8);
            const size_t parts = format == SampleFormat::ci16 ? 2 : 1;
            for (uint64_t p = 0; p < 6; ++p) {
                const auto frame = samples_at(produced.ring, p);
                std::array<size_t, 2> at_rails{};
                for (size_t i = 0; i < frame.size(); ++i) {
                    const size_t channel =
                        layout == Layout::channel_major ? i / (100 * parts) : i / parts % 2;
                    at_rails[channel] += frame[i] == 32767 || frame[i] == -32768 ? 1 : 0;
                }
                const size_t expected = p % 3 == 2 ? 64 * parts : 0;
                EXPECT_EQ(at_rails, (std::array<size_t, 2>{expected, expected}));
            }
        }
    }
}

TEST(FrameProducer, TheRawFileHoldsEveryPublishedFrameOnce) {
    SimArguments arguments = small(12);
    arguments.write_raw = scratch("frames.raw");
    arguments.faults.drop_every = 5;    // 4 and 9
    arguments.faults.repeat_every = 3;  // 2, 5, 8 and 11
    produce(arguments, 4);
    std::vector<int16_t> expected;
    for (const uint64_t index : {0, 1, 2, 3, 5, 6, 7, 8, 10, 11}) {
        const auto frame = generated(arguments, index);
        expected.insert(expected.end(), frame.begin(), frame.end());
    }
    EXPECT_EQ(file_samples(arguments.write_raw), expected);
    EXPECT_FALSE(std::filesystem::exists(arguments.write_raw + ".partial"));
    // Without a ring the same file comes out.
    const std::atomic<bool> stop = false;
    std::filesystem::remove(arguments.write_raw);
    FrameProducer(complete_sim_options(arguments)).write_files(stop);
    EXPECT_EQ(file_samples(arguments.write_raw), expected);
    std::filesystem::remove(arguments.write_raw);
}

TEST(FrameProducer, AFullDiskLeavesNoHalfWrittenFile) {
    SimArguments arguments = small(10'000);  // 4 MB
    arguments.write_raw = scratch("full.raw");
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
    const rlimit small_disk{3'000'000, usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small_disk), 0);
    const std::atomic<bool> stop = false;
    std::string message;
    try {
        FrameProducer(complete_sim_options(arguments)).write_files(stop);
    } catch (const RunError& error) {
        message = error.what();
    }
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
    EXPECT_NE(message.find("full.raw"), std::string::npos) << message;
    EXPECT_NE(message.find("after 3000000 bytes"), std::string::npos) << message;
    EXPECT_FALSE(std::filesystem::exists(arguments.write_raw));
    EXPECT_FALSE(std::filesystem::exists(arguments.write_raw + ".partial"));
}

TEST(FrameProducer, RefusesARawFileThatCannotBeMade) {
    SimArguments arguments = small(1);
    arguments.write_raw = scratch("missing") + "/frames.raw";
    EXPECT_THROW(FrameProducer{complete_sim_options(arguments)}, UsageError);
    arguments.write_raw = "/dev/full";
    EXPECT_THROW(FrameProducer{complete_sim_options(arguments)}, UsageError);
}

}  // namespace
}  // namespace echelle
