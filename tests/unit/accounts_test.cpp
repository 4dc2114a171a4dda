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
    accounts.block_done(1e6);
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

}  // namespace
}  // namespace echelle
