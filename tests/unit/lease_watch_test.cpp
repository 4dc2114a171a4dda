#include "coordinator/lease_watch.hpp"

#include <gtest/gtest.h>

namespace echelle {
namespace {

class LeaseWatchTest : public testing::Test {
  protected:
    LeaseWatchTest() : ledger_(LedgerShape{4, 1, 4, 64}), watch_(ledger_) {
        BlockDescriptor block;
        block.listed_frames = 1;
        block.own_frames = 1;
        const uint64_t position = 0;
        ledger_.open(block, {&position, 1});
    }
    Ledger ledger_;
    LeaseWatch watch_;
};

TEST_F(LeaseWatchTest, AClaimIsOverdueOnlyAfterItsLease) {
    const auto claim = ledger_.claim_oldest(2, 7);
    ASSERT_TRUE(claim);
    EXPECT_TRUE(watch_.look(1000, 100).empty());  // first seen now
    EXPECT_TRUE(watch_.look(1100, 100).empty());
    const auto overdue = watch_.look(1101, 100);
    ASSERT_EQ(overdue.size(), 1U);
    EXPECT_EQ(overdue[0].block, 0U);
    EXPECT_EQ(overdue[0].owner, 2U);
    EXPECT_EQ(overdue[0].incarnation, 7U);
    EXPECT_EQ(overdue[0].held_ns, 101);
}

TEST_F(LeaseWatchTest, ANewClaimHasANewLease) {
    ASSERT_TRUE(ledger_.claim_oldest(2, 7));
    watch_.look(0, 100);
    ledger_.reclaim(2, 7);
    ASSERT_TRUE(ledger_.claim_oldest(2, 8));
    EXPECT_TRUE(watch_.look(500, 100).empty());
    EXPECT_EQ(watch_.look(601, 100).size(), 1U);
}

TEST_F(LeaseWatchTest, ReadyBlocksHaveNoLease) {
    watch_.look(0, 100);
    EXPECT_FALSE(watch_.work_is_starving());
    EXPECT_TRUE(watch_.look(1'000'000, 100).empty());
    EXPECT_TRUE(watch_.work_is_starving());
    ASSERT_TRUE(ledger_.claim_oldest(2, 7));
    watch_.look(1'000'001, 100);
    EXPECT_FALSE(watch_.work_is_starving());
}

TEST(Lease, FollowsTheTimeOfABlockWithinBounds) {
    EXPECT_EQ(lease_for(0), 10'000'000'000);
    EXPECT_EQ(lease_for(1e6), 250'000'000);
    EXPECT_EQ(lease_for(1e8), 3'200'000'000);
    EXPECT_EQ(lease_for(1e12), 60'000'000'000);
}

}  // namespace
}  // namespace echelle
