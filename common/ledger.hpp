// The ledger: the table in shared memory that holds every block's state. It is the only truth about
// who has what; tokens and notices are hints about it and may be lost or repeated.
//
// A block is a range of channels x some consecutive frames. Blocks are numbered from 0 in the order
// in which they are opened; block n lives in entry n % capacity. One 64-bit word per entry says all
// that may change hands: generation, state, owner, incarnation. It changes by compare-and-swap
// only, so every transition happens exactly once, whoever dies:
//
//     FREE ──open──► READY ──claim──► CLAIMED ──finish──► DONE ──retire──► FREE (generation + 1)
//                      │  ◄──reclaim──   │                                  ▲
//                      │                 └─third death─► FAILED ──retire────┤
//                      └────drop────► DROPPED ──────────────────retire──────┘
//
// Who calls what: open and drop, the ingest thread; claim and finish, workers; reclaim, the
// supervisor, once the owner can no longer write; retire, the collector thread, in block order.
// The memory is made before the nursery is forked, so that every process has it mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/shared_memory.hpp"

namespace echelle {

enum class BlockState : uint8_t {
    free = 0,
    ready = 1,
    claimed = 2,
    done = 3,
    dropped = 4,
    failed = 5
};

// The 64-bit word, taken apart: generation 28 bits, state 4, owner 16, incarnation 16.
struct BlockWord {
    uint32_t generation = 0;
    BlockState state = BlockState::free;
    uint16_t owner = 0;        // worker id, in CLAIMED and DONE
    uint16_t incarnation = 0;  // which life of that worker

    static constexpr uint32_t generation_mask = (1U << 28) - 1;
    uint64_t packed() const {
        return uint64_t{generation & generation_mask} << 36 |
               uint64_t{static_cast<uint8_t>(state)} << 32 | uint64_t{owner} << 16 | incarnation;
    }
    static BlockWord unpacked(uint64_t word) {
        return {static_cast<uint32_t>(word >> 36), static_cast<BlockState>(word >> 32 & 0xF),
                static_cast<uint16_t>(word >> 16), static_cast<uint16_t>(word)};
    }
    bool operator==(const BlockWord&) const = default;
};

enum class DropReason : uint32_t {
    none = 0,
    overrun = 1,  // workers fell behind a source that does not wait
    paused = 2,   // the same, while the operator had paused them
};

// What a block is. Written by ingest before the block is READY, constant until it is FREE again.
struct BlockDescriptor {
    uint64_t group = 0;         // the blocks of one group share their frames and differ in channels
    uint64_t integration = 0;   // number of the integration that the group belongs to
    uint64_t first_sample = 0;  // index in the stream of the block's own first sample
    uint64_t grid_sample = 0;   // first listed frame's first sample, from the start of the stretch
    uint64_t own_samples = 0;   // samples per channel in the block's own frames
    uint64_t segments = 0;      // segments per channel that end in the block's own frames
    uint64_t segments_lost = 0;  // segments missing with the frames lost since the group before
    uint64_t segments_cut = 0;   // that would end in what a gap cut off its last frame
    int64_t complete_ns = 0;     // monotonic time at which the last own frame was complete
    int64_t opened_ns = 0;       // monotonic time of FREE -> READY
    uint32_t listed_frames = 0;  // history + own frames: how many positions are listed
    uint32_t own_frames = 0;     // the last own_frames of them
    uint32_t first_channel = 0;
    uint32_t channel_count = 0;
    uint32_t blocks_in_group = 0;
    uint32_t index_in_group = 0;
    bool gap_before = false;  // the grid restarted, or frames were lost, before this group
    bool first_of_integration = false;  // the group holds the integration's first frame
    bool last_of_integration = false;   // ... and its last frame
    bool ends_stream = false;           // nothing follows it
};

// Counters that a worker keeps for all to read; written by the worker alone, relaxed: they inform,
// they decide nothing.
struct alignas(64) WorkerRecord {
    std::atomic<uint64_t> blocks{0};      // finished and accepted
    std::atomic<uint64_t> duplicates{0};  // results refused because the block had changed hands
    std::atomic<int64_t> busy_ns{0};      // wall time between claim and finish
    std::atomic<int64_t> cpu_ns{0};       // CPU time of the same stretches
    std::atomic<uint32_t> cpu{0};         // where the worker was bound, + 1; 0: not bound
    std::atomic<uint32_t> stage{0};       // WorkerStage, for `echellectl status`
    // Monotonic time at which the worker last looked for work; at least every 100 ms while it is
    // well.
    std::atomic<int64_t> looked_ns{0};
    // Written by the supervisor before the worker's life begins and to ask it to leave when it has
    // finished its block; read by the worker between blocks.
    std::atomic<uint32_t> leave{0};
};
enum class WorkerStage : uint32_t { starting = 0, waiting = 1, computing = 2, leaving = 3 };

struct LedgerShape {
    uint32_t capacity = 0;     // blocks that can be open at once
    uint32_t most_frames = 0;  // largest listed_frames
    uint32_t workers = 0;      // largest worker id + 1
    size_t result_bytes = 0;   // one block's result
};

// A block in the hands of a worker.
struct Claim {
    uint64_t number = 0;
    BlockWord word;  // as claimed
};

class Ledger {
  public:
    // Throws UsageError when memory does not suffice.
    explicit Ledger(const LedgerShape& shape);
    // The ledger that another process of this run made, from its memory's descriptor.
    Ledger(const LedgerShape& shape, FileDescriptor fd);

