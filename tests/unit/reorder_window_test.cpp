#include "coordinator/sources/reorder_window.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace echelle {
namespace {

// A window, and what came out of it: packets are named by their place in what was handed in.
class Receiver {
  public:
    explicit Receiver(uint32_t span = 8, int64_t longest_loss = 1000)
        : window_(span, longest_loss) {}

    Receiver& add(const std::vector<int64_t>& numbers) {
        for (const int64_t number : numbers) {
            handed_in_.push_back(number);
            window_.add(number, static_cast<uint32_t>(handed_in_.size() - 1), outcome_);
        }
        return *this;
    }
    Receiver& flush() {
        window_.flush(outcome_);
        return *this;
    }
    // Numbers in the order in which they were delivered.
    std::vector<int64_t> delivered() const {
        std::vector<int64_t> numbers;
        for (const auto& delivery : outcome_.deliveries) {
            numbers.push_back(handed_in_[delivery.handle]);
        }
        return numbers;
    }
    uint64_t lost_between() const {
        return std::accumulate(
            outcome_.deliveries.begin(), outcome_.deliveries.end(), uint64_t{0},
            [](uint64_t sum, const auto& delivery) { return sum + delivery.lost_before; });
    }
    const PacketCounts& counts() const { return window_.counts(); }
    const ReorderWindow::Outcome& outcome() const { return outcome_; }
    // Each packet handed in is delivered, refused or held, and counted so.
    void expect_books_to_close() const {
        const PacketCounts& c = counts();
        EXPECT_EQ(c.delivered, outcome_.deliveries.size());
        EXPECT_EQ(c.duplicates + c.late + c.strays, outcome_.refused.size());
        if (window_.is_empty()) {
            EXPECT_EQ(outcome_.deliveries.size() + outcome_.refused.size(), handed_in_.size());
        }
    }

