#include "coordinator/sources/ring_source.hpp"

#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

Stream some_stream() {
    Stream stream;
    stream.geometry = {4, 16, SampleFormat::ci16, Layout::sample_major};
    stream.rate = {200, 3};
    stream.epoch_ns = 1'624'058'271'163'959'000;
    return stream;
}

class RingSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const StreamOptions& options = {}) const {
        return open_ring_source(SourceUri::parse("ring:" + name_), options);
    }

    const std::string name_ = "test-ring-source-" + std::to_string(getpid());
    Ring producer_ = Ring::create_named(name_, some_stream(), 4);
    RingWriter writer_{producer_};
};

TEST_F(RingSourceTest, GivesTheStreamAndTheRingOfTheProducer) {
    const auto source = open();
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, some_stream().geometry);
    EXPECT_EQ(stream.rate, some_stream().rate);
    EXPECT_EQ(stream.epoch_ns, some_stream().epoch_ns);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::drop);
    EXPECT_EQ(source->total_samples(), std::nullopt);
    EXPECT_EQ(source->distinct_frames(), std::nullopt);
    expect_mentions(source->describe(), {name_, "4 channels", "ci16", "200/3 Hz", "live"});

    const std::optional<Ring> ring = source->take_ring();
    ASSERT_TRUE(ring.has_value());
    EXPECT_EQ(ring->slot_count(), 4U);
    writer_.begin()[5] = 1234;
    writer_.commit({.frame_index = 7, .first_sample = 112, .valid_samples = 16});
    ASSERT_TRUE(ring->holds(0));
    EXPECT_EQ(ring->slot(0).frame_index, 7U);
    EXPECT_EQ(ring->frame(0)[5], 1234);
    // The stream is still known when the ring has been handed on.
    EXPECT_EQ(source->stream().geometry, some_stream().geometry);
    EXPECT_FALSE(source->take_ring().has_value());
}

TEST_F(RingSourceTest, OptionsThatAgreeAreAccepted) {
    StreamOptions options;
    options.channels = 4;
    options.samples = 16;
    options.rate = Rational{200, 3};
    options.format = SampleFormat::ci16;
    options.layout = Layout::sample_major;
    EXPECT_NO_THROW(open(options));
}

TEST_F(RingSourceTest, OptionsThatContradictTheHeaderAreRefused) {
    StreamOptions channels;
    channels.channels = 64;
    expect_mentions(usage_error([&] { open(channels); }), {"--channels 64", name_, "says 4"});
    StreamOptions samples;
    samples.samples = 2048;
    expect_mentions(usage_error([&] { open(samples); }), {"--samples 2048", "says 16"});
    StreamOptions rate;
    rate.rate = Rational{67, 1};
    expect_mentions(usage_error([&] { open(rate); }), {"--rate 67", "says 200/3"});
    StreamOptions format;
    format.format = SampleFormat::i16;
    expect_mentions(usage_error([&] { open(format); }), {"--format i16", "says ci16"});
    StreamOptions layout;
    layout.layout = Layout::channel_major;
    expect_mentions(usage_error([&] { open(layout); }),
                    {"--layout channel-major", "says sample-major"});
}

TEST_F(RingSourceTest, RefusesAMissingRingAndKeys) {
    EXPECT_THROW(open_ring_source(SourceUri::parse("ring:no-such-ring-here"), {}), UsageError);
    expect_mentions(usage_error([] { open_ring_source(SourceUri::parse("ring:"), {}); }),
                    {"names no ring"});
    expect_mentions(usage_error([&] {
                        open_ring_source(SourceUri::parse("ring:" + name_ + "?channels=4"), {});
                    }),
                    {"'channels'", "takes none"});
}

TEST_F(RingSourceTest, RunningItBreaksAnInvariant) {
    const auto source = open();
    const std::atomic<bool> stop{false};
    EXPECT_DEATH(source->run(writer_, OverrunPolicy::drop, stop), "never run");
}

}  // namespace
}  // namespace echelle
