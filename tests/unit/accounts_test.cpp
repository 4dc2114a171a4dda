#include "coordinator/accounts.hpp"

#include <gtest/gtest.h>

namespace echelle {
namespace {

TEST(Accounts, CloseAtEveryStep) {
    Accounts accounts;
    const auto close = [&] {
        const auto books = accounts.snapshot();
        return books.frames.close() && books.blocks.close();
    };
    for (int i = 0; i < 6; ++i) {
        accounts.frame_came_in(i);
        EXPECT_TRUE(close());
    }
    accounts.frames_lost(FrameDrop::lost_by_source, 10);
    EXPECT_TRUE(close());
    accounts.frame_refused(FrameDrop::repeated);
    accounts.blocks_made(3);
    accounts.block_done({});
    accounts.block_dropped();
    accounts.block_failed();
    accounts.group_done(2, {}, 1000);
    accounts.group_dropped(2, FrameDrop::overrun);
    EXPECT_TRUE(close());
    const auto books = accounts.snapshot();
    EXPECT_EQ(books.frames.in, 16U);
    EXPECT_EQ(books.frames.done, 2U);
    EXPECT_EQ(books.frames.dropped_in_all(), 13U);
    EXPECT_EQ(books.frames.in_flight, 1U);
    accounts.abort_in_flight();
    EXPECT_TRUE(close());
    EXPECT_EQ(accounts.snapshot().frames.in_flight, 0U);
}

TEST(Accounts, FramesOverTheBudgetAreCounted) {
    Accounts accounts;
    Accounts::GroupWork slow;
    slow.frame_work_ns = 101'000;
    Accounts::GroupWork quick;
    quick.frame_work_ns = 99'000;
    accounts.group_done(4, slow, 100'000);
    accounts.group_done(2, quick, 100'000);
    EXPECT_EQ(accounts.snapshot().over_budget, 4U);
}

TEST(Accounts, TellTheHopsOfABlockApart) {
    Accounts accounts;
    accounts.blocks_made(1);
    accounts.block_done({1'000'000, 1'010'000, 1'030'000, 1'070'000, 1'150'000, 1'310'000});
    const Accounts::Snapshot now = accounts.snapshot();
    EXPECT_EQ(now.hops.complete_to_ready.max_us(), 10.0);
    EXPECT_EQ(now.hops.ready_to_claimed.max_us(), 20.0);
    EXPECT_EQ(now.hops.claimed_to_computed.max_us(), 40.0);
    EXPECT_EQ(now.hops.computed_to_noticed.max_us(), 80.0);
    EXPECT_EQ(now.hops.noticed_to_collected.max_us(), 160.0);
    EXPECT_EQ(now.mean_block_ns, 40'000.0);
}

}  // namespace
}  // namespace echelle