  private:
    ReorderWindow window_;
    ReorderWindow::Outcome outcome_;
    std::vector<int64_t> handed_in_;
};

std::vector<int64_t> range(int64_t first, int64_t end) {
    std::vector<int64_t> numbers(static_cast<size_t>(end - first));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

struct Case {
    std::string name;
    std::vector<int64_t> numbers;
    std::vector<int64_t> delivered;
    uint64_t lost = 0;
    uint64_t reordered = 0;
    uint64_t duplicates = 0;
    uint64_t late = 0;
    uint64_t strays = 0;
    uint64_t restarts = 0;
};

// Of a window of 8 packets. Worked out by hand.
const std::vector<Case> cases = {
    {.name = "in order", .numbers = {1, 2, 3}, .delivered = {1, 2, 3}},
    {.name = "iperf issue 457", .numbers = {1, 3, 2, 4}, .delivered = {1, 2, 3, 4}, .reordered = 1},
    {.name = "the first two change places",
     .numbers = {2, 1, 3},
     .delivered = {1, 2, 3},
     .reordered = 1},
    {.name = "one lost", .numbers = {1, 2, 4, 5}, .delivered = {1, 2, 4, 5}, .lost = 1},
    {.name = "three lost", .numbers = {7, 8, 12, 13}, .delivered = {7, 8, 12, 13}, .lost = 3},
    {.name = "duplicate of the last",
     .numbers = {1, 2, 2, 3},
     .delivered = {1, 2, 3},
     .duplicates = 1},
    {.name = "duplicate of one that is held",
     .numbers = {1, 2, 4, 4, 3},
     .delivered = {1, 2, 3, 4},
     .reordered = 1,
     .duplicates = 1},
    {.name = "late beyond the window, then again",
     .numbers = {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 3, 12, 3, 13},
     .delivered = {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
     .duplicates = 1,
     .late = 1},
    {.name = "a number far away, once",
     .numbers = {1, 2, 900'000, 3, 4},
     .delivered = {1, 2, 3, 4},
     .strays = 1},
    {.name = "a number far back, once",
     .numbers = {90'000, 90'001, 5, 90'002},
     .delivered = {90'000, 90'001, 90'002},
     .strays = 1},
    {.name = "the sender starts again",
     .numbers = {50'000, 50'001, 0, 1, 2, 3, 4, 5, 6, 7, 8},
     .delivered = {50'000, 50'001, 0, 1, 2, 3, 4, 5, 6, 7, 8},
     .restarts = 1},
    {.name = "it starts again soon after it began",
     .numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8},
     .delivered = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8},
     .restarts = 1},
    {.name = "it starts again with losses, out of order",
     .numbers = {50'000, 50'001, 1, 0, 2, 4, 5, 6, 7, 8, 9},
     .delivered = {50'000, 50'001, 0, 1, 2, 4, 5, 6, 7, 8, 9},
     .lost = 1,
     .reordered = 1,
     .restarts = 1},
    {.name = "numbers that never belong together",
     .numbers = {1 << 24, 2 << 24, 3 << 24, 4 << 24},
     .delivered = {},
     .strays = 4},
};

TEST(ReorderWindow, GivesEachPacketOneFate) {
    for (const Case& each : cases) {
        SCOPED_TRACE(each.name);
        Receiver receiver;
        receiver.add(each.numbers).flush();
        receiver.expect_books_to_close();
        EXPECT_EQ(receiver.delivered(), each.delivered);
        const PacketCounts& counts = receiver.counts();
        EXPECT_EQ(counts.lost, each.lost);
        EXPECT_EQ(counts.reordered, each.reordered);
        EXPECT_EQ(counts.duplicates, each.duplicates);
        EXPECT_EQ(counts.late, each.late);
        EXPECT_EQ(counts.strays, each.strays);
        EXPECT_EQ(counts.restarts, each.restarts);
    }
}

TEST(ReorderWindow, TellsWhereTheHolesAre) {
    Receiver receiver;
    receiver.add({1, 2, 4, 5, 8}).flush();
    const auto& deliveries = receiver.outcome().deliveries;
    ASSERT_EQ(deliveries.size(), 5U);
    EXPECT_EQ(deliveries[1].lost_before, 0U);
    EXPECT_EQ(deliveries[2].lost_before, 1U);
    EXPECT_EQ(deliveries[4].lost_before, 2U);
    EXPECT_FALSE(deliveries[4].is_restart);
}

TEST(ReorderWindow, ARestartIsAGapAndNoFloodOfLosses) {
    Receiver receiver;
    receiver.add(range(100'000, 100'010)).add(range(0, 20));
    EXPECT_EQ(receiver.counts().lost, 0U);
    EXPECT_EQ(receiver.counts().delivered, 30U);
    const auto& deliveries = receiver.outcome().deliveries;
    for (size_t i = 0; i < deliveries.size(); ++i) {
        EXPECT_EQ(deliveries[i].is_restart, i == 10) << i;
    }
}

TEST(ReorderWindow, WaitsNoLongerThanItsSpan) {
    Receiver receiver(4);
    receiver.add({1, 2, 4, 5, 6});
    EXPECT_THAT(receiver.delivered(), testing::ElementsAre(1, 2));
    receiver.add({7});
    EXPECT_THAT(receiver.delivered(), testing::ElementsAre(1, 2, 4, 5, 6, 7));
}

TEST(ReorderWindow, NumbersMayWrapRound) {
    constexpr int64_t last = std::numeric_limits<int64_t>::max();
    constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
    Receiver receiver;
    receiver.add({last - 1, last, lowest + 1, lowest, lowest + 2}).flush();
    EXPECT_EQ(receiver.counts().delivered, 5U);
    EXPECT_EQ(receiver.counts().lost, 0U);
    EXPECT_EQ(receiver.counts().reordered, 1U);
}

// 1 % lost, 1 % twice, 1 % behind up to 16 others: the counts are those of what was done.
TEST(ReorderWindow, CountsEveryLostPacketOnceAndNoReorderedOneAsLost) {
    std::mt19937_64 random(7);
    Receiver receiver(64);
    std::vector<std::pair<double, int64_t>> sent;  // when, which
    std::vector<bool> is_lost(20'000, false);
    uint64_t twice = 0;
    for (int64_t number = 0; number < 20'000; ++number) {
        const uint64_t dice = random() % 100;
        const bool is_quiet = number < 10 || number > 19'900;  // both ends are as they should be
        if (dice == 0 && !is_quiet) {
            is_lost[static_cast<size_t>(number)] = true;
            continue;
        }
        const bool is_delayed = dice == 1 && !is_quiet;
        sent.emplace_back(static_cast<double>(number) +
                              (is_delayed ? 1.5 + static_cast<double>(random() % 15) : 0.0),
                          number);
        if (dice == 2) {
            sent.emplace_back(static_cast<double>(number) + static_cast<double>(random() % 5),
                              number);
            ++twice;
        }
    }
    std::stable_sort(sent.begin(), sent.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    uint64_t reordered = 0;
    int64_t highest = -1;
    std::vector<bool> seen(20'000, false);
    for (const auto& [when, number] : sent) {
        receiver.add({number});
        const bool is_first = !seen[static_cast<size_t>(number)];
        reordered += is_first && number < highest ? 1 : 0;
        highest = std::max(highest, number);
        seen[static_cast<size_t>(number)] = true;
    }
    receiver.flush();
    const auto lost = static_cast<uint64_t>(std::count(is_lost.begin(), is_lost.end(), true));
    EXPECT_GT(lost, 100U);
    EXPECT_GT(reordered, 100U);
    EXPECT_GT(twice, 100U);
    EXPECT_EQ(receiver.counts().lost, lost);
    EXPECT_EQ(receiver.lost_between(), lost);
    EXPECT_EQ(receiver.counts().reordered, reordered);
    EXPECT_EQ(receiver.counts().duplicates, twice);
    EXPECT_EQ(receiver.counts().late, 0U);
    EXPECT_EQ(receiver.counts().strays, 0U);
    const std::vector<int64_t> delivered = receiver.delivered();
    EXPECT_TRUE(std::is_sorted(delivered.begin(), delivered.end()));
}

}  // namespace
}  // namespace echelle
