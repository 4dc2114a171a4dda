// The figures of one moment, as a scrape takes them away: a copy of what the report is made of, so
// that the scraper's thread can write them out while the run goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/log.hpp"
#include "coordinator/report.hpp"
#include "coordinator/sinks/feed_exchange.hpp"
#include "coordinator/supervisor.hpp"

namespace echelle {

struct WorkerBooks {
    WorkerStatus status;
    uint64_t blocks = 0;
    uint64_t duplicates = 0;
    double busy_s = 0;
    std::optional<uint32_t> cpu;  // that it is bound to
};

struct DeathBooks {
    uint64_t in_all = 0;
    // Those whose cause is known by now, by its kind: SIGKILL, …, exit, hung.
    std::map<std::string, uint64_t> by_cause;
    std::vector<double> requeued_s;   // from the detection on, of each
    std::vector<double> respawned_s;  // of those that have been
};

struct MetricsBooks {
    int64_t taken_ns = 0;  // monotonic

    RunFigures figures;
    std::vector<std::pair<std::string, double>> threads_s;  // CPU time of the coordinator
    double started_s = 0;                                   // Unix time
    bool paused = false;

    std::vector<WorkerBooks> workers;
    uint32_t workers_wanted = 0;
    uint32_t workers_alive = 0;
    uint32_t workers_most = 0;
    DeathBooks deaths;
    uint64_t scaled_up = 0;
    uint64_t scaled_down = 0;
    bool nursery_alive = false;
    uint64_t nursery_restarts = 0;

    uint64_t ring_frames = 0;
    uint64_t ring_bytes = 0;
    uint64_t ledger_bytes = 0;
    uint64_t worker_rss_max_bytes = 0;
    uint64_t worker_private_max_bytes = 0;
    double budget_s = 0;
    FrameGeometry geometry;
    double rate_hz = 0;
    double frame_s = 0;

    std::optional<CaptureBooks> capture;
    std::optional<FeedBooks> feed;
    nlohmann::json source;  // its facts; null: it has none
    LogBooks log;

    // What is told as labels of a metric that is always 1.
    std::vector<std::pair<std::string, std::string>> build;
    std::vector<std::pair<std::string, std::string>> run;
    std::vector<std::pair<std::string, std::string>> welch;
};

// Main thread only, as the report.
MetricsBooks take_metrics_books(const RunFacts& facts);

// "SIGKILL" of "killed by signal 9 (SIGKILL)", "hung" of "hung: held block …", "exit" of "exit code
// 1", else "other".
std::string kind_of_death(const std::string& cause);

}  // namespace echelle
