#include "common/ledger.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr uint16_t worker = 3;
constexpr uint16_t life = 7;

LedgerShape shape_of(uint32_t capacity) {
    return {.capacity = capacity, .most_frames = 4, .workers = 8, .result_bytes = 100};
}

uint64_t open_block(Ledger& ledger, uint64_t mark = 0) {
    const std::vector<uint64_t> positions{mark, mark + 1};
    BlockDescriptor block;
    block.group = mark;
    block.listed_frames = 2;
    block.own_frames = 1;
    return ledger.open(block, positions);
}

// A ledger of 4 whose block 0 is in `state`, owned by (worker, life) where the state has an owner.
std::unique_ptr<Ledger> ledger_in(BlockState state) {
    auto ledger = std::make_unique<Ledger>(shape_of(4));
    open_block(*ledger);
    if (state == BlockState::dropped) {
        ledger->drop(0, DropReason::overrun);
    }
    if (state == BlockState::claimed || state == BlockState::done) {
        ledger->claim_oldest(worker, life);
    }
    if (state == BlockState::done) {
        ledger->finish({0, {0, BlockState::claimed, worker, life}});
    }
    for (int death = 0; state == BlockState::failed && death < 3; ++death) {
        ledger->claim_oldest(worker, life);
        ledger->reclaim(worker, life);
    }
    EXPECT_EQ(ledger->word(0).state, state);
    return ledger;
}

constexpr BlockState opened_states[] = {BlockState::ready, BlockState::claimed, BlockState::done,
                                        BlockState::dropped, BlockState::failed};

