#include "coordinator/collector.hpp"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace echelle {
namespace {

constexpr uint32_t per_group = 2;
constexpr uint16_t worker = 1;
constexpr uint16_t life = 1;

class WaitedFor : public testing::Test {
  protected:
    void open_groups(uint32_t count) {
        const std::array<uint64_t, 1> positions{0};
        BlockDescriptor block;
        block.listed_frames = 1;
        block.own_frames = 1;
        for (uint32_t i = 0; i < count * per_group; ++i) {
            ledger.open(block, positions);
        }
    }
    uint64_t waited_for() const { return block_to_wait_for(ledger, per_group); }

    Ledger ledger{{.capacity = 64, .most_frames = 1, .workers = 2, .result_bytes = 64}};
};

TEST_F(WaitedFor, IsTheLastOfTheGroupWhereFewAreOpen) {
    EXPECT_EQ(waited_for(), 1U);  // nothing is open yet
    open_groups(1);
    EXPECT_EQ(waited_for(), 1U);
    open_groups(2);
    EXPECT_EQ(waited_for(), 1U);
}

TEST_F(WaitedFor, IsAQuarterOfTheOpenGroupsWhereTheyPileUp) {
    open_groups(4);
    EXPECT_EQ(waited_for(), 3U);  // the second group's last
    open_groups(13);
    EXPECT_EQ(waited_for(), 9U);  // the fifth's
}

TEST_F(WaitedFor, IsTheOldestOfThoseThatItOvertook) {
    open_groups(1);
    ledger.claim_oldest(worker, life);
    const auto last = ledger.claim_oldest(worker, life);
    ASSERT_TRUE(last.has_value());
    ledger.finish(*last);
    EXPECT_EQ(waited_for(), 0U);
}

// It would never come: a block that nobody opens is waited for only where nothing else is open.
TEST_F(WaitedFor, IsOpenWhereverOneIs) {
    for (uint32_t groups = 1; groups <= 32; ++groups) {
        open_groups(1);
        EXPECT_LT(waited_for(), ledger.opened());
    }
}

}  // namespace
}  // namespace echelle
