// The books of a run: every frame that came in is done, dropped for one named reason, or in flight,
// at every instant; the same for blocks. Kept by ingest and collector, read by control and report;
// one mutex guards all of it (a few thousand short calls a second).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "coordinator/latency_histogram.hpp"

namespace echelle {

enum class FrameDrop : uint32_t {
    lost_by_source,   // the source's own count jumped: they never reached the ring
    repeated,         // the source gave a frame twice; counted once, not used again
    out_of_order,     // a frame older than one before it
    malformed,        // a stamp that cannot be
    overrun,          // overwritten, or about to be, before a worker claimed it
    overwritten,      // overwritten while a worker computed on it
    worker_failures,  // three workers died on one of its blocks
    crc_error,        // a result whose checksum was wrong
    paused,           // overrun while the operator had paused the workers
    stopped,          // the run was aborted (second signal, or a failure) before it was done
};
inline constexpr size_t frame_drop_reasons = 10;
std::string_view name_of(FrameDrop reason);

struct FrameBooks {
    uint64_t in = 0;
    uint64_t done = 0;
    uint64_t in_flight = 0;
    std::array<uint64_t, frame_drop_reasons> dropped{};

    uint64_t dropped_in_all() const;
    bool close() const { return in == done + dropped_in_all() + in_flight; }
};

struct BlockBooks {
    uint64_t made = 0;
    uint64_t done = 0;
    uint64_t dropped = 0;
    uint64_t failed = 0;
    uint64_t in_flight = 0;
    uint64_t requeued = 0;

    bool close() const { return made == done + dropped + failed + in_flight; }
};

struct SpectraBooks {
    uint64_t out = 0;
    uint64_t incomplete = 0;  // of those, with fewer segments than expected
    uint64_t empty = 0;       // integrations of a channel without any segment: no spectrum
    uint64_t crc_errors = 0;
};

// Where a block's time goes between its last frame and its spectra. Monotonic ns, in this order.
struct BlockTimes {
    int64_t complete = 0;   // its last frame was complete in the ring
    int64_t ready = 0;      // ingest had written it into the ledger
    int64_t claimed = 0;    // a worker had it
    int64_t computed = 0;   // its result was written
    int64_t noticed = 0;    // the collector was awake
    int64_t collected = 0;  // checked, merged and retired
};

// One histogram for each step from one of those times to the next.
struct HopHistograms {
    LatencyHistogram complete_to_ready;
    LatencyHistogram ready_to_claimed;
    LatencyHistogram claimed_to_computed;
    LatencyHistogram computed_to_noticed;
    LatencyHistogram noticed_to_collected;

    void add(const BlockTimes& times);
};

class Accounts {
  public:
    struct Snapshot {
        FrameBooks frames;
        BlockBooks blocks;
        SpectraBooks spectra;
        LatencyHistogram latency;
        HopHistograms hops;        // of the blocks that are done
        uint64_t over_budget = 0;  // frames whose work took longer than the budget
        int64_t first_frame_ns = 0;
        int64_t last_done_ns = 0;
        double work_ns = 0;        // wall time inside blocks, summed over workers
        double cpu_ns = 0;         // worker CPU time inside blocks
        double mean_block_ns = 0;  // running mean of a block's time from claim to finish
    };

    // ---- ingest
    void frame_came_in(int64_t now_ns);              // now in flight
    void frames_lost(FrameDrop reason, uint64_t n);  // in and dropped at once
    void frame_refused(FrameDrop reason);            // in flight before, dropped now
    void blocks_made(uint64_t n);

    // ---- collector
    void block_done(const BlockTimes& times);
    void block_dropped();
    void block_failed();
    struct GroupWork {
        int64_t latency_ns = 0;    // last frame complete -> collected
        double work_ns = 0;        // wall time in its blocks
        double cpu_ns = 0;         // CPU time in its blocks
        double frame_work_ns = 0;  // time that one frame kept the cluster busy
    };
    void group_done(uint64_t frames, const GroupWork& work, double budget_ns);
    void group_dropped(uint64_t frames, FrameDrop reason);
    void set_spectra(const SpectraBooks& spectra);

    // ---- supervisor
    void blocks_requeued(uint64_t n);
    double mean_block_ns() const;

    // ---- the end of an aborted run: what is in flight becomes dropped as `stopped`
    void abort_in_flight();

    Snapshot snapshot() const;
    FrameBooks frames() const;
    int64_t first_frame_ns() const;  // monotonic; 0: none has come in yet

  private:
    mutable std::mutex mutex_;  // guards now_
    Snapshot now_;
};

}  // namespace echelle
