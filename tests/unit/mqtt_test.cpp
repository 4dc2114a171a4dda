// The gateway's parts that need no broker: the bounded queue and its books, the waits between
// tries, band powers and peaks against values worked out by hand, and what the command line
// refuses.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clients/mqtt/backoff.hpp"
#include "clients/mqtt/options.hpp"
#include "clients/mqtt/outbox.hpp"
#include "clients/mqtt/rate_limit.hpp"
#include "clients/mqtt/spectrum_figures.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OutgoingMessage message(const std::string& topic, uint64_t sequence, bool latest_wins = false,
                        const std::string& payload = "12345678") {
    return {topic, payload, sequence, false, latest_wins};
}

// Everything that waits, taken and delivered.
std::vector<uint64_t> sequences(Outbox& outbox) {
    std::vector<uint64_t> found;
    while (const auto taken = outbox.take()) {
        found.push_back(taken->message->sequence);
        outbox.delivered(taken->ticket);
    }
    return found;
}

uint64_t dropped(const OutboxBooks& books, Drop reason) {
    return books.dropped.at(static_cast<size_t>(reason));
}

void expect_closed_books(const Outbox& outbox) {
    const OutboxBooks books = outbox.books();
    const uint64_t all = std::accumulate(books.dropped.begin(), books.dropped.end(), uint64_t{0});
    EXPECT_EQ(books.made, books.delivered + all + books.waiting + books.in_flight);
}

TEST(MqttOutbox, TheOldestMakesRoomAndWhatIsOnItsWayDoesNot) {
    Outbox outbox({.messages = 4, .bytes = 1000});
    outbox.push(message("a", 0));
    const auto on_its_way = outbox.take();
    for (uint64_t i = 1; i <= 6; ++i) {
        outbox.push(message("a", i));
    }
    EXPECT_EQ(dropped(outbox.books(), Drop::queue_full), 3U);
    expect_closed_books(outbox);
    outbox.put_back();  // the connection was lost
    EXPECT_EQ(outbox.books().repeated, 1U);
    EXPECT_THAT(sequences(outbox), ElementsAre(0, 4, 5, 6));
    EXPECT_EQ(on_its_way->ticket, 0U);
    EXPECT_EQ(outbox.books().bytes, 0U);
    expect_closed_books(outbox);
}

TEST(MqttOutbox, BytesAreBoundedAsWell) {
    Outbox outbox({.messages = 100, .bytes = 30});  // three of 1 + 8 bytes
    for (uint64_t i = 0; i < 5; ++i) {
        outbox.push(message("a", i));
    }
    outbox.push(message("a", 5, false, std::string(31, 'x')));  // larger than all of it
    EXPECT_EQ(outbox.books().bytes, 27U);
    EXPECT_LE(outbox.books().most_bytes, 30U);
    EXPECT_EQ(dropped(outbox.books(), Drop::queue_full), 2U);
    EXPECT_EQ(dropped(outbox.books(), Drop::too_large), 1U);
    EXPECT_THAT(sequences(outbox), ElementsAre(2, 3, 4));
    expect_closed_books(outbox);
}

TEST(MqttOutbox, TheLatestOfATopicWinsInTheEarlierOnesPlace) {
    Outbox outbox({.messages = 100, .bytes = 1000});
    outbox.push(message("a", 0, true));
    outbox.push(message("b", 10, true));
    outbox.push(message("a", 1, true));
    EXPECT_THAT(sequences(outbox), ElementsAre(1, 10));
    // What was taken is no longer replaced; put back, it yields to a later one.
    outbox.push(message("a", 2, true));
    outbox.take();
    outbox.push(message("a", 3, true));
    outbox.put_back();
    EXPECT_EQ(outbox.books().repeated, 0U);
    EXPECT_THAT(sequences(outbox), ElementsAre(3));
    EXPECT_EQ(dropped(outbox.books(), Drop::replaced), 2U);
    // One that grows beyond the bytes allowed goes the way of all others.
    outbox.push(message("a", 4, true, std::string(400, 'x')));
    outbox.push(message("b", 11, true, std::string(400, 'x')));
    outbox.push(message("b", 12, true, std::string(700, 'x')));
    EXPECT_THAT(sequences(outbox), ElementsAre(12));
    expect_closed_books(outbox);
}

TEST(MqttOutbox, AtTheEndEverythingThatIsLeftIsCounted) {
    Outbox outbox({.messages = 100, .bytes = 1000});
    for (uint64_t i = 0; i < 3; ++i) {
        outbox.push(message("a", i));
    }
    const auto taken = outbox.take();
    outbox.close();
    outbox.delivered(taken->ticket);  // too late
    outbox.put_back();
    outbox.push(message("a", 3));
    EXPECT_EQ(dropped(outbox.books(), Drop::stopped), 4U);
    EXPECT_FALSE(outbox.take());
    expect_closed_books(outbox);
}

