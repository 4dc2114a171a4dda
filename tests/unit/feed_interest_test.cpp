// Who wants what, the limits of it, the marks that become events, and what --feed may be.
#include "common/feed_interest.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/error.hpp"
#include "common/feed_endpoint.hpp"
#include "common/packet.hpp"
#include "coordinator/sinks/feed_marks.hpp"

namespace echelle {
namespace {

using Answer = FeedInterest::Answer;

TEST(FeedInterest, TopicsHaveFiveDigitsOrMore) {
    EXPECT_EQ(spectrum_topic(SpectrumTopic::psd, 7), "psd/00007");
    EXPECT_EQ(spectrum_topic(SpectrumTopic::psd16, 65535), "psd16/65535");
    EXPECT_EQ(spectrum_topic(SpectrumTopic::psd8, 123456), "psd8/123456");
}

// What a prefix wants must be what ZeroMQ would send for it: every topic that begins with it.
TEST(FeedInterest, WantsWhateverBeginsWithThePrefix) {
    constexpr uint32_t channels = 1200;
    for (const std::string prefix :
         {"", "p", "psd", "psd/", "psd/0", "psd/00", "psd/001", "psd/00007", "psd/000070", "psd/x",
          "psd1", "psd16/0001", "psd8/", "psd8/01", "ring/", "r", "event/gap", "q", "psd/ "}) {
        FeedInterest interest(channels, {});
        interest.connected(5);
        ASSERT_EQ(interest.subscribe(5, prefix), Answer::taken);
        bool any = false;
        const bool ring = std::string("ring/").starts_with(prefix);
        EXPECT_EQ(interest.wants(TextTopic::ring), ring) << prefix;
        for (uint32_t channel = 0; channel < channels; ++channel) {
            bool one = false;
            for (const auto topic :
                 {SpectrumTopic::psd, SpectrumTopic::psd16, SpectrumTopic::psd8}) {
                const bool wanted = spectrum_topic(topic, channel).starts_with(prefix);
                ASSERT_EQ(interest.wants(topic, channel), wanted) << prefix << " " << channel;
                one = one || wanted;
            }
            ASSERT_EQ(interest.wants_channel(channel), one || ring) << prefix << " " << channel;
            any = any || one;
        }
        EXPECT_TRUE(!any || interest.wants_spectra()) << prefix;
        EXPECT_EQ(interest.unsubscribe(5, prefix), Answer::taken);
        EXPECT_FALSE(interest.wants_spectra()) << prefix;
        EXPECT_FALSE(interest.wants_channel(7)) << prefix;
    }
}

TEST(FeedInterest, ForgetsWithTheConnection) {
    FeedInterest interest(4, {});
    interest.connected(5);
    interest.connected(6);
    interest.subscribe(5, "psd/");
    interest.subscribe(6, "psd/00001");
    EXPECT_EQ(interest.subscribe(6, "psd/00001"), Answer::known);
    EXPECT_EQ(interest.subscriptions(), 2U);
    interest.disconnected(5);
    EXPECT_FALSE(interest.wants_channel(0));
    EXPECT_TRUE(interest.wants_channel(1));
    EXPECT_EQ(interest.unsubscribe(6, "psd/00002"), Answer::known);
    EXPECT_EQ(interest.subscribe(5, "psd/"), Answer::unknown);
    interest.connected(6);  // the number again: the first one has gone
    EXPECT_FALSE(interest.wants_channel(1));
    EXPECT_EQ(interest.subscriptions(), 0U);
}

TEST(FeedInterest, RefusesWhatIsTooMuch) {
    FeedLimits limits;
    limits.connections = 2;
    limits.topics_of_connection = 3;
    limits.topics = 5;
    FeedInterest interest(4, limits);
    EXPECT_TRUE(interest.connected(1));
    EXPECT_TRUE(interest.connected(2));
    EXPECT_FALSE(interest.connected(3));
    for (const char* topic : {"a", "b", "c"}) {
        EXPECT_EQ(interest.subscribe(1, topic), Answer::taken);
    }
    EXPECT_EQ(interest.subscribe(1, "d"), Answer::refused);
    EXPECT_EQ(interest.subscribe(2, std::string(256, 'x')), Answer::refused);
    EXPECT_EQ(interest.subscribe(2, std::string(255, 'x')), Answer::taken);
    EXPECT_EQ(interest.subscribe(2, "b"), Answer::taken);
    EXPECT_EQ(interest.subscribe(2, "c"), Answer::refused);  // of all together
}

TEST(FeedMarks, BecomeOneEventWithWhatHappenedMeanwhile) {
    FeedMarkQueue queue;
    queue.push({3, PacketFlag::gap_before, 1000, 0});
    queue.push({3, PacketFlag::gap_before | PacketFlag::over_range, 2000, 5});
    queue.push({1, PacketFlag::over_range, 2000, 7});
    FeedEventGatherer gaps(PacketFlag::gap_before);
    FeedEventGatherer over_ranges(PacketFlag::over_range);
    while (const auto mark = queue.pop()) {
        gaps.add(*mark);
        over_ranges.add(*mark);
    }
    const auto gap = nlohmann::json::parse(gaps.take(0, false).value());
    EXPECT_EQ(gap.at("sequence"), 0);
    EXPECT_EQ(gap.at("spectra"), 2);
    EXPECT_EQ(gap.at("channels"), nlohmann::json({3}));
    EXPECT_EQ(gap.at("first_sample"), 1000);
    EXPECT_FALSE(gap.contains("samples"));
    const auto over_range = nlohmann::json::parse(over_ranges.take(0, false).value());
    EXPECT_EQ(over_range.at("channels"), nlohmann::json({3, 1}));
    EXPECT_EQ(over_range.at("samples"), 12);

    EXPECT_FALSE(gaps.take(1'000'000'000, false));  // nothing new
    gaps.add({2, PacketFlag::gap_before, 3000, 0});
    EXPECT_FALSE(gaps.take(50'000'000, false));  // too soon
    EXPECT_EQ(nlohmann::json::parse(gaps.take(50'000'000, true).value()).at("sequence"), 1);
}

TEST(FeedMarks, WithoutRoomAreCounted) {
    FeedMarkQueue queue;
    for (int i = 0; i < 5000; ++i) {
        queue.push({});
    }
    uint64_t taken = 0;
    while (queue.pop()) {
        ++taken;
    }
    EXPECT_GT(queue.lost(), 0U);
    EXPECT_EQ(taken + queue.lost(), 5000U);
}

TEST(FeedEndpoint, TellsWhatLeavesTheMachine) {
    for (const char* here : {"ipc:///tmp/x", "tcp://127.0.0.1:5570", "tcp://127.8.8.8:5570",
                             "tcp://[::1]:5570", "tcp://localhost:5570", "tcp://lo:5570"}) {
        EXPECT_FALSE(leaves_machine(here)) << here;
    }
    for (const char* away : {"tcp://*:5570", "tcp://0.0.0.0:5570", "tcp://[::]:5570",
                             "tcp://eth0:5570", "tcp://192.0.2.1:5570"}) {
        EXPECT_TRUE(leaves_machine(away)) << away;
    }
}

TEST(FeedEndpoint, RefusesWhatCannotBeBoundWithoutHarm) {
    for (const char* bad :
         {"", "none", "udp://127.0.0.1:1", "inproc://x", "ipc://", "tcp://", "tcp://127.0.0.1",
          "tcp://127.0.0.1:", "tcp://127.0.0.1:0", "tcp://127.0.0.1:70000", "tcp://:5570"}) {
        EXPECT_THROW(check_feed_endpoint("--feed", bad), UsageError) << bad;
    }
    EXPECT_THROW(check_feed_endpoint("--feed", "ipc:///" + std::string(107, 'x')), UsageError);
    const std::string file = "/tmp/echelle-unit-endpoint-" + std::to_string(getpid());
    std::ofstream(file) << "somebody's data";
    EXPECT_THROW(check_feed_endpoint("--feed", "ipc://" + file), UsageError);
    unlink(file.c_str());
    check_feed_endpoint("--feed", "ipc://" + file);
    check_feed_endpoint("--feed", "tcp://*:5570");
}

}  // namespace
}  // namespace echelle
