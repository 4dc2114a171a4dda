// What --metrics and the log decide by themselves; what is served is tested on a live coordinator
// (tests/integration/test_metrics.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/metrics/counter_floor.hpp"
#include "coordinator/metrics/metrics_address.hpp"
#include "coordinator/metrics/metrics_families.hpp"
#include "coordinator/repeat_limit.hpp"

namespace echelle {
namespace {

TEST(MetricsAddress, IsAPortOrAnAddressAndAPort) {
    const struct {
        const char* text;
        const char* meant;
    } cases[] = {{"9760", "127.0.0.1:9760"},   {"0", "127.0.0.1:0"},
                 {"0.0.0.0:80", "0.0.0.0:80"}, {"192.0.2.7:65535", "192.0.2.7:65535"},
                 {"[::1]:9760", "[::1]:9760"}, {"[::]:1", "[::]:1"}};
    for (const auto& [text, meant] : cases) {
        EXPECT_EQ(MetricsAddress::parse(text).text(), meant);
    }
    for (const char* text : {"", ":", "65536", "-1", "80x", " 80", "0x50", "1.2.3.4", "1.2.3.4:",
                             ":80", "localhost:80", "1.2.3:80", "::1:80", "[1.2.3.4]:80", "[]:80",
                             "[::1]80", "1.2.3.4:80,9.9.9.9:80", "80s", "+80"}) {
        EXPECT_THROW(MetricsAddress::parse(text), UsageError) << text;
    }
}

TEST(CounterFloor, HoldsCountersAndLeavesGauges) {
    const auto families = [](double counted, double other, double measured) {
        FamilyList list;
        list.counter("a_total", "A.", counted, {{"worker", "1"}});
        list.counter("a_total", "A.", other, {{"worker", "2"}});
        list.gauge("b", "B.", measured);
        return list.take();
    };
    CounterFloor floor;
    auto first = families(5, 1, 9);
    floor.hold(first);
    auto second = families(3, 2, 4);
    floor.hold(second);
    ASSERT_EQ(second.size(), 2U);
    EXPECT_EQ(second[0].metric[0].counter.value, 5);
    EXPECT_EQ(second[0].metric[1].counter.value, 2);
    EXPECT_EQ(second[1].metric[0].gauge.value, 4);
}

TEST(KindOfDeath, IsOneOfFew) {
    EXPECT_EQ(kind_of_death("killed by signal 9 (SIGKILL)"), "SIGKILL");
    EXPECT_EQ(kind_of_death("killed by signal 6 (SIGABRT)"), "SIGABRT");
    EXPECT_EQ(kind_of_death("killed by signal 64"), "signal");
    EXPECT_EQ(kind_of_death("hung: held block 46021 for 252 ms, lease 250 ms"), "hung");
    EXPECT_EQ(kind_of_death("exit code 1"), "exit");
    EXPECT_EQ(kind_of_death("something (else)"), "other");
}

TEST(SourceFamilies, TakeNumbersWhereTheyStandAndNothingElse) {
    FamilyList list;
    add_source_families(list, nlohmann::json::parse(R"({
        "frames": {"written": 7, "cut_short": 1}, "framing": "vita49", "gaps": {"count": 2},
        "lost": {"overflow": 3, "skipped": 4}, "state": "reading", "trouble": {},
        "streams": [{"id": 26, "received": 9, "joined": 8, "duplicates": 1, "late": 0, "alone": 0,
                     "absent": 2}]})"));
    std::map<std::string, double> served;
    for (const auto& family : list.take()) {
        for (const auto& metric : family.metric) {
            std::string name = family.name + " ";
            for (const auto& label : metric.label) {
                name += label.value;
            }
            served[name] = metric.counter.value + metric.gauge.value;
        }
    }
    const std::map<std::string, double> expected{
        {"echelle_source_frames_total ", 7},
        {"echelle_source_frames_cut_short_total ", 1},
        {"echelle_source_frames_lost_total overflow", 3},
        {"echelle_source_frames_lost_total skipped", 4},
        {"echelle_source_stream_packets_total 26received", 9},
        {"echelle_source_stream_packets_total 26joined", 8},
        {"echelle_source_stream_packets_total 26duplicates", 1},
        {"echelle_source_stream_packets_total 26late", 0},
        {"echelle_source_stream_packets_total 26alone", 0},
        {"echelle_source_stream_packets_total 26absent", 2},
        {"echelle_source_recording_gaps ", 2}};
    EXPECT_EQ(served, expected);
    add_source_families(list, nullptr);
    EXPECT_TRUE(list.take().empty());
}

TEST(RepeatLimit, ShowsTheFirstOfAKindAndCountsTheRest) {
    RepeatLimit limit;
    uint32_t shown = 0;
    for (int worker = 0; worker < 1000; ++worker) {
        shown += limit.lets_through("worker " + std::to_string(worker) + " ended", worker) ? 1 : 0;
    }
    EXPECT_EQ(shown, RepeatLimit::shown_at_once);
    EXPECT_TRUE(limit.lets_through("the disk is full", 1000));
    EXPECT_TRUE(limit.take_held_back(1000, false).empty());

    const auto held_back = limit.take_held_back(RepeatLimit::window_ns + 1, false);
    ASSERT_EQ(held_back.size(), 1U);
    EXPECT_EQ(held_back[0].count, 1000U - RepeatLimit::shown_at_once);
    EXPECT_EQ(held_back[0].example, "worker 999 ended");
    // The next ones are the first again.
    EXPECT_TRUE(limit.lets_through("worker 5 ended", RepeatLimit::window_ns + 2));
}

TEST(RepeatLimit, LosesNoCountWhenNobodyAsksInTime) {
    RepeatLimit limit;
    uint64_t shown = 0;
    for (int64_t i = 0; i < 100; ++i) {
        shown += limit.lets_through("again " + std::to_string(i), i * 1'000'000'000) ? 1 : 0;
    }
    const auto held_back = limit.take_held_back(0, true);
    ASSERT_EQ(held_back.size(), 1U);
    EXPECT_EQ(held_back[0].count + shown, 100U);
    EXPECT_TRUE(limit.take_held_back(0, true).empty());
}

TEST(RepeatLimit, KnowsBoundedlyManyKinds) {
    RepeatLimit limit;
    uint64_t shown = 0;
    constexpr uint64_t messages = 300;
    for (uint64_t i = 0; i < messages; ++i) {
        shown += limit.lets_through(std::string(i + 1, 'x'), 0) ? 1 : 0;
    }
    EXPECT_LE(shown, 64 + RepeatLimit::shown_at_once);
    const auto held_back = limit.take_held_back(0, true);
    ASSERT_EQ(held_back.size(), 1U);
    EXPECT_EQ(held_back[0].count + shown, messages);
}

}  // namespace
}  // namespace echelle