TEST(MqttBackoff, Mosquitto1458FiftyGatewaysDoNotComeBackTogether) {
    std::vector<double> first;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        Backoff backoff({.least_s = 1, .most_s = 60}, seed);
        first.push_back(backoff.next_s());
    }
    std::sort(first.begin(), first.end());
    EXPECT_GE(first.front(), 0.25);
    EXPECT_LE(first.back(), 1.0);
    // In no tenth of a second more than 17: they would be 6.7 of 50 on average.
    for (auto at = first.begin(); at != first.end(); ++at) {
        const auto end = std::upper_bound(at, first.end(), *at + 0.1);
        EXPECT_LE(end - at, 17);
    }
}

TEST(MqttBackoff, WaitsDoubleUpToTheMostAndBeginAnew) {
    Backoff backoff({.least_s = 1, .most_s = 60}, 7);
    for (const double whole : {1., 2., 4., 8., 16., 32., 60., 60., 60.}) {
        const double wait = backoff.next_s();
        EXPECT_GE(wait, whole / 4);
        EXPECT_LE(wait, whole);
    }
    backoff.reset();
    EXPECT_LE(backoff.next_s(), 1.0);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_LE(backoff.next_s(), 60.0);
    }
}

TEST(MqttBackoff, WhoWasPutOutByItsOwnNameStaysAwayLongerEachTime) {
    Backoff backoff({.least_s = 1, .most_s = 60}, 7);
    for (const double least : {60., 120., 240., 480., 960., 960.}) {
        const double wait = backoff.next_after_take_over_s();
        EXPECT_GE(wait, least);
        EXPECT_LE(wait, 2 * least);
    }
}

