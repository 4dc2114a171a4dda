// The report: what --report writes at the end and `echellectl --json status` answers while it runs.
// Keys are a contract with scripts (docs/operations.md describes each).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/ledger.hpp"
#include "common/ring.hpp"
#include "coordinator/accounts.hpp"
#include "coordinator/block_plan.hpp"
#include "coordinator/capture/frame_capture.hpp"
#include "coordinator/options.hpp"
#include "coordinator/sources/source.hpp"
#include "coordinator/supervisor.hpp"
#include "coordinator/thread_clock.hpp"
#include "worker/fft_plans.hpp"

namespace echelle {

class Feed;

// Everything that a report is made of; made by run(), outlives the reports. Main thread only.
struct RunFacts {
    const Options* options = nullptr;
    Stream stream;
    const Source* source = nullptr;
    std::string source_description;
    OverrunPolicy policy = OverrunPolicy::drop;
    uint64_t frames_per_integration = 0;
    uint32_t most_workers = 0;
    uint32_t cpus = 0;  // that workers may use
    const BlockPlan* plan = nullptr;
    const FftPlans* plans = nullptr;
    double planning_s = 0;
    const Ring* ring = nullptr;
    const Ledger* ledger = nullptr;
    const Accounts* accounts = nullptr;
    const Supervisor* supervisor = nullptr;
    std::vector<const ThreadClock*> threads;  // the coordinator's, but for the main thread
    const FrameCapture* capture = nullptr;    // null: none was asked for
    const Feed* feed = nullptr;               // null: without one
    std::string metrics_address;              // empty: no metrics are served
    std::string instance_name;
    int64_t started_ns = 0;     // monotonic, when the source was started
    int64_t ended_ns = 0;       // 0 while it runs
    int64_t cpu_before_ns = 0;  // CPU time of this process when the source was started
    uint64_t worker_rss_max_bytes = 0;
    uint64_t worker_private_max_bytes = 0;
    std::string failure;  // why the run failed, empty otherwise
};

// Figures that the report, the progress line and the final table have in common.
struct RunFigures {
    Accounts::Snapshot books;
    double wall_s = 0;
    double period_us = 0;        // wall time per frame done, from the first frame in
    double core_us = 0;          // worker CPU time per frame done
    double realtime_factor = 0;  // stream time done / wall time
    double over_fraction = 0;    // of the frames done
    double ring_fill = 0;        // frames in the ring that are still needed / its length
};
RunFigures figures_of(const RunFacts& facts);

nlohmann::ordered_json make_report(const RunFacts& facts);
// The figures alone, as the feed tells them once a second.
nlohmann::ordered_json make_figures(const RunFacts& facts);
// Throws UsageError unless a file can be made beside `path`: to be told before the run, not after.
void check_report_path(const std::string& path);
// Replaces the file atomically. Throws RunError.
void write_report(const RunFacts& facts, const std::string& path);
// The table that ends a run on standard output.
std::string final_table(const RunFacts& facts);

// Memory of a process besides the ring and ledger; zeros when unknown.
struct ProcessMemory {
    uint64_t private_bytes = 0;   // anonymous pages: its very own
    uint64_t unshared_bytes = 0;  // those and the pages of programs and libraries
};
ProcessMemory memory_of(pid_t pid);

}  // namespace echelle
