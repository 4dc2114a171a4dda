// Ingest: watches the ring, cuts its frames into groups, opens their blocks in the ledger and wakes
// workers. For live sources it also drops the oldest READY blocks when workers fall behind, and it
// wakes workers again when the oldest READY block grows old, since tokens may be lost.
//
// One thread of the coordinator. It ends when the ring has ended (or the run was told to stop, for
// the ring of an outside producer) and every frame in it is in a group; it then closes the ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "common/wakeup.hpp"
#include "coordinator/accounts.hpp"
#include "coordinator/block_plan.hpp"
#include "coordinator/group_builder.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

class Ingest {
  public:
    struct Setup {
        Ring* ring = nullptr;
        Ledger* ledger = nullptr;
        const BlockPlan* plan = nullptr;
        Accounts* accounts = nullptr;
        uint32_t channels = 0;
        uint64_t frames_per_integration = 0;
        OverrunPolicy policy = OverrunPolicy::drop;
        uint64_t first_position = 0;
        std::optional<uint64_t> most_frames;             // --frames: the stream ends after so many
        const std::atomic<bool>* stop = nullptr;         // take what is in the ring, then end
        const std::atomic<bool>* abort = nullptr;        // end now
        const std::atomic<uint32_t>* workers = nullptr;  // how many there are to wake
    };
    explicit Ingest(const Setup& setup);

    // The thread's body.
    void run(TokenSender& tokens);

    // Oldest ring position that groups not yet opened may need. Stored (release) after each opened
    // group; for the collector.
    const std::atomic<uint64_t>& first_position_needed() const { return needed_; }
    // Ring positions before it have been taken, or passed over. Stored (release) after each; for
    // who reads the same frames beside us.
    const std::atomic<uint64_t>& taken_before() const { return taken_before_; }
    // Set when an outside producer vanished without ending its ring. Read after the thread's end.
    bool producer_vanished() const { return producer_vanished_; }
    // The next READY blocks were put there by a reclaim: wake workers soon. Any thread.
    void wake_workers_soon() { wake_soon_.store(true, std::memory_order_relaxed); }

  private:
    bool stream_has_ended();
    void take_frames();
    void take_frame(uint64_t position);
    void skip_overwritten();
    void open_groups();
    void open_group(const Group& group);
    void shed_load();
    uint64_t oldest_unclaimed() const;
    void drop_blocks_before(uint64_t position);
    void drop_waiting_groups_before(uint64_t position);
    void wake_for_old_blocks(TokenSender& tokens);
    void publish_needed();

    Setup setup_;
    GroupBuilder builder_;
    std::vector<Group> finished_;  // scratch
    std::deque<Group> waiting_;    // groups for which the ledger has had no room
    // Shedding load. Workers claim the oldest block: when all that is old is about to be
    // overwritten they race the producer and finish nothing. So once the oldest unclaimed frames
    // have grown older than shed_age_, everything unclaimed that is older than keep_age_ is dropped
    // at once; what is left, workers have the time to finish. In frames; a quarter of the ring is
    // left to those who have claimed.
    uint64_t shed_age_;
    uint64_t keep_age_;
    uint64_t next_ = 0;   // ring position to be taken next
    uint64_t taken_ = 0;  // frames accepted so far
    uint64_t group_number_ = 0;
    uint32_t opened_since_tokens_ = 0;
    int64_t last_tokens_ns_ = 0;
    int64_t producer_checked_ns_ = 0;
    bool gap_before_next_group_ = false;  // of groups dropped before they were opened
    uint64_t segments_lost_before_next_group_ = 0;
    bool producer_vanished_ = false;
    std::atomic<uint64_t> needed_{0};
    std::atomic<uint64_t> taken_before_{0};
    std::atomic<bool> wake_soon_{false};
};

}  // namespace echelle
