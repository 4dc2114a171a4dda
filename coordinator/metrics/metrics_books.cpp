#include "coordinator/metrics/metrics_books.hpp"

#include <algorithm>

#include "common/clock.hpp"
#include "coordinator/sinks/feed.hpp"
#include "worker/welch_engine.hpp"

namespace echelle {
namespace {

double seconds_of(int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

std::vector<WorkerBooks> workers_of(const RunFacts& facts) {
    std::vector<WorkerBooks> workers;
    for (const WorkerStatus& status : facts.supervisor->status()) {
        const WorkerRecord& record = facts.ledger->worker(status.id);
        WorkerBooks worker;
        worker.status = status;
        worker.blocks = record.blocks.load(std::memory_order_relaxed);
        worker.duplicates = record.duplicates.load(std::memory_order_relaxed);
        worker.busy_s = seconds_of(record.busy_ns.load(std::memory_order_relaxed));
        if (const uint32_t bound = record.cpu.load(std::memory_order_relaxed); bound != 0) {
            worker.cpu = bound - 1;
        }
        workers.push_back(worker);
    }
    return workers;
}

DeathBooks deaths_of(const Supervisor& supervisor) {
    DeathBooks deaths;
    for (const Recovery& recovery : supervisor.recoveries()) {
        deaths.in_all += 1;
        deaths.requeued_s.push_back(recovery.requeued_us / 1e6);
        if (recovery.respawned_us > 0) {
            deaths.respawned_s.push_back(recovery.respawned_us / 1e6);
        }
        // The system tells the cause a moment after the death. Counted as unknown until then, that
        // count would fall again.
        if (recovery.cause != "unknown") {
            deaths.by_cause[kind_of_death(recovery.cause)] += 1;
        }
    }
    return deaths;
}

std::vector<std::pair<std::string, double>> threads_of(const RunFacts& facts) {
    std::vector<std::pair<std::string, double>> threads;
    int64_t others_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - facts.cpu_before_ns;
    for (const ThreadClock* thread : facts.threads) {
        const int64_t used_ns = thread->cpu_ns();
        others_ns -= used_ns;
        threads.emplace_back(thread->name(), seconds_of(used_ns));
    }
    threads.emplace_back("others", seconds_of(std::max<int64_t>(0, others_ns)));
    return threads;
}

void tell_what_runs(MetricsBooks& books, const RunFacts& facts) {
    const Options& options = *facts.options;
    const FrameGeometry& geometry = facts.stream.geometry;
    const WelchParameters& welch = options.welch;
    books.build = {{"version", ECHELLE_VERSION},
                   {"kernels", std::string(WelchEngine::kernel_target())},
                   {"fft_plan", facts.plans->description()},
                   {"fft_wisdom", std::string(name_of(facts.plans->wisdom()))}};
    books.run = {{"name", facts.instance_name},
                 {"source", facts.source_description},
                 {"format", std::string(name_of(geometry.format))},
                 {"layout", std::string(name_of(geometry.layout))},
                 {"notify", std::string(name_of(options.notify))},
                 {"on_overrun", facts.policy == OverrunPolicy::drop ? "drop" : "block"},
                 {"page_kind", std::string(name_of(facts.ring->page_kind()))}};
    books.welch = {
        {"nperseg", std::to_string(welch.nperseg)},
        {"noverlap", std::to_string(welch.noverlap)},
        {"window", welch.window.text()},
        {"detrend", std::string(name_of(welch.detrend))},
        {"scaling", std::string(name_of(welch.scaling))},
        {"average_mode", std::string(name_of(welch.average_mode))},
        {"average_frames",
         facts.frames_per_integration == 0 ? "all" : std::to_string(facts.frames_per_integration)}};
}

}  // namespace

std::string kind_of_death(const std::string& cause) {
    if (cause.starts_with("killed by signal")) {
        const size_t open = cause.find('(');
        const size_t close = cause.find(')');
        return open < close && close != std::string::npos ? cause.substr(open + 1, close - open - 1)
                                                          : "signal";
    }
    if (cause.starts_with("hung")) {
        return "hung";
    }
    return cause.starts_with("exit") ? "exit" : "other";
}

MetricsBooks take_metrics_books(const RunFacts& facts) {
    MetricsBooks books;
    const Supervisor& supervisor = *facts.supervisor;
    books.taken_ns = monotonic_ns();
    books.figures = figures_of(facts);
    books.threads_s = threads_of(facts);
    books.started_s = seconds_of(realtime_ns() - (monotonic_ns() - facts.started_ns));
    books.paused = facts.ledger->paused();
    books.workers = workers_of(facts);
    books.workers_wanted = supervisor.wanted();
    books.workers_alive = supervisor.alive();
    books.workers_most = facts.most_workers;
    books.deaths = deaths_of(supervisor);
    for (const ScalingDecision& decision : supervisor.scaling()) {
        (decision.to > decision.from ? books.scaled_up : books.scaled_down) += 1;
    }
    books.nursery_alive = supervisor.nursery_alive();
    books.nursery_restarts = supervisor.nursery_restarts();
    books.ring_frames = facts.ring->slot_count();
    books.ring_bytes = facts.ring->region_bytes();
    books.ledger_bytes = facts.ledger->bytes();
    books.worker_rss_max_bytes = facts.worker_rss_max_bytes;
    books.worker_private_max_bytes = facts.worker_private_max_bytes;
    books.budget_s = facts.options->budget_us / 1e6;
    books.geometry = facts.stream.geometry;
    books.rate_hz = facts.stream.rate.value();
    books.frame_s = facts.stream.frame_period_ns() / 1e9;
    if (facts.capture != nullptr) {
        books.capture = facts.capture->books();
    }
    if (facts.feed != nullptr) {
        books.feed = facts.feed->books();
    }
    books.source = facts.source->facts();
    books.log = log_books();
    tell_what_runs(books, facts);
    return books;
}

}  // namespace echelle
