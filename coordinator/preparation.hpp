// What a run is made of before it has a second thread or process: source, plans, ring, ledger and
// the instance's lock, in the order in which they are made. Everything a worker needs is here,
// since the nursery inherits it by fork.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/instance.hpp"
#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "common/topology.hpp"
#include "coordinator/block_plan.hpp"
#include "coordinator/life_line.hpp"
#include "coordinator/options.hpp"
#include "coordinator/sources/source.hpp"
#include "worker/fft_plans.hpp"
#include "worker/worker_loop.hpp"

namespace echelle {

// A source in real time has no time for the first touch of each page (7 us where a hypervisor keeps
// a table of its own): for this long at most, times CPUs / workers, it is done before.
constexpr int64_t touch_at_start_ns = 1'000'000'000;

struct Preparation {
    explicit Preparation(const Options& given) : options(given) {}
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;
    ~Preparation();  // removes the instance's files

    // How many CPUs workers may use.
    uint32_t cpus_for_workers() const;
    // The CPUs as they are now (they may have changed since the start), in the order in which
    // workers take them: the ring's node first.
    std::vector<Cpu> read_worker_cpus() const;

    const Options& options;
    std::unique_ptr<Source> source;
    std::optional<Ring> ring;
    bool ring_is_outside = false;  // an outside producer's, not ours
    Stream stream;
    OverrunPolicy policy = OverrunPolicy::drop;
    uint64_t frames_per_integration = 0;
    std::vector<Cpu> usable_cpus;
    std::vector<Cpu> worker_cpus;           // empty: workers are not bound
    std::optional<unsigned int> ring_node;  // where the ring's memory is, when the system tells
    WorkerRange workers;
    BlockPlan plan;
    std::optional<FftPlans> plans;
    double planning_s = 0;  // what making them took
    std::optional<Ledger> ledger;
    std::optional<Instance> instance;
    LifeLine life_line;
    WorkerSetup setup;
};

// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD in this process before it takes the instance's name,
// so that nothing is left behind if one comes; the conductor reads them from a signalfd. Throws
// UsageError and RunError.
std::unique_ptr<Preparation> prepare(const Options& options);

// Warns of what this machine does not give: one line each, and it works all the same. For a run
// that begins: one that is refused has one line to say.
void tell_what_is_missing(const Preparation& run);

}  // namespace echelle
