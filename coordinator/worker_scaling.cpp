#include "coordinator/worker_scaling.hpp"

#include <algorithm>

#include "common/clock.hpp"

namespace echelle {

WorkerScaling::WorkerScaling(WorkerRange range, const Ring& ring, const Ledger& ledger,
                             Supervisor& supervisor)
    : autoscaler_(range.least, range.most),
      is_on_(range.scales_itself()),
      ring_(ring),
      ledger_(ledger),
      supervisor_(supervisor),
      looked_ns_(monotonic_ns()) {}

// Frames that are in the ring and still needed, as a share of it.
double WorkerScaling::backlog() const {
    const uint64_t head = ring_.head();
    const uint64_t tail = ring_.header().tail.load(std::memory_order_relaxed);
    return std::min(1.0, static_cast<double>(head - std::min(head, tail)) /
                             static_cast<double>(ring_.slot_count()));
}

int64_t WorkerScaling::busy_ns() const {
    int64_t busy = 0;
    for (uint32_t id = 0; id < ledger_.shape().workers; ++id) {
        busy += ledger_.worker(static_cast<uint16_t>(id)).busy_ns.load(std::memory_order_relaxed);
    }
    return busy;
}

void WorkerScaling::update() {
    const int64_t now_ns = monotonic_ns();
    const int64_t interval_ns = now_ns - looked_ns_;
    if (!is_on_ || static_cast<double>(interval_ns) < Autoscaler::interval_s * 1e9 ||
        ledger_.paused()) {
        return;
    }
    looked_ns_ = now_ns;
    const int64_t busy = busy_ns();
    const uint32_t workers = supervisor_.wanted();
    Autoscaler::Look look;
    look.workers = workers;
    look.backlog = backlog();
    look.busy = static_cast<double>(busy - busy_before_ns_) /
                (static_cast<double>(interval_ns) * std::max(1U, workers));
    busy_before_ns_ = busy;
    if (const auto decision = autoscaler_.look(look)) {
        supervisor_.scale(decision->workers, decision->reason);
    }
}

}  // namespace echelle
