// The collector: takes results in block order, keeps the books, frees blocks and ring, and feeds
// the integrator. One thread of the coordinator; ends when every block of a closed ledger is
// retired, or when told to abort.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "common/wakeup.hpp"
#include "coordinator/accounts.hpp"
#include "coordinator/block_plan.hpp"
#include "coordinator/integrator.hpp"

namespace echelle {

// The block whose end the collector waits for. Collector's thread.
uint64_t block_to_wait_for(const Ledger& ledger, uint32_t blocks_per_group);

class Collector {
  public:
    struct Setup {
        Ring* ring = nullptr;
        Ledger* ledger = nullptr;
        const BlockPlan* plan = nullptr;
        Accounts* accounts = nullptr;
        Integrator* integrator = nullptr;
        // Oldest ring position that ingest may still need for groups not yet opened; ingest stores
        // it (release) after it has opened a group.
        const std::atomic<uint64_t>* needed_by_ingest = nullptr;
        const std::atomic<bool>* abort = nullptr;
        double budget_ns = 100'000;
        const std::atomic<uint32_t>* workers = nullptr;  // alive now
        uint32_t cpus = 1;                               // that workers may use
    };
    explicit Collector(const Setup& setup);

    // The thread's body. Throws RunError (a sink failed).
    void run(NoticeReceiver& notices);

  private:
    uint32_t collect_what_is_done();
    bool collect(uint64_t number);
    BlockTimes times_of(const BlockDescriptor& block, const BlockResultHeader& result) const;
    void finish_group(const BlockDescriptor& block);
    void release_frames();

    Setup setup_;
    int64_t awake_ns_ = 0;  // when it last began to look at the ledger
    // The group whose blocks are being collected.
    bool group_lost_ = false;
    FrameDrop group_reason_ = FrameDrop::overrun;
    Accounts::GroupWork group_work_;
};

}  // namespace echelle
