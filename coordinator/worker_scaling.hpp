// Lets a run scale itself between --workers MIN..MAX: shows the autoscaler what workers and ring do
// and has the supervisor carry out what it decides. Main thread only.
#pragma once

#include <cstdint>
#include <functional>

#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "coordinator/autoscaler.hpp"
#include "coordinator/options.hpp"
#include "coordinator/supervisor.hpp"

namespace echelle {

class WorkerScaling {
  public:
    WorkerScaling(WorkerRange range, const Ring& ring, const Ledger& ledger,
                  Supervisor& supervisor);
    // To be called often; looks every Autoscaler::interval_s.
    void update();

  private:
    double backlog() const;
    int64_t busy_ns() const;

    Autoscaler autoscaler_;
    bool is_on_;
    const Ring& ring_;
    const Ledger& ledger_;
    Supervisor& supervisor_;
    int64_t looked_ns_;
    int64_t busy_before_ns_ = 0;
};

}  // namespace echelle