    int descriptor() const { return memory_.descriptor(); }

    const LedgerShape& shape() const { return shape_; }
    size_t bytes() const { return memory_.size(); }

    // ---- ingest
    bool has_room(uint32_t blocks) const;
    // FREE -> READY for the next block; returns its number. Precondition: has_room(1).
    uint64_t open(const BlockDescriptor& descriptor, std::span<const uint64_t> positions);
    // READY -> DROPPED; false when the block is no longer READY.
    bool drop(uint64_t number, DropReason reason);
    // No more blocks will be opened.
    void close();

    // ---- workers
    // READY -> CLAIMED for the oldest READY block; nothing when none is READY.
    std::optional<Claim> claim_oldest(uint16_t owner, uint16_t incarnation);
    // CLAIMED -> DONE; false when the block has changed hands meanwhile: the result is void.
    bool finish(const Claim& claim);

    // ---- supervisor
    struct Reclaimed {
        uint32_t requeued = 0;          // CLAIMED -> READY
        uint32_t failed = 0;            // CLAIMED -> FAILED: the third death on the block
        std::optional<uint64_t> block;  // one that was requeued (a worker holds one at a time)
    };
    // Takes back what the dead incarnation held. It must not be able to write any more.
    Reclaimed reclaim(uint16_t owner, uint16_t incarnation);
    // The last death on that block turned out to come from outside (somebody's SIGKILL), which says
    // nothing against the block: it counts no longer among the three, but among ten in all.
    void forgive_death(uint64_t number);
    static constexpr uint32_t deaths_until_failed = 3;
    static constexpr uint32_t kills_until_failed = 10;  // the kernel's OOM killer, for one

    // ---- collector
    // DONE, DROPPED or FAILED -> FREE, for the oldest open block only.
    void retire(uint64_t number);

    // ---- anybody
    uint64_t opened() const;       // blocks [0, opened()) have been opened
    uint64_t oldest_open() const;  // blocks [0, oldest_open()) have been retired
    bool closed() const;
    BlockWord word(uint64_t number) const;
    // Valid while the block is not FREE, for those who have seen a state after FREE.
    const BlockDescriptor& descriptor(uint64_t number) const;
    DropReason drop_reason(uint64_t number) const;               // in DROPPED
    std::span<const uint64_t> positions(uint64_t number) const;  // listed_frames ring positions
    std::span<std::byte> result(uint64_t number) const;          // result_bytes, 64-byte aligned
    WorkerRecord& worker(uint16_t id) const;

    // Words for futex waits: `work` counts up when blocks become READY, `results` when blocks
    // become DONE. A waiter reads the word, looks at the ledger, then waits for the word to change.
    std::atomic<uint32_t>& work_futex() const;
    std::atomic<uint32_t>& results_futex() const;
    // The block that the collector waits for: a worker that finishes another one need not wake it.
    // The collector stores the number, then looks at the ledger; a worker finishes a block, then
    // looks at the number: either one sees the other.
    void await_block(uint64_t number);
    bool is_awaited(uint64_t number) const;
    // A worker says that it looks for work, then looks; ingest opens blocks, then asks whether any
    // worker may be about to sleep: either one sees the other.
    void look_for_work(uint16_t worker);
    bool a_worker_waits() const;
    // The collector bumps it when blocks have been retired; ingest waits on it for room.
    std::atomic<uint32_t>& room_futex() const;
    // See SharedMemory::touch_pages.
    bool touch_pages(int64_t deadline_ns) const { return memory_.touch_pages(deadline_ns); }
    // Set once by the coordinator, before the first frame is taken: a worker that starts earlier
    // has time to prepare itself, a later one is wanted at once.
    void tell_begun();
    bool has_begun() const;
    // Set once by the coordinator: workers leave when they hold nothing.
    void ask_workers_to_leave();
    bool workers_should_leave() const;
    // While paused, workers finish what they have claimed and claim nothing.
    void set_paused(bool paused);
    bool paused() const;

  private:
    struct Header;
    struct Entry;
    size_t table_bytes() const;
    void lay_out(bool construct);
    Entry& entry(uint64_t number) const;
    std::atomic<uint64_t>& word_of(uint64_t number) const;
    uint32_t generation_of(uint64_t number) const;
    bool exchange(uint64_t number, BlockWord expected, BlockWord desired);

    LedgerShape shape_;
    SharedMemory memory_;
    Header* header_ = nullptr;
    std::atomic<uint64_t>* words_ = nullptr;  // dense, so that looking for READY reads little
    Entry* entries_ = nullptr;
    uint64_t* positions_ = nullptr;
    WorkerRecord* workers_ = nullptr;
    std::byte* results_ = nullptr;
    size_t result_stride_ = 0;
};

}  // namespace echelle
