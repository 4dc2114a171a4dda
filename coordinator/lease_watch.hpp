// Finds hung workers: a block that stays CLAIMED by the same life of the same worker for longer
// than the lease. It looks at the ledger's words from outside, so a worker that was stopped right
// after its claim is found as surely as one that loops. Main thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ledger.hpp"

namespace echelle {

// The lease follows the measured time of a block: 32 times its running mean, never under 250 ms (a
// busy machine keeps a healthy worker waiting that long) nor over a minute; ten seconds while
// nothing has been measured.
int64_t lease_for(double mean_block_ns);

class LeaseWatch {
  public:
    explicit LeaseWatch(const Ledger& ledger) : ledger_(ledger), seen_(ledger.shape().capacity) {}

    struct Overdue {
        uint64_t block = 0;
        uint16_t owner = 0;
        uint16_t incarnation = 0;
        int64_t held_ns = 0;
    };
    // Blocks whose claim is older than the lease at `now_ns`. The age counts from the first look
    // that saw the claim, so looks should be short against the lease.
    std::vector<Overdue> look(int64_t now_ns, int64_t lease_ns);
    // True when, at the last look, a READY block had found no taker for longer than the lease,
    // though workers are woken for it every few milliseconds: some of them must be hung.
    bool work_is_starving() const { return work_is_starving_; }
    // True when, at the last look, that life of that worker held a block.
    bool holds_a_block(uint16_t owner, uint16_t incarnation) const;

  private:
    struct Seen {
        uint64_t word = 0;
        int64_t since_ns = 0;
    };
    const Ledger& ledger_;
    std::vector<Seen> seen_;         // by entry of the ledger
    std::vector<BlockWord> claims_;  // at the last look
    bool work_is_starving_ = false;
};

}  // namespace echelle