TEST(BlockWord, PacksGenerationStateOwnerAndIncarnation) {
    const BlockWord word{5, BlockState::claimed, 3, 7};
    EXPECT_EQ(word.packed(), 0x0000'0052'0003'0007U);
    EXPECT_EQ(BlockWord::unpacked(0x0000'0052'0003'0007), word);
    const BlockWord largest{0xFFFFFFF, BlockState::failed, 0xFFFF, 0xFFFF};
    EXPECT_EQ(largest.packed(), 0xFFFF'FFF5'FFFF'FFFFU);
    EXPECT_EQ(BlockWord::unpacked(largest.packed()), largest);
    EXPECT_EQ(BlockWord::unpacked(0), BlockWord{});
}

TEST(Ledger, BeginsEmpty) {
    const Ledger ledger(shape_of(4));
    EXPECT_EQ(ledger.opened(), 0U);
    EXPECT_EQ(ledger.oldest_open(), 0U);
    EXPECT_FALSE(ledger.closed());
    EXPECT_FALSE(ledger.workers_should_leave());
    EXPECT_TRUE(ledger.has_room(4));
    EXPECT_FALSE(ledger.has_room(5));
    EXPECT_EQ(ledger.word(0), BlockWord{});
    EXPECT_GE(ledger.bytes(), 4 * 100U);
}

TEST(Ledger, TakesABlockThroughItsLife) {
    Ledger ledger(shape_of(4));
    EXPECT_FALSE(ledger.claim_oldest(worker, life));
    EXPECT_EQ(open_block(ledger, 40), 0U);
    EXPECT_EQ(ledger.word(0), (BlockWord{0, BlockState::ready, 0, 0}));
    EXPECT_EQ(ledger.descriptor(0).group, 40U);
    EXPECT_TRUE(std::ranges::equal(ledger.positions(0), std::vector<uint64_t>{40, 41}));
    const auto claim = ledger.claim_oldest(worker, life);
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->number, 0U);
    EXPECT_EQ(ledger.word(0), (BlockWord{0, BlockState::claimed, worker, life}));
    EXPECT_TRUE(ledger.finish(*claim));
    EXPECT_EQ(ledger.word(0), (BlockWord{0, BlockState::done, worker, life}));
    ledger.retire(0);
    EXPECT_EQ(ledger.word(0), (BlockWord{1, BlockState::free, 0, 0}));
    EXPECT_EQ(ledger.opened(), 1U);
    EXPECT_EQ(ledger.oldest_open(), 1U);
}

TEST(Ledger, DropsOnlyWhatIsReady) {
    for (const BlockState state : opened_states) {
        const auto ledger = ledger_in(state);
        const BlockWord before = ledger->word(0);
        EXPECT_EQ(ledger->drop(0, DropReason::overrun), state == BlockState::ready);
        EXPECT_EQ(ledger->word(0),
                  state == BlockState::ready ? (BlockWord{0, BlockState::dropped, 0, 0}) : before);
    }
}

TEST(Ledger, ClaimsOnlyWhatIsReady) {
    for (const BlockState state : opened_states) {
        const auto ledger = ledger_in(state);
        const BlockWord before = ledger->word(0);
        EXPECT_EQ(ledger->claim_oldest(1, 2).has_value(), state == BlockState::ready);
        EXPECT_EQ(ledger->word(0),
                  state == BlockState::ready ? (BlockWord{0, BlockState::claimed, 1, 2}) : before);
    }
}

TEST(Ledger, FinishesOnlyWhatTheClaimantHolds) {
    for (const BlockState state : opened_states) {
        const auto ledger = ledger_in(state);
        const BlockWord before = ledger->word(0);
        for (const BlockWord& other : {BlockWord{0, BlockState::claimed, worker, life + 1},
                                       BlockWord{0, BlockState::claimed, worker + 1, life},
                                       BlockWord{1, BlockState::claimed, worker, life}}) {
            EXPECT_FALSE(ledger->finish({0, other}));
            EXPECT_EQ(ledger->word(0), before);
        }
        EXPECT_EQ(ledger->finish({0, {0, BlockState::claimed, worker, life}}),
                  state == BlockState::claimed);
        EXPECT_EQ(ledger->word(0), state == BlockState::claimed
                                       ? (BlockWord{0, BlockState::done, worker, life})
                                       : before);
    }
}

TEST(Ledger, ReclaimsOnlyWhatTheDeadOneHeld) {
    for (const BlockState state : opened_states) {
        const auto ledger = ledger_in(state);
        const BlockWord before = ledger->word(0);
        for (const auto& [owner, incarnation] :
             {std::pair<uint16_t, uint16_t>{worker, life + 1}, {worker + 1, life}, {0, 0}}) {
            const auto other = ledger->reclaim(owner, incarnation);
            EXPECT_EQ(other.requeued + other.failed, 0U);
            EXPECT_EQ(ledger->word(0), before);
        }
        const auto reclaimed = ledger->reclaim(worker, life);
        EXPECT_EQ(reclaimed.failed, 0U);
        EXPECT_EQ(reclaimed.requeued, state == BlockState::claimed ? 1U : 0U);
        EXPECT_EQ(ledger->word(0),
                  state == BlockState::claimed ? (BlockWord{0, BlockState::ready, 0, 0}) : before);
    }
}

TEST(Ledger, RetiresWhatHasAnEnd) {
    for (const BlockState state : {BlockState::done, BlockState::dropped, BlockState::failed}) {
        const auto ledger = ledger_in(state);
        ledger->retire(0);
        EXPECT_EQ(ledger->word(0), (BlockWord{1, BlockState::free, 0, 0}));
        EXPECT_EQ(ledger->oldest_open(), 1U);
    }
}

TEST(LedgerDeathTest, StopsTheProcessOnABrokenInvariant) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(ledger_in(BlockState::ready)->retire(0), "broken invariant");
    EXPECT_DEATH(ledger_in(BlockState::claimed)->retire(0), "broken invariant");
    EXPECT_DEATH(Ledger(shape_of(4)).retire(0), "broken invariant");
    const auto retire_out_of_order = [] {
        const auto ledger = ledger_in(BlockState::done);
        open_block(*ledger);
        ledger->drop(1, DropReason::overrun);
        ledger->retire(1);
    };
    EXPECT_DEATH(retire_out_of_order(), "broken invariant");
    const auto open_without_room = [] {
        Ledger ledger(shape_of(2));
        for (int i = 0; i < 3; ++i) {
            open_block(ledger);
        }
    };
    EXPECT_DEATH(open_without_room(), "broken invariant");
    const auto list_too_many_frames = [] {
        Ledger ledger(shape_of(2));
        BlockDescriptor block;
        block.listed_frames = 5;
        ledger.open(block, std::vector<uint64_t>(5));
    };
    EXPECT_DEATH(list_too_many_frames(), "broken invariant");
    EXPECT_DEATH(Ledger(shape_of(2)).worker(8), "broken invariant");
    const auto take_over_another_shape = [] {
        const Ledger ledger(shape_of(2));
        const Ledger larger(shape_of(2000), FileDescriptor(dup(ledger.descriptor())));
    };
    EXPECT_DEATH(take_over_another_shape(), "broken invariant");
}

TEST(Ledger, HasRoomForItsCapacityAndNoMore) {
    Ledger ledger(shape_of(3));
    open_block(ledger);
    EXPECT_TRUE(ledger.has_room(2));
    EXPECT_FALSE(ledger.has_room(3));
    open_block(ledger);
    open_block(ledger);
    EXPECT_TRUE(ledger.has_room(0));
    EXPECT_FALSE(ledger.has_room(1));
    ledger.drop(1, DropReason::overrun);
    EXPECT_FALSE(ledger.has_room(1));  // the oldest is still open
    ledger.drop(0, DropReason::overrun);
    ledger.retire(0);
    EXPECT_TRUE(ledger.has_room(1));
    ledger.retire(1);
    EXPECT_TRUE(ledger.has_room(2));
}

TEST(Ledger, GenerationsWrapTheTableManyTimes) {
    Ledger ledger(shape_of(3));
    for (uint64_t number = 0; number < 3000; ++number) {
        ASSERT_EQ(open_block(ledger, number * 10), number);
        ASSERT_EQ(ledger.word(number).generation, number / 3);
        const auto claim = ledger.claim_oldest(worker, life);
        ASSERT_TRUE(claim);
        ASSERT_EQ(claim->number, number);
        ASSERT_EQ(ledger.descriptor(number).group, number * 10);
        ASSERT_EQ(ledger.positions(number)[1], number * 10 + 1);
        ASSERT_TRUE(ledger.finish(*claim));
        ledger.retire(number);
        ASSERT_EQ(ledger.word(number).generation, number / 3 + 1);
    }
    EXPECT_EQ(ledger.opened(), 3000U);
    EXPECT_EQ(ledger.oldest_open(), 3000U);
}

TEST(Ledger, GivesOutTheOldestReadyBlock) {
    Ledger ledger(shape_of(8));
    for (int i = 0; i < 6; ++i) {
        open_block(ledger);
    }
    for (uint64_t number = 0; number < 4; ++number) {
        const auto incarnation = static_cast<uint16_t>(number);
        EXPECT_EQ(ledger.claim_oldest(1, incarnation)->number, number);
    }
    EXPECT_EQ(ledger.reclaim(1, 3).requeued, 1U);
    EXPECT_EQ(ledger.reclaim(1, 1).requeued, 1U);
    EXPECT_TRUE(ledger.drop(4, DropReason::overrun));
    EXPECT_EQ(ledger.claim_oldest(2, 0)->number, 1U);
    EXPECT_EQ(ledger.claim_oldest(2, 0)->number, 3U);
    EXPECT_EQ(ledger.claim_oldest(2, 0)->number, 5U);
    EXPECT_FALSE(ledger.claim_oldest(2, 0));
}

TEST(Ledger, AStaleClaimOfAnEarlierLifeFinishesNothing) {
    Ledger ledger(shape_of(2));
    open_block(ledger);
    const auto first = ledger.claim_oldest(worker, 1);
    EXPECT_EQ(ledger.reclaim(worker, 1).requeued, 1U);
    EXPECT_FALSE(ledger.finish(*first));
    const auto second = ledger.claim_oldest(worker, 2);
    EXPECT_FALSE(ledger.finish(*first));
    EXPECT_TRUE(ledger.finish(*second));
    EXPECT_FALSE(ledger.finish(*first));
    EXPECT_FALSE(ledger.finish(*second));  // nor a repeated one
}

TEST(Ledger, AStaleClaimOfAnEarlierGenerationFinishesNothing) {
    Ledger ledger(shape_of(1));
    open_block(ledger);
    const auto first = ledger.claim_oldest(worker, life);
    ledger.reclaim(worker, life);
    ledger.drop(0, DropReason::overrun);
    ledger.retire(0);
    EXPECT_FALSE(ledger.finish(*first));
    EXPECT_EQ(open_block(ledger), 1U);  // in the same entry
    EXPECT_FALSE(ledger.finish(*first));
    const auto second = ledger.claim_oldest(worker, life);  // the same owner and life
    EXPECT_FALSE(ledger.finish(*first));
    EXPECT_FALSE(ledger.drop(0, DropReason::overrun));
    EXPECT_EQ(ledger.word(1).state, BlockState::claimed);
    EXPECT_TRUE(ledger.finish(*second));
}

TEST(Ledger, TheThirdDeathOnABlockFailsIt) {
    static_assert(Ledger::deaths_until_failed == 3);
    Ledger ledger(shape_of(2));
    for (uint64_t number = 0; number < 6; ++number) {  // each generation begins to count anew
        open_block(ledger);
        for (uint16_t death = 1; death <= 3; ++death) {
            ASSERT_EQ(ledger.claim_oldest(worker, death)->number, number);
            const auto reclaimed = ledger.reclaim(worker, death);
            EXPECT_EQ(reclaimed.requeued, death < 3 ? 1U : 0U);
            EXPECT_EQ(reclaimed.failed, death < 3 ? 0U : 1U);
        }
        EXPECT_EQ(ledger.word(number),
                  (BlockWord{static_cast<uint32_t>(number / 2), BlockState::failed, 0, 0}));
        EXPECT_FALSE(ledger.claim_oldest(worker, 4));
        ledger.retire(number);
    }
}

// Kills from outside say nothing against a block, but there is an end to them too.
TEST(Ledger, GivesUpAForgivenBlockAtTheTenthDeath) {
    Ledger ledger(shape_of(4));
    open_block(ledger, 0);
    for (uint32_t death = 1; death <= Ledger::kills_until_failed; ++death) {
        const auto lived = static_cast<uint16_t>(death);
        ASSERT_TRUE(ledger.claim_oldest(worker, lived));
        const auto reclaimed = ledger.reclaim(worker, lived);
        if (death == Ledger::kills_until_failed) {
            EXPECT_EQ(reclaimed.failed, 1U);
            EXPECT_FALSE(reclaimed.block);
        } else {
            EXPECT_EQ(reclaimed.block, std::optional<uint64_t>{0});
            ledger.forgive_death(0);
            ledger.forgive_death(0);  // nothing left to forgive
        }
    }
}

TEST(Ledger, ForgivesNothingOfABlockThatIsGone) {
    Ledger ledger(shape_of(1));
    open_block(ledger, 0);
    ledger.finish(*ledger.claim_oldest(worker, life));
    ledger.retire(0);
    open_block(ledger, 1);  // in the same entry
    ASSERT_TRUE(ledger.claim_oldest(worker, 1));
    ledger.reclaim(worker, 1);
    ledger.forgive_death(0);
    ledger.forgive_death(7);  // never opened
    for (uint16_t death = 2; death <= 3; ++death) {
        ASSERT_TRUE(ledger.claim_oldest(worker, death));
        EXPECT_EQ(ledger.reclaim(worker, death).failed, death == 3 ? 1U : 0U);
    }
}

TEST(Ledger, TwoDeathsAreForgottenWhenTheBlockIsDone) {
    Ledger ledger(shape_of(1));
    for (int generation = 0; generation < 4; ++generation) {
        open_block(ledger);
        for (int death = 0; death < 2; ++death) {
            ledger.claim_oldest(worker, life);
            EXPECT_EQ(ledger.reclaim(worker, life).requeued, 1U);
        }
        EXPECT_TRUE(ledger.finish(*ledger.claim_oldest(worker, life)));
        ledger.retire(ledger.oldest_open());
    }
}

TEST(Ledger, DeathsAreCountedForEachBlock) {
    Ledger ledger(shape_of(4));
    open_block(ledger);
    for (uint16_t death = 1; death <= 2; ++death) {
        ledger.claim_oldest(worker, death);
        ledger.reclaim(worker, death);
    }
    open_block(ledger);
    ledger.claim_oldest(worker, 3);
    ledger.claim_oldest(worker, 3);
    const auto reclaimed = ledger.reclaim(worker, 3);  // third on block 0, first on block 1
    EXPECT_EQ(reclaimed.failed, 1U);
    EXPECT_EQ(reclaimed.requeued, 1U);
    EXPECT_EQ(ledger.word(0).state, BlockState::failed);
    EXPECT_EQ(ledger.word(1).state, BlockState::ready);
}

TEST(Ledger, ResultsAreAlignedAndApart) {
    Ledger ledger({.capacity = 5, .most_frames = 1, .workers = 1, .result_bytes = 100});
    for (uint64_t number = 0; number < 5; ++number) {
        const auto result = ledger.result(number);
        ASSERT_EQ(result.size(), 100U);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(result.data()) % 64, 0U);
        std::ranges::fill(result, static_cast<std::byte>(number + 1));
    }
    for (uint64_t number = 0; number < 5; ++number) {
        EXPECT_EQ(std::ranges::count(ledger.result(number), static_cast<std::byte>(number + 1)),
                  100);
        EXPECT_EQ(ledger.word(number), BlockWord{});
        EXPECT_EQ(ledger.result(number + 5).data(), ledger.result(number).data());
    }
    EXPECT_EQ(ledger.worker(0).blocks.load(), 0U);
}

TEST(Ledger, KeepsTheReasonOfADropAgainstDropsThatComeTooLate) {
    Ledger ledger(shape_of(1));
    open_block(ledger);
    EXPECT_TRUE(ledger.drop(0, DropReason::overrun));
    EXPECT_EQ(ledger.drop_reason(0), DropReason::overrun);
    EXPECT_FALSE(ledger.drop(0, DropReason::paused));
    EXPECT_EQ(ledger.drop_reason(0), DropReason::overrun);
    ledger.retire(0);
    open_block(ledger);  // in the same entry
    EXPECT_EQ(ledger.drop_reason(1), DropReason::none);
    EXPECT_TRUE(ledger.drop(1, DropReason::paused));
    EXPECT_FALSE(ledger.drop(0, DropReason::overrun));
    EXPECT_EQ(ledger.drop_reason(1), DropReason::paused);
}

TEST(Ledger, TakenOverByItsDescriptorIsTheSameLedger) {
    Ledger ledger(shape_of(4));
    open_block(ledger, 40);
    ledger.worker(7).blocks.store(12);
    Ledger other(shape_of(4), FileDescriptor(dup(ledger.descriptor())));
    EXPECT_EQ(other.opened(), 1U);
    EXPECT_EQ(other.positions(0)[1], 41U);
    EXPECT_EQ(other.worker(7).blocks.load(), 12U);
    const auto claim = other.claim_oldest(worker, life);
    ASSERT_TRUE(claim);
    other.result(0)[99] = std::byte{5};
    EXPECT_TRUE(other.finish(*claim));
    EXPECT_EQ(ledger.word(0), (BlockWord{0, BlockState::done, worker, life}));
    EXPECT_EQ(ledger.result(0)[99], std::byte{5});
    ledger.retire(0);
    EXPECT_EQ(other.oldest_open(), 1U);
}

TEST(Ledger, KnowsWhetherAnyWorkerMayBeAboutToSleep) {
    Ledger ledger(shape_of(4));
    EXPECT_FALSE(ledger.a_worker_waits());
    ledger.look_for_work(5);
    EXPECT_TRUE(ledger.a_worker_waits());
    const auto set_stage = [&](uint16_t id, WorkerStage stage) {
        ledger.worker(id).stage.store(static_cast<uint32_t>(stage));
    };
    set_stage(5, WorkerStage::computing);
    EXPECT_FALSE(ledger.a_worker_waits());
    ledger.look_for_work(2);
    EXPECT_TRUE(ledger.a_worker_waits());
    set_stage(2, WorkerStage::leaving);
    EXPECT_FALSE(ledger.a_worker_waits());
}

TEST(Ledger, SaysWhichBlockTheCollectorWaitsFor) {
    Ledger ledger(shape_of(4));
    ledger.await_block(7);
    EXPECT_TRUE(ledger.is_awaited(7));
    EXPECT_FALSE(ledger.is_awaited(6));
}

TEST(Ledger, PausesAndGoesOn) {
    Ledger ledger(shape_of(1));
    EXPECT_FALSE(ledger.paused());
    ledger.set_paused(true);
    EXPECT_TRUE(ledger.paused());
    ledger.set_paused(false);
    EXPECT_FALSE(ledger.paused());
}

TEST(Ledger, ClosesAndAsksToLeave) {
    Ledger ledger(shape_of(1));
    ledger.close();
    EXPECT_TRUE(ledger.closed());
    ledger.ask_workers_to_leave();
    EXPECT_TRUE(ledger.workers_should_leave());
    ledger.work_futex().fetch_add(1);
    EXPECT_EQ(ledger.results_futex().load(), 0U);
    EXPECT_EQ(ledger.room_futex().load(), 0U);
}

TEST(Ledger, RefusesWhatMemoryCannotHold) {
    EXPECT_THROW(Ledger({.capacity = 1U << 20,
                         .most_frames = 1,
                         .workers = 1,
                         .result_bytes = size_t{1} << 40}),
                 UsageError);
}

}  // namespace
}  // namespace echelle
