// A worker: claims blocks, oldest first, computes their spectra into their result slots, and waits
// for a token when there is nothing to claim. One process, one thread (and ZeroMQ's IO thread).
//
// Forked by the nursery; everything in WorkerSetup is inherited memory, so nothing is sent to it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "common/stream.hpp"
#include "common/wakeup.hpp"
#include "common/welch_parameters.hpp"
#include "worker/fft_plans.hpp"

namespace echelle {

// What every worker of a run shares; made before the nursery is forked, outlives all workers.
struct WorkerSetup {
    const Ring* ring = nullptr;
    Ledger* ledger = nullptr;
    Stream stream;
    WelchParameters welch;
    const FftPlans* plans = nullptr;
    uint32_t most_channels = 0;  // of a block
    uint32_t most_frames = 0;    // listed in a block
    uint32_t most_values = 0;    // float32 values of one channel's packet
    NotifyKind notify = NotifyKind::zmq;
    WakeupEndpoints endpoints;
    int64_t touch_ns = 0;      // that a worker may take to touch its memory before the run begins
    int coordinator_end = -1;  // readable, or hung up, when the coordinator is gone
};

struct WorkerIdentity {
    uint16_t id = 0;
    uint16_t incarnation = 0;
    std::optional<unsigned int> cpu;  // to bind to
};

// Returns when the ledger asks workers to leave or the coordinator is gone. Throws what is fatal.
void run_worker(const WorkerSetup& setup, const WorkerIdentity& identity);

}  // namespace echelle
