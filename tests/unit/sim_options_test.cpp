#include "fpga_sim/sim_options.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/sources/sim_source.hpp"

namespace echelle {
namespace {

SimOptions options_of(std::string_view text) {
    SourceUri uri = SourceUri::parse(text);
    SimArguments arguments;
    take_from(uri, arguments);
    uri.refuse_unknown_keys();
    return complete_sim_options(arguments);
}

std::string refusal(std::string_view text) {
    try {
        options_of(text);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

std::unique_ptr<Source> open(std::string_view text, const StreamOptions& options = {}) {
    return open_sim_source(SourceUri::parse(text), options);
}

TEST(SimOptions, DefaultsAreTheMissionsCard) {
    const SimOptions options = options_of("sim:");
    EXPECT_EQ(options.stream.geometry,
              (FrameGeometry{128, 2048, SampleFormat::i16, Layout::channel_major}));
    EXPECT_EQ(options.stream.rate, (Rational{10'000'000, 1}));
    EXPECT_EQ(options.pace, Pace::realtime);
    EXPECT_EQ(options.generate, Generate::once);
    EXPECT_FALSE(options.frames);
    EXPECT_FALSE(options.total_samples());
    EXPECT_FALSE(options.faults.any());
    EXPECT_EQ(options.signal.rules.size(), 1U);
}

TEST(SimOptions, ReadsEveryKey) {
    const SimOptions options = options_of(
        "sim:?channels=3&samples=500&rate=200/3&format=ci16&layout=sample-major"
        "&signal=0: tone(f=1, a=5) + dc(2); *: noise(7)&seed=9&frames=40&pace=asap&generate=once"
        "&drop=0.25&drop-every=7&repeat-every=8&pause-every=9&pause-ms=2.5&over-range-every=10"
        "&write-raw=some file.raw");
    EXPECT_EQ(options.stream.geometry,
              (FrameGeometry{3, 500, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(options.stream.rate, (Rational{200, 3}));
    EXPECT_EQ(options.signal.text, "0: tone(f=1, a=5) + dc(2); *: noise(7)");
    EXPECT_EQ(options.seed, 9U);
    EXPECT_EQ(options.frames, 40U);
    EXPECT_EQ(options.pace, Pace::asap);
    EXPECT_EQ(options.generate, Generate::once);
    EXPECT_EQ(options.faults.drop, 0.25);
    EXPECT_EQ(options.faults.drop_every, 7U);
    EXPECT_EQ(options.faults.repeat_every, 8U);
    EXPECT_EQ(options.faults.pause_every, 9U);
    EXPECT_EQ(options.faults.pause_ms, 2.5);
    EXPECT_EQ(options.faults.over_range_every, 10U);
    EXPECT_EQ(options.write_raw, "some file.raw");
}

TEST(SimOptions, DurationMeansWholeFrames) {
    // 1 s at 10 MS/s is 4882.8 frames of 2048.
    EXPECT_EQ(options_of("sim:?duration=1").frames, 4883U);
    EXPECT_EQ(options_of("sim:?duration=2&rate=2048").frames, 2U);
    EXPECT_EQ(options_of("sim:?duration=1e-9").frames, 1U);
}

TEST(SimOptions, TotalSamplesAreKnownUnlessFramesAreDropped) {
    EXPECT_EQ(options_of("sim:?frames=10&samples=100").total_samples(), 1000U);
    EXPECT_EQ(options_of("sim:?frames=10&samples=100&repeat-every=2").total_samples(), 1000U);
    EXPECT_FALSE(options_of("sim:?frames=10&drop=0.1").total_samples());
    EXPECT_FALSE(options_of("sim:?frames=10&drop-every=3").total_samples());
}

TEST(SimOptions, RefusesNamingKeyAndRemedy) {
    struct Case {
        std::string_view text;
        std::string_view hint;
    };
    for (const Case& wrong : {
             Case{"sim:?seed=abc", "seed=abc: give a whole number"},
             Case{"sim:?seed=-1", "seed=-1"},
             Case{"sim:?frames=0", "frames=0: give 1 or more"},
             Case{"sim:?frames=9223372036854775807", "at most 2^62 samples"},
             Case{"sim:?frames=1&duration=1", "give one of them"},
             Case{"sim:?duration=0", "more than 0"},
             Case{"sim:?duration=-2", "more than 0"},
             Case{"sim:?duration=inf", "finite"},
             Case{"sim:?pace=slow", "give realtime or asap"},
             Case{"sim:?generate=twice", "give once or each"},
             Case{"sim:?drop=1", "less than 1"},
             Case{"sim:?drop=-0.1", "0 or more"},
             Case{"sim:?drop=nan", "finite"},
             Case{"sim:?drop-every=1", "give 2 or more"},
             Case{"sim:?pause-ms=-1", "pause-ms"},
             Case{"sim:?channels=0", "channels"},
             Case{"sim:?channels=4294967296", "channels=4294967296"},
             Case{"sim:?rate=1e-9", "more than an hour"},
             Case{"sim:?rate=-5", "rate"},
             Case{"sim:?signal=tone(", "signal, character"},
             Case{"sim:?chanels=4", "chanels"},
         }) {
        const std::string message = refusal(wrong.text);
        EXPECT_NE(message.find(wrong.hint), std::string::npos) << wrong.text << " -> " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
}

TEST(SimSource, AKeyWinsOverTheCommandLine) {
    StreamOptions options;
    options.channels = 16;
    options.samples = 1000;
    options.format = SampleFormat::ci16;
    const Stream stream = open("sim:?channels=4&rate=1e6", options)->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{4, 1000, SampleFormat::ci16, Layout::channel_major}));
    EXPECT_EQ(stream.rate, (Rational{1'000'000, 1}));
}

TEST(SimSource, RealTimeDropsAndHasAClockAsapBlocksAndHasNone) {
    const int64_t before = realtime_ns();
    const auto live = open("sim:");
    EXPECT_EQ(live->default_policy(), OverrunPolicy::drop);
    EXPECT_GE(live->stream().epoch_ns, before);
    EXPECT_LE(live->stream().epoch_ns, realtime_ns());
    const auto asap = open("sim:?pace=asap&frames=3&samples=64");
    EXPECT_EQ(asap->default_policy(), OverrunPolicy::block);
    EXPECT_EQ(asap->stream().epoch_ns, 0);
    EXPECT_EQ(asap->total_samples(), 192U);
    EXPECT_EQ(asap->longest_stretch(), 192U);
}

TEST(SimSource, SaysWhenFramesRecur) {
    EXPECT_NE(open("sim:")->describe().find("generated once and replayed round the ring"),
              std::string::npos);
    EXPECT_EQ(open("sim:?pace=asap")->describe().find("replayed"), std::string::npos);
}

TEST(SimSource, RefusesPathsAndSignalsThatDoNotFit) {
    EXPECT_THROW(open("sim:foo"), UsageError);
    EXPECT_THROW(open("sim:?channels=2&signal=5: dc(1)"), UsageError);
    EXPECT_THROW(open("sim:?nonsense=1"), UsageError);
}

TEST(SimSource, FeedsTheRingAndWaitsForRoom) {
    for (const char* text : {"sim:?pace=asap&frames=9&channels=2&samples=64&signal=dc(5)",
                             "sim:?pace=asap&frames=9&channels=2&samples=64&signal=dc(5)"
                             "&generate=once"}) {
        const auto source = open(text);
        Ring ring = Ring::anonymous(source->stream(), 4);
        RingWriter writer(ring);
        const std::atomic<bool> stop = false;
        std::thread thread([&] {
            source->prepare(ring, stop);
            source->run(writer, source->default_policy(), stop);
        });
        for (uint64_t p = 0; p < 9; ++p) {
            EXPECT_TRUE(ring.wait_for_frame(p, 10'000'000'000));
            EXPECT_EQ(ring.slot(p).frame_index, p);
            for (const int16_t value : ring.frame(p)) {
                EXPECT_EQ(value, 5);
            }
            ring.release_before(p + 1);
        }
        thread.join();
        EXPECT_EQ(ring.head(), 9U);
    }
}

}  // namespace
}  // namespace echelle