TEST(MqttRateLimit, KeepsTheRateOnAverageAndNeverCatchesUp) {
    RateLimit limit;
    int passed = 0;
    for (int64_t ms = 0; ms < 10'000; ms += 3) {  // 333 a second, of which 10 pass
        passed += limit.passes(100'000'000, ms * 1'000'000) ? 1 : 0;
    }
    EXPECT_NEAR(passed, 100, 2);
    EXPECT_TRUE(limit.passes(100'000'000, 60'000'000'000));  // after a pause: one, and not five
    EXPECT_FALSE(limit.passes(100'000'000, 60'010'000'000));
    EXPECT_TRUE(limit.passes(0, 60'010'000'001));
}

TEST(MqttFigures, ABandHoldsTheBinsWhoseCentresLieInIt) {
    const SpectrumAxis axis{-20, 10};  // -20 -10 0 10 20
    const std::array<float, 5> density{1, 2, 4, 8, 16};
    const auto power = [&](double low, double high) {
        return band_power(density, {"", low, high}, axis);
    };
    EXPECT_DOUBLE_EQ(power(-20, 20), 10 * (1 + 2 + 4 + 8));  // the upper end is not in it
    EXPECT_DOUBLE_EQ(power(-20, 20.001), 10 * 31);
    EXPECT_DOUBLE_EQ(power(-9.99, 10.01), 10 * (4 + 8));
    EXPECT_DOUBLE_EQ(power(-1e9, 1e9), 10 * 31);
    EXPECT_TRUE(bins_of({"", 1, 9}, axis, 5).is_empty());
    EXPECT_TRUE(bins_of({"", 100, 200}, axis, 5).is_empty());
    // Two bands side by side share no bin and leave none out, whatever the rounding.
    const SpectrumAxis thirds{0, 1.0 / 3};
    const BinRange left = bins_of({"", 0, 7.0 / 3}, thirds, 100);
    const BinRange right = bins_of({"", 7.0 / 3, 100}, thirds, 100);
    EXPECT_EQ(left.end, right.first);
}

TEST(MqttFigures, PeaksAreLocalMaximaInterpolatedBetweenBins) {
    const SpectrumAxis axis{100, 2};
    // A Gaussian is a parabola in its logarithm: its summit is found exactly.
    std::vector<float> values(64);
    for (size_t i = 0; i < values.size(); ++i) {
        const double at = static_cast<double>(i);
        values[i] = static_cast<float>(9 * std::exp(-std::pow(at - 20.3, 2) / 4) +
                                       5 * std::exp(-std::pow(at - 50, 2) / 4) + 1e-30);
    }
    const auto peaks = peaks_of(values, axis, 2);
    ASSERT_EQ(peaks.size(), 2U);
    EXPECT_EQ(peaks[0].bin, 20U);
    EXPECT_DOUBLE_EQ(peaks[0].bin_hz, 140);
    EXPECT_NEAR(peaks[0].hz, 100 + 2 * 20.3, 1e-4);
    EXPECT_FLOAT_EQ(static_cast<float>(peaks[0].level), values[20]);
    EXPECT_NEAR(peaks[1].hz, 200, 1e-4);
}

TEST(MqttFigures, PeaksOfOddSpectra) {
    const SpectrumAxis axis{0, 1};
    const auto bins = [&](const std::vector<float>& values, size_t most = 9) {
        std::vector<double> found;
        for (const Peak& peak : peaks_of(values, axis, most)) {
            EXPECT_EQ(peak.hz, peak.bin_hz);  // nothing to interpolate between
            found.push_back(peak.bin_hz);
        }
        return found;
    };
    EXPECT_THAT(bins({}), ElementsAre());
    EXPECT_THAT(bins({0, 0, 0}), ElementsAre());  // a silent channel has none
    EXPECT_THAT(bins({5}), ElementsAre(0));
    EXPECT_THAT(bins({5, 0, 7}), ElementsAre(2, 0));  // at the ends
    EXPECT_THAT(bins({0, 3, 3, 0}), ElementsAre(1));  // a plateau is one peak
    EXPECT_THAT(bins({NAN, 1, NAN}), ElementsAre());
    EXPECT_THAT(bins({0, 5, 0, 5, 0, 9, 0}, 2), ElementsAre(5, 1));
}

std::string refusal(const std::vector<const char*>& arguments) {
    std::vector<const char*> all{"echelle-mqtt"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    try {
        parse_options(static_cast<int>(all.size()), all.data());
    } catch (const UsageError& error) {
        return error.what();
    }
    return "taken";
}

TEST(MqttOptions, WhatIsWrongIsNamed) {
    const std::vector<std::pair<std::vector<const char*>, const char*>> cases{
        {{"--broker", "http://x"}, "give mqtt://HOST"},
        {{"--broker", "mqtt://u:p@x"}, "--password-file"},
        {{"--broker", "mqtt://x:0"}, "port 1 to 65535"},
        {{"--broker", "mqtt://x:99999"}, "port 1 to 65535"},
        {{"--broker", "mqtt://"}, "HOST[:PORT]"},
        {{"--broker", "[::1"}, "HOST[:PORT]"},
        {{"--band", "x"}, "NAME=LOW..HIGH"},
        {{"--band", "x=1..nan"}, "NAME=LOW..HIGH"},
        {{"--band", "a/b=1..2"}, "NAME=LOW..HIGH"},
        {{"--band", "x=2..1"}, "is empty"},
        {{"--band", "x=1..2", "--band", "x=2..3"}, "already"},
        {{"--channels", "5-3"}, "'5-3' is neither"},
        {{"--channels", "70000"}, "'70000' is neither"},
        {{"--channels", ""}, "names none"},
        {{"--spectra", "2.0"}, "1.1, psd16, psd8 or none"},
        {{"--rate", "0"}, "above 0"},
        {{"--qos", "2"}, "--qos"},
        {{"--queue", "0"}, "--queue"},
        {{"--mqtt", "4"}, "give 5 or 3.1.1"},
        {{"--reconnect", "5"}, "MIN..MAX"},
        {{"--reconnect", "5..1"}, "MIN..MAX"},
        {{"--topic", "a/#"}, "parted by '/'"},
        {{"--topic", "/a"}, "parted by '/'"},
        {{"--client-id", "a b"}, "--client-id"},
        {{"--ca", "x"}, "mqtts://localhost"},
        {{"--broker", "mqtts://x", "--cert", "/dev/null"}, "belong together"},
        {{"--broker", "mqtts://x", "--ca", "/no/such"}, "'/no/such' of --ca"},
        {{"--password-file", "/x"}, "without --user"},
        {{"--user", "u", "--password-file", "/no/such"}, "cannot be read"},
        {{"--report", "/no/such/place/r.json"}, "cannot be written"},
        {{"--password", "secret"}, "--password"},
    };
    for (const auto& [arguments, words] : cases) {
        EXPECT_THAT(refusal(arguments), HasSubstr(words)) << arguments[0] << ' ' << arguments[1];
    }
}

TEST(MqttOptions, WhatIsRightIsUnderstood) {
    const auto broker = [](const char* text) { return parse_broker(text).text(); };
    EXPECT_EQ(broker("example.org"), "mqtt://example.org:1883");
    EXPECT_EQ(broker("mqtts://example.org/"), "mqtts://example.org:8883");
    EXPECT_EQ(broker("mqtt://[::1]:17"), "mqtt://[::1]:17");
    EXPECT_EQ(broker("10.0.0.1:99"), "mqtt://10.0.0.1:99");
    EXPECT_THAT(parse_channels("7,0-2,2"), ElementsAre(0, 1, 2, 7));
    EXPECT_EQ(parse_band("low=-1e6..2.5").low_hz, -1e6);
}

}  // namespace
}  // namespace echelle::mqtt
