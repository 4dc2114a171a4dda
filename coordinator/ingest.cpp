#include "coordinator/ingest.hpp"

#include <algorithm>

#include "common/clock.hpp"
#include "common/fault_point.hpp"
#include "common/futex.hpp"

namespace echelle {
namespace {

// How long ingest sleeps at most when no frame comes: bounds how late a lost token is made good.
constexpr int64_t longest_wait_ns = 2'000'000;
constexpr int64_t old_block_ns = 2'000'000;
constexpr int64_t producer_check_ns = 100'000'000;

// A slot's stamp may be rewritten while it is read; `holds_after_reading` tells whether it counts.
template <typename T>
T load_relaxed(T& field) {
    return std::atomic_ref<T>(field).load(std::memory_order_relaxed);
}

uint64_t first_own_position(const BlockDescriptor& block, std::span<const uint64_t> positions) {
    return positions[block.listed_frames - block.own_frames];
}

}  // namespace

Ingest::Ingest(const Setup& setup)
    : setup_(setup),
      builder_(setup.ring->stream().geometry.samples, setup.plan->grid, setup.plan->group_frames,
               setup.frames_per_integration),
      shed_age_((setup.ring->slot_count() - setup.plan->history_frames) * 3 / 4),
      keep_age_((setup.ring->slot_count() - setup.plan->history_frames) / 2),
      next_(setup.first_position),
      needed_(setup.first_position),
      taken_before_(setup.first_position) {}

void Ingest::run(TokenSender& tokens) {
    while (!setup_.abort->load(std::memory_order_relaxed)) {
        const bool ended = stream_has_ended();
        if (waiting_.empty()) {
            // Not woken by every frame, but when there is a group of them.
            setup_.ring->wait_for_frame(next_ + builder_.frames_wanted() - 1,
                                        ended ? 0 : longest_wait_ns);
        }
        take_frames();
        // The end was looked at before the frames were: none can have slipped in between.
        if (ended && (setup_.ring->head() <= next_ || setup_.most_frames == taken_)) {
            if (auto last = builder_.flush()) {
                waiting_.push_back(std::move(*last));
            }
        }
        const uint32_t room_seen = setup_.ledger->room_futex().load(std::memory_order_acquire);
        open_groups();
        if (setup_.policy == OverrunPolicy::drop) {
            shed_load();
        }
        wake_for_old_blocks(tokens);
        if (!waiting_.empty()) {
            futex_wait(setup_.ledger->room_futex(), room_seen, longest_wait_ns);
        } else if (ended && (setup_.ring->head() <= next_ || setup_.most_frames == taken_) &&
                   builder_.pending_frames() == 0) {
            break;
        }
    }
    setup_.ledger->close();
    // Workers may still lack a token for the last blocks: ingest is the one to wake them.
    while (!setup_.abort->load(std::memory_order_relaxed) &&
           setup_.ledger->oldest_open() < setup_.ledger->opened()) {
        const uint32_t room_seen = setup_.ledger->room_futex().load(std::memory_order_acquire);
        if (setup_.policy == OverrunPolicy::drop) {
            shed_load();
        }
        wake_for_old_blocks(tokens);
        futex_wait(setup_.ledger->room_futex(), room_seen, longest_wait_ns);
    }
}

bool Ingest::stream_has_ended() {
    if (setup_.ring->ended() || setup_.stop->load(std::memory_order_relaxed) ||
        setup_.most_frames == taken_) {
        return true;
    }
    const int64_t now_ns = monotonic_ns();
    if (now_ns - producer_checked_ns_ > producer_check_ns) {
        producer_checked_ns_ = now_ns;
        // Not an end yet if it ended its ring in the moment between.
        producer_vanished_ = !setup_.ring->producer_alive() && !setup_.ring->ended();
    }
    return producer_vanished_;
}

// Stops taking while groups wait for room: frames are safer in the ring than in a list.
void Ingest::take_frames() {
    const uint64_t head = setup_.ring->head();
    while (next_ < head && waiting_.size() < 2 && setup_.most_frames != taken_) {
        if (setup_.ring->holds(next_)) {
            take_frame(next_);
            ++next_;
        } else {
            skip_overwritten();
        }
        taken_before_.store(next_, std::memory_order_release);
        open_groups();
    }
}

void Ingest::take_frame(uint64_t position) {
    RingSlot& slot = setup_.ring->slot(position);
    FrameArrival frame;
    frame.position = position;
    frame.frame_index = load_relaxed(slot.frame_index);
    frame.first_sample = load_relaxed(slot.first_sample);
    frame.valid_samples = load_relaxed(slot.valid_samples);
    frame.flags = load_relaxed(slot.flags);
    frame.complete_ns = load_relaxed(slot.complete_ns);
    if (!setup_.ring->holds_after_reading(position)) {
        setup_.accounts->frames_lost(FrameDrop::overrun, 1);
        builder_.skip(1);
        return;
    }
    setup_.accounts->frame_came_in(frame.complete_ns);
    finished_.clear();
    const auto outcome = builder_.add(frame, finished_);
    if (outcome.lost_by_source > 0) {
        setup_.accounts->frames_lost(FrameDrop::lost_by_source, outcome.lost_by_source);
    }
    switch (outcome.verdict) {
        case GroupBuilder::Verdict::accepted:
            ++taken_;
            break;
        case GroupBuilder::Verdict::repeated:
            setup_.accounts->frame_refused(FrameDrop::repeated);
            break;
        case GroupBuilder::Verdict::out_of_order:
            setup_.accounts->frame_refused(FrameDrop::out_of_order);
            break;
        case GroupBuilder::Verdict::malformed:
            setup_.accounts->frame_refused(FrameDrop::malformed);
            break;
    }
    std::move(finished_.begin(), finished_.end(), std::back_inserter(waiting_));
}

// The producer has lapped us: the oldest frame that may still be whole comes next.
void Ingest::skip_overwritten() {
    const uint64_t head = setup_.ring->head();
    const uint64_t oldest = head > keep_age_ ? head - keep_age_ : next_ + 1;
    const uint64_t resume = std::min(std::max(oldest, next_ + 1), head);
    setup_.accounts->frames_lost(FrameDrop::overrun, resume - next_);
    builder_.skip(resume - next_);
    next_ = resume;
}

void Ingest::open_groups() {
    while (!waiting_.empty() && setup_.ledger->has_room(setup_.plan->blocks_per_group)) {
        open_group(waiting_.front());
        waiting_.pop_front();
    }
    publish_needed();
}

void Ingest::open_group(const Group& group) {
    BlockDescriptor block = group.block;
    block.group = group_number_++;
    block.opened_ns = monotonic_ns();
    block.blocks_in_group = setup_.plan->blocks_per_group;
    // Taken first: `||` would leave it for the group after one that has a gap of its own.
    const bool groups_dropped_before = std::exchange(gap_before_next_group_, false);
    block.gap_before = block.gap_before || groups_dropped_before;
    block.segments_lost += std::exchange(segments_lost_before_next_group_, 0);
    // Counted before they are opened: the collector may retire a block at once.
    setup_.accounts->blocks_made(block.blocks_in_group);
    for (uint32_t i = 0; i < block.blocks_in_group; ++i) {
        block.index_in_group = i;
        block.first_channel = i * setup_.plan->block_channels;
        block.channel_count =
            std::min(setup_.plan->block_channels, setup_.channels - block.first_channel);
        setup_.ledger->open(block, group.positions);
    }
    opened_since_tokens_ += block.blocks_in_group;
    ECHELLE_FAULT_POINT("ingest.opened");
}

void Ingest::publish_needed() {
    const uint64_t needed = waiting_.empty() ? builder_.first_position_needed(next_)
                                             : waiting_.front().positions.front();
    // Release: whoever reads it sees the blocks that were opened before.
    needed_.store(needed, std::memory_order_release);
    if (setup_.ledger->oldest_open() == setup_.ledger->opened()) {
        // The collector releases frames when it retires blocks; here there are none to retire.
        setup_.ring->release_before(needed);
    }
}

// Ring position of the oldest frame that nobody has claimed yet.
uint64_t Ingest::oldest_unclaimed() const {
    const Ledger& ledger = *setup_.ledger;
    const uint64_t end = ledger.opened();
    for (uint64_t number = ledger.oldest_open(); number < end; ++number) {
        if (ledger.word(number).state == BlockState::ready) {
            return first_own_position(ledger.descriptor(number), ledger.positions(number));
        }
    }
    return waiting_.empty()
               ? next_
               : first_own_position(waiting_.front().block, waiting_.front().positions);
}

void Ingest::shed_load() {
    const uint64_t head = setup_.ring->head();
    if (head - std::min(head, oldest_unclaimed()) <= shed_age_) {
        return;
    }
    drop_blocks_before(head - keep_age_);
    drop_waiting_groups_before(head - keep_age_);
}

void Ingest::drop_blocks_before(uint64_t position) {
    Ledger& ledger = *setup_.ledger;
    const uint64_t end = ledger.opened();
    for (uint64_t number = ledger.oldest_open(); number < end; ++number) {
        if (first_own_position(ledger.descriptor(number), ledger.positions(number)) >= position) {
            break;  // later blocks have later frames
        }
        ledger.drop(number, ledger.paused() ? DropReason::paused : DropReason::overrun);
    }
    ledger.results_futex().fetch_add(1, std::memory_order_release);
    futex_wake(ledger.results_futex());
}

void Ingest::drop_waiting_groups_before(uint64_t position) {
    while (!waiting_.empty() &&
           first_own_position(waiting_.front().block, waiting_.front().positions) < position) {
        const BlockDescriptor& block = waiting_.front().block;
        setup_.accounts->group_dropped(
            block.own_frames, setup_.ledger->paused() ? FrameDrop::paused : FrameDrop::overrun);
        gap_before_next_group_ = true;
        segments_lost_before_next_group_ += block.segments + block.segments_lost;
        waiting_.pop_front();
    }
}

void Ingest::wake_for_old_blocks(TokenSender& tokens) {
    const uint32_t workers = setup_.workers->load(std::memory_order_relaxed);
    const int64_t now_ns = monotonic_ns();
    if (opened_since_tokens_ > 0) {
        // Those at work look for more by themselves: on a busy machine nobody has to be woken.
        if (setup_.ledger->a_worker_waits()) {
            tokens.send(std::min(opened_since_tokens_, workers));
        }
        opened_since_tokens_ = 0;
        last_tokens_ns_ = now_ns;
        return;
    }
    const Ledger& ledger = *setup_.ledger;
    const bool reclaimed = wake_soon_.exchange(false, std::memory_order_relaxed);
    if (!reclaimed && now_ns - last_tokens_ns_ < old_block_ns) {
        return;
    }
    const uint64_t end = ledger.opened();
    for (uint64_t number = ledger.oldest_open(); number < end; ++number) {
        if (ledger.word(number).state == BlockState::ready) {
            tokens.send(workers);
            last_tokens_ns_ = now_ns;
            return;
        }
    }
}

}  // namespace echelle
