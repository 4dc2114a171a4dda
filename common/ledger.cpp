#include "common/ledger.hpp"

#include <algorithm>
#include <new>

#include "common/invariant.hpp"

namespace echelle {
namespace {

size_t aligned_64(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

// Gives out consecutive, 64-byte aligned pieces of a region, constructed or as they are.
class Carver {
  public:
    Carver(std::byte* start, bool construct) : next_(start), construct_(construct) {}
    template <typename T>
    T* array(size_t count) {
        auto* first = reinterpret_cast<T*>(next_);
        for (size_t i = 0; construct_ && i < count; ++i) {
            new (first + i) T{};
        }
        next_ += aligned_64(count * sizeof(T));
        return first;
    }
    std::byte* rest() const { return next_; }

  private:
    std::byte* next_;
    bool construct_;
};

}  // namespace

// Each counter has one writer and a cache line of its own.
struct Ledger::Header {
    // Ingest: release publishes entry, positions and word of every block before it.
    alignas(64) std::atomic<uint64_t> opened{0};
    std::atomic<uint32_t> closed{0};
    // Collector: release says that results before it have been read.
    alignas(64) std::atomic<uint64_t> oldest_open{0};
    // Ingest and supervisor bump it; workers wait on it.
    alignas(64) std::atomic<uint32_t> work{0};
    // Workers raise it when they begin: ids below it have been in use.
    std::atomic<uint32_t> worker_ids{0};
    // Workers bump it; the collector waits on it.
    alignas(64) std::atomic<uint32_t> results{0};
    // Collector -> workers.
    std::atomic<uint64_t> awaited{0};
    // Collector bumps it; ingest waits on it.
    alignas(64) std::atomic<uint32_t> room{0};
    // Coordinator -> workers.
    alignas(64) std::atomic<uint32_t> leave{0};
    std::atomic<uint32_t> paused{0};
    std::atomic<uint32_t> begun{0};
};

struct Ledger::Entry {
    BlockDescriptor descriptor;
    // Supervisor only; of the present generation.
    std::atomic<uint32_t> deaths{0};
    std::atomic<uint32_t> kills{0};  // deaths that were forgiven
    DropReason drop_reason = DropReason::none;
};

Ledger::Ledger(const LedgerShape& shape)
    : shape_(shape), result_stride_(aligned_64(shape.result_bytes)) {
    ECHELLE_INVARIANT(shape.capacity >= 1 && shape.most_frames >= 1 && shape.workers >= 1);
    memory_ = SharedMemory::anonymous("the ledger and its results",
                                      table_bytes() + shape.capacity * result_stride_, false);
    lay_out(true);
}

Ledger::Ledger(const LedgerShape& shape, FileDescriptor fd)
    : shape_(shape),
      memory_(SharedMemory::from_descriptor(std::move(fd), "the ledger")),
      result_stride_(aligned_64(shape.result_bytes)) {
    ECHELLE_INVARIANT(memory_.size() >= table_bytes() + shape.capacity * result_stride_);
    lay_out(false);
}

size_t Ledger::table_bytes() const {
    return aligned_64(sizeof(Header)) +
           aligned_64(shape_.capacity * sizeof(std::atomic<uint64_t>)) +
           aligned_64(shape_.capacity * sizeof(Entry)) +
           aligned_64(size_t{shape_.capacity} * shape_.most_frames * sizeof(uint64_t)) +
           aligned_64(shape_.workers * sizeof(WorkerRecord));
}

void Ledger::lay_out(bool construct) {
    Carver carver(memory_.data(), construct);
    header_ = carver.array<Header>(1);
    words_ = carver.array<std::atomic<uint64_t>>(shape_.capacity);
    entries_ = carver.array<Entry>(shape_.capacity);
    positions_ = carver.array<uint64_t>(size_t{shape_.capacity} * shape_.most_frames);
    workers_ = carver.array<WorkerRecord>(shape_.workers);
    results_ = carver.rest();
}

Ledger::Entry& Ledger::entry(uint64_t number) const {
    return entries_[number % shape_.capacity];
}

std::atomic<uint64_t>& Ledger::word_of(uint64_t number) const {
    return words_[number % shape_.capacity];
}

uint32_t Ledger::generation_of(uint64_t number) const {
    return static_cast<uint32_t>(number / shape_.capacity) & BlockWord::generation_mask;
}

// Acquire: the winner sees what the state before it published (descriptor, result). Release: it
// publishes its own writes to whoever reads the new state.
bool Ledger::exchange(uint64_t number, BlockWord expected, BlockWord desired) {
    uint64_t word = expected.packed();
    return word_of(number).compare_exchange_strong(
        word, desired.packed(), std::memory_order_acq_rel, std::memory_order_relaxed);
}

bool Ledger::has_room(uint32_t blocks) const {
    return opened() + blocks - oldest_open() <= shape_.capacity;
}

uint64_t Ledger::open(const BlockDescriptor& descriptor, std::span<const uint64_t> positions) {
    ECHELLE_INVARIANT(has_room(1));
    ECHELLE_INVARIANT(positions.size() == descriptor.listed_frames &&
                      positions.size() <= shape_.most_frames);
    const uint64_t number = opened();
    Entry& target = entry(number);
    target.descriptor = descriptor;
    target.deaths.store(0, std::memory_order_relaxed);
    target.kills.store(0, std::memory_order_relaxed);
    target.drop_reason = DropReason::none;
    std::copy(positions.begin(), positions.end(),
              positions_ + (number % shape_.capacity) * shape_.most_frames);
    const uint32_t generation = generation_of(number);
    const bool opened_now = exchange(number, {generation, BlockState::free, 0, 0},
                                     {generation, BlockState::ready, 0, 0});
    ECHELLE_INVARIANT(opened_now);
    header_->opened.store(number + 1, std::memory_order_release);
    return number;
}

bool Ledger::drop(uint64_t number, DropReason reason) {
    const uint32_t generation = generation_of(number);
    const BlockWord ready{generation, BlockState::ready, 0, 0};
    // The entry may already hold a later block, or one whose reason the collector reads.
    if (word(number) != ready) {
        return false;
    }
    // Only ingest writes the reason and only the collector reads it, after DROPPED: a lost race
    // leaves a value that nobody looks at.
    entry(number).drop_reason = reason;
    return exchange(number, ready, {generation, BlockState::dropped, 0, 0});
}

void Ledger::close() {
    header_->closed.store(1, std::memory_order_release);
}

std::optional<Claim> Ledger::claim_oldest(uint16_t owner, uint16_t incarnation) {
    const uint64_t end = opened();
    for (uint64_t number = oldest_open(); number < end; ++number) {
        const uint32_t generation = generation_of(number);
        const BlockWord ready{generation, BlockState::ready, 0, 0};
        if (word_of(number).load(std::memory_order_relaxed) != ready.packed()) {
            continue;
        }
        const BlockWord claimed{generation, BlockState::claimed, owner, incarnation};
        if (exchange(number, ready, claimed)) {
            return Claim{number, claimed};
        }
    }
    return std::nullopt;
}

bool Ledger::finish(const Claim& claim) {
    BlockWord done = claim.word;
    done.state = BlockState::done;
    return exchange(claim.number, claim.word, done);
}

Ledger::Reclaimed Ledger::reclaim(uint16_t owner, uint16_t incarnation) {
    Reclaimed reclaimed;
    const uint64_t end = opened();
    for (uint64_t number = oldest_open(); number < end; ++number) {
        const uint32_t generation = generation_of(number);
        const BlockWord held{generation, BlockState::claimed, owner, incarnation};
        if (word_of(number).load(std::memory_order_acquire) != held.packed()) {
            continue;
        }
        const uint32_t deaths = entry(number).deaths.fetch_add(1, std::memory_order_relaxed) + 1;
        const uint32_t kills = entry(number).kills.load(std::memory_order_relaxed);
        const bool fails = deaths >= deaths_until_failed || deaths + kills >= kills_until_failed;
        const BlockState next = fails ? BlockState::failed : BlockState::ready;
        // The owner is dead and nobody else may touch CLAIMED: the exchange cannot lose.
        const bool changed = exchange(number, held, {generation, next, 0, 0});
        ECHELLE_INVARIANT(changed);
        (fails ? reclaimed.failed : reclaimed.requeued) += 1;
        if (!fails) {
            reclaimed.block = number;
        }
    }
    return reclaimed;
}

void Ledger::forgive_death(uint64_t number) {
    if (number < oldest_open() || number >= opened()) {
        return;  // finished by somebody else meanwhile
    }
    uint32_t deaths = entry(number).deaths.load(std::memory_order_relaxed);
    while (deaths > 0) {
        if (entry(number).deaths.compare_exchange_weak(deaths, deaths - 1,
                                                       std::memory_order_relaxed)) {
            entry(number).kills.fetch_add(1, std::memory_order_relaxed);
            return;
        }
    }
}

void Ledger::retire(uint64_t number) {
    ECHELLE_INVARIANT(number == oldest_open() && number < opened());
    const BlockWord now = word(number);
    ECHELLE_INVARIANT(now.state == BlockState::done || now.state == BlockState::dropped ||
                      now.state == BlockState::failed);
    const BlockWord next{(now.generation + 1) & BlockWord::generation_mask, BlockState::free, 0, 0};
    const bool retired = exchange(number, now, next);
    ECHELLE_INVARIANT(retired);
    header_->oldest_open.store(number + 1, std::memory_order_release);
}

uint64_t Ledger::opened() const {
    return header_->opened.load(std::memory_order_acquire);
}

uint64_t Ledger::oldest_open() const {
    return header_->oldest_open.load(std::memory_order_acquire);
}

bool Ledger::closed() const {
    return header_->closed.load(std::memory_order_acquire) != 0;
}

BlockWord Ledger::word(uint64_t number) const {
    return BlockWord::unpacked(word_of(number).load(std::memory_order_acquire));
}

const BlockDescriptor& Ledger::descriptor(uint64_t number) const {
    return entry(number).descriptor;
}

DropReason Ledger::drop_reason(uint64_t number) const {
    return entry(number).drop_reason;
}

std::span<const uint64_t> Ledger::positions(uint64_t number) const {
    return {positions_ + (number % shape_.capacity) * shape_.most_frames,
            descriptor(number).listed_frames};
}

std::span<std::byte> Ledger::result(uint64_t number) const {
    return {results_ + (number % shape_.capacity) * result_stride_, shape_.result_bytes};
}

WorkerRecord& Ledger::worker(uint16_t id) const {
    ECHELLE_INVARIANT(id < shape_.workers);
    return workers_[id];
}

std::atomic<uint32_t>& Ledger::work_futex() const {
    return header_->work;
}

std::atomic<uint32_t>& Ledger::results_futex() const {
    return header_->results;
}

std::atomic<uint32_t>& Ledger::room_futex() const {
    return header_->room;
}

void Ledger::ask_workers_to_leave() {
    header_->leave.store(1, std::memory_order_release);
}

void Ledger::await_block(uint64_t number) {
    header_->awaited.store(number, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Ledger::is_awaited(uint64_t number) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return header_->awaited.load(std::memory_order_relaxed) == number;
}

void Ledger::look_for_work(uint16_t id) {
    uint32_t ids = header_->worker_ids.load(std::memory_order_relaxed);
    while (ids <= id && !header_->worker_ids.compare_exchange_weak(ids, uint32_t{id} + 1,
                                                                   std::memory_order_relaxed)) {
    }
    worker(id).stage.store(static_cast<uint32_t>(WorkerStage::waiting), std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Ledger::a_worker_waits() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint32_t ids = header_->worker_ids.load(std::memory_order_relaxed);
    for (uint32_t id = 0; id < ids; ++id) {
        if (worker(static_cast<uint16_t>(id)).stage.load(std::memory_order_relaxed) ==
            static_cast<uint32_t>(WorkerStage::waiting)) {
            return true;
        }
    }
    return false;
}

void Ledger::set_paused(bool paused) {
    header_->paused.store(paused ? 1 : 0, std::memory_order_release);
}

bool Ledger::paused() const {
    return header_->paused.load(std::memory_order_acquire) != 0;
}

// Relaxed: a hint, nothing is published by it.
void Ledger::tell_begun() {
    header_->begun.store(1, std::memory_order_relaxed);
}

bool Ledger::has_begun() const {
    return header_->begun.load(std::memory_order_relaxed) != 0;
}

bool Ledger::workers_should_leave() const {
    return header_->leave.load(std::memory_order_acquire) != 0;
}

}  // namespace echelle
