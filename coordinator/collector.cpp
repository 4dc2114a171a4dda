#include "coordinator/collector.hpp"

#include <algorithm>

#include "common/clock.hpp"
#include "common/fault_point.hpp"
#include "common/futex.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

// A lost notice delays a result by this much at most.
constexpr int64_t longest_wait_ns = 5'000'000;
constexpr uint64_t open_groups_for_each_waited_for = 4;

}  // namespace

// Nothing is gained by being woken before the last block of a group is done: if that one overtook
// others, the first of those. Where many groups wait their spectra are late by all of them: a
// quarter of them at once makes that little worse and saves wake-ups, each of which costs the
// source, ingest and this thread tens of microseconds.
uint64_t block_to_wait_for(const Ledger& ledger, uint32_t blocks_per_group) {
    const uint64_t oldest = ledger.oldest_open();
    const uint64_t per_group = blocks_per_group;
    const uint64_t more_groups =
        (ledger.opened() - oldest) / per_group / open_groups_for_each_waited_for;
    const uint64_t last = oldest - oldest % per_group + (1 + more_groups) * per_group - 1;
    if (last < ledger.opened()) {
        const BlockState state = ledger.word(last).state;
        if (state != BlockState::ready && state != BlockState::claimed) {
            return oldest;
        }
    }
    return last;
}

Collector::Collector(const Setup& setup) : setup_(setup) {}

void Collector::run(NoticeReceiver& notices) {
    const Ledger& ledger = *setup_.ledger;
    while (!setup_.abort->load(std::memory_order_relaxed)) {
        notices.prepare();
        setup_.ledger->await_block(block_to_wait_for(ledger, setup_.plan->blocks_per_group));
        awake_ns_ = monotonic_ns();
        const uint32_t collected = collect_what_is_done();
        if (ledger.closed() && ledger.oldest_open() == ledger.opened()) {
            break;
        }
        if (collected == 0) {
            notices.wait(longest_wait_ns);
        }
    }
    setup_.integrator->finish();
    setup_.accounts->set_spectra(setup_.integrator->books());
}

uint32_t Collector::collect_what_is_done() {
    Ledger& ledger = *setup_.ledger;
    uint32_t collected = 0;
    while (ledger.oldest_open() < ledger.opened() && collect(ledger.oldest_open())) {
        ++collected;
    }
    if (collected > 0) {
        release_frames();
        // Ingest may be waiting for room in the ledger.
        ledger.room_futex().fetch_add(1, std::memory_order_release);
        futex_wake(ledger.room_futex());
    }
    return collected;
}

// False when the block is still READY or CLAIMED.
bool Collector::collect(uint64_t number) {
    Ledger& ledger = *setup_.ledger;
    const BlockState state = ledger.word(number).state;
    if (state == BlockState::ready || state == BlockState::claimed) {
        return false;
    }
    const BlockDescriptor block = ledger.descriptor(number);
    const BlockResult result(ledger.result(number), setup_.plan->block_channels,
                             setup_.plan->most_values);
    if (block.index_in_group == 0) {
        group_lost_ = false;
        group_work_ = {};
    }
    const auto lose = [&](FrameDrop reason) {
        // The first reason met names the group's frames.
        group_reason_ = group_lost_ ? group_reason_ : reason;
        group_lost_ = true;
    };
    if (state == BlockState::done && result.header().status == BlockStatus::computed) {
        if (!setup_.integrator->add(block, result)) {
            lose(FrameDrop::crc_error);
        }
        const BlockTimes times = times_of(block, result.header());
        setup_.accounts->block_done(times);
        group_work_.work_ns += static_cast<double>(times.computed - times.claimed);
        group_work_.cpu_ns += static_cast<double>(result.header().cpu_ns);
    } else {
        setup_.integrator->add_missing(block);
        if (state == BlockState::failed) {
            setup_.accounts->block_failed();
            lose(FrameDrop::worker_failures);
        } else {
            setup_.accounts->block_dropped();
            lose(state == BlockState::done                          ? FrameDrop::overwritten
                 : ledger.drop_reason(number) == DropReason::paused ? FrameDrop::paused
                                                                    : FrameDrop::overrun);
        }
    }
    ECHELLE_FAULT_POINT("collector.collected");
    ledger.retire(number);
    ECHELLE_FAULT_POINT("collector.retired");
    if (block.index_in_group + 1 == block.blocks_in_group) {
        finish_group(block);
    }
    return true;
}

BlockTimes Collector::times_of(const BlockDescriptor& block,
                               const BlockResultHeader& result) const {
    BlockTimes times;
    times.complete = block.complete_ns;
    times.ready = block.opened_ns;
    times.claimed = result.claimed_ns;
    times.computed = result.done_ns;
    times.noticed = std::max(awake_ns_, result.done_ns);  // done while the one before was collected
    times.collected = monotonic_ns();
    return times;
}

void Collector::finish_group(const BlockDescriptor& block) {
    if (group_lost_) {
        setup_.accounts->group_dropped(block.own_frames, group_reason_);
    } else {
        group_work_.latency_ns = monotonic_ns() - block.complete_ns;
        const uint32_t workers = setup_.workers->load(std::memory_order_relaxed);
        const uint32_t parallel = std::max(1U, std::min(workers, setup_.cpus));
        group_work_.frame_work_ns = group_work_.work_ns / block.own_frames / parallel;
        setup_.accounts->group_done(block.own_frames, group_work_, setup_.budget_ns);
    }
    setup_.accounts->set_spectra(setup_.integrator->books());
}

void Collector::release_frames() {
    const Ledger& ledger = *setup_.ledger;
    // In this order: if ingest has advanced past a group, that group's blocks are visible below.
    uint64_t needed = setup_.needed_by_ingest->load(std::memory_order_acquire);
    const uint64_t oldest = ledger.oldest_open();
    if (oldest < ledger.opened()) {
        needed = std::min(needed, ledger.positions(oldest).front());
    }
    setup_.ring->release_before(needed);
}

}  // namespace echelle
