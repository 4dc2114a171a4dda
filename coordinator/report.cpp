#include "coordinator/report.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/sinks/feed.hpp"
#include "worker/welch_engine.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json optional_or_auto(const std::optional<T>& value) {
    return value ? Json(*value) : Json("auto");
}

std::string average_text(const Average& average) {
    switch (average.kind) {
        case Average::Kind::all:
            return "all";
        case Average::Kind::frames:
            return std::to_string(average.frames);
        case Average::Kind::seconds:
            break;
    }
    std::ostringstream text;
    text << average.seconds << "s";
    return text.str();
}

Json config_of(const RunFacts& facts) {
    const Options& options = *facts.options;
    const FrameGeometry& geometry = facts.stream.geometry;
    const WelchParameters& welch = options.welch;
    Json config;
    config["source"] = options.source;
    config["source_description"] = facts.source_description;
    config["channels"] = geometry.channels;
    config["samples"] = geometry.samples;
    config["rate"] = facts.stream.rate.text();
    config["rate_hz"] = facts.stream.rate.value();
    config["format"] = name_of(geometry.format);
    config["layout"] = name_of(geometry.layout);
    config["workers"] = facts.supervisor->wanted();
    config["workers_most"] = facts.most_workers;
    config["nperseg"] = welch.nperseg;
    config["noverlap"] = welch.noverlap;
    config["window"] = welch.window.text();
    config["detrend"] = name_of(welch.detrend);
    config["scaling"] = name_of(welch.scaling);
    config["average"] = average_text(options.average);
    config["average_frames"] =
        facts.frames_per_integration == 0 ? Json("all") : Json(facts.frames_per_integration);
    config["average_seconds"] = facts.frames_per_integration == 0
                                    ? Json("all")
                                    : Json(static_cast<double>(facts.frames_per_integration) *
                                           facts.stream.frame_period_ns() / 1e9);
    config["average_mode"] = name_of(welch.average_mode);
    config["pair_channels"] = welch.pair_channels ? "on" : "off";
    config["volts_per_count"] = welch.volts_per_count;
    config["block_channels"] = facts.plan->block_channels;
    config["block_frames"] = facts.plan->group_frames;
    config["block_reason"] = facts.plan->reason;
    config["ring_frames"] = facts.plan->ring_frames;
    config["on_overrun"] = facts.policy == OverrunPolicy::drop ? "drop" : "block";
    config["pin"] = options.pin;
    config["record"] = options.record;
    config["name"] = facts.instance_name;
    config["version"] = ECHELLE_VERSION;
    return config;
}

Json frames_of(const FrameBooks& frames) {
    Json dropped = Json::object();
    for (size_t i = 0; i < frame_drop_reasons; ++i) {
        if (frames.dropped[i] > 0) {
            dropped[std::string(name_of(static_cast<FrameDrop>(i)))] = frames.dropped[i];
        }
    }
    return {{"in", frames.in},
            {"done", frames.done},
            {"dropped", dropped},
            {"in_flight", frames.in_flight}};
}

Json workers_of(const RunFacts& facts) {
    Json workers = Json::array();
    for (const WorkerStatus& status : facts.supervisor->status()) {
        const WorkerRecord& record = facts.ledger->worker(status.id);
        const uint32_t bound = record.cpu.load(std::memory_order_relaxed);
        Json worker;
        worker["id"] = status.id;
        worker["cpu"] = bound == 0 ? Json(nullptr) : Json(bound - 1);
        worker["node"] = status.wanted_cpu ? Json(status.wanted_cpu->node) : Json(nullptr);
        worker["pid"] = status.pid;
        worker["state"] = name_of(status.state);
        worker["incarnations"] = status.incarnations;
        worker["blocks"] = record.blocks.load(std::memory_order_relaxed);
        worker["busy_s"] =
            static_cast<double>(record.busy_ns.load(std::memory_order_relaxed)) / 1e9;
        workers.push_back(worker);
    }
    return workers;
}

// CPU time of the coordinator per frame done, by thread. `others` are the main thread and ZeroMQ's.
Json coordinator_us(const RunFacts& facts, uint64_t frames_done) {
    const double frames = std::max(1.0, static_cast<double>(frames_done));
    int64_t others_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - facts.cpu_before_ns;
    Json threads;
    for (const ThreadClock* thread : facts.threads) {
        const int64_t used_ns = thread->cpu_ns();
        others_ns -= used_ns;
        threads[thread->name()] = static_cast<double>(used_ns) / 1000.0 / frames;
    }
    threads["others"] = static_cast<double>(std::max<int64_t>(0, others_ns)) / 1000.0 / frames;
    return threads;
}

Json recoveries_of(const RunFacts& facts) {
    Json recoveries = Json::array();
    for (const Recovery& recovery : facts.supervisor->recoveries()) {
        recoveries.push_back({{"worker", recovery.worker},
                              {"pid", recovery.pid},
                              {"cause", recovery.cause},
                              {"detected_us", recovery.detected_us},
                              {"requeued_us", recovery.requeued_us},
                              {"respawned_us", recovery.respawned_us},
                              {"blocks", recovery.blocks_requeued}});
    }
    return recoveries;
}

uint64_t duplicates_of(const RunFacts& facts) {
    uint64_t duplicates = 0;
    for (uint32_t id = 0; id < facts.ledger->shape().workers; ++id) {
        duplicates += facts.ledger->worker(static_cast<uint16_t>(id))
                          .duplicates.load(std::memory_order_relaxed);
    }
    return duplicates;
}

Json scaling_of(const RunFacts& facts) {
    Json scaling = Json::array();
    for (const ScalingDecision& decision : facts.supervisor->scaling()) {
        scaling.push_back({{"at_s", decision.at_s},
                           {"from", decision.from},
                           {"to", decision.to},
                           {"reason", decision.reason}});
    }
    return scaling;
}

Json blocks_of(const RunFacts& facts, const BlockBooks& blocks) {
    return {{"made", blocks.made},          {"done", blocks.done},
            {"requeued", blocks.requeued},  {"duplicates", duplicates_of(facts)},
            {"failed", blocks.failed},      {"dropped", blocks.dropped},
            {"in_flight", blocks.in_flight}};
}

Json capture_of(const RunFacts& facts) {
    const CaptureBooks books = facts.capture->books();
    const CaptureLosses& lost = books.lost;
    return {{"directory", facts.options->capture->directory},
            {"state", books.capturing ? "capturing" : "idle"},
            {"frames",
             {{"in", books.in},
              {"written", books.written},
              {"lost",
               {{"overwritten", lost.overwritten},
                {"write_failed", lost.write_failed},
                {"repeated", lost.repeated},
                {"out_of_order", lost.out_of_order},
                {"malformed", lost.malformed},
                {"stopped", lost.stopped}}},
              {"in_flight", books.in_flight}}},
            {"bytes", books.bytes},
            {"files", books.files},
            {"segments", books.segments},
            {"last_file", books.last_file},
            {"problem", books.problem.empty() ? Json(nullptr) : Json(books.problem)}};
}

}  // namespace

ProcessMemory memory_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    ProcessMemory memory;
    for (std::string line; std::getline(file, line);) {
        uint64_t kib = 0;
        if (std::sscanf(line.c_str(), "RssAnon: %lu kB", &kib) == 1) {
            memory.private_bytes += kib * 1024;
            memory.unshared_bytes += kib * 1024;
        } else if (std::sscanf(line.c_str(), "RssFile: %lu kB", &kib) == 1) {
            memory.unshared_bytes += kib * 1024;
        }
    }
    return memory;
}

RunFigures figures_of(const RunFacts& facts) {
    RunFigures figures;
    figures.books = facts.accounts->snapshot();
    const FrameBooks& frames = figures.books.frames;
    const int64_t end_ns = facts.ended_ns != 0 ? facts.ended_ns : monotonic_ns();
    // From the first frame on: a simulator fills its ring before that.
    const int64_t first_ns = figures.books.first_frame_ns;
    figures.wall_s = first_ns != 0 ? static_cast<double>(end_ns - first_ns) / 1e9 : 0.0;
    if (frames.done > 0) {
        const auto done = static_cast<double>(frames.done);
        // The first frame's own duration belongs to the stretch in which they all came in, where
        // the source took as long.
        const double busy_ns =
            static_cast<double>(figures.books.last_done_ns - first_ns) +
            (facts.policy == OverrunPolicy::drop ? facts.stream.frame_period_ns() : 0.0);
        figures.period_us = busy_ns / done / 1000.0;
        figures.core_us = figures.books.cpu_ns / done / 1000.0;
        figures.realtime_factor = facts.stream.frame_period_ns() * done / std::max(busy_ns, 1.0);
        figures.over_fraction = static_cast<double>(figures.books.over_budget) / done;
    }
    const uint64_t head = facts.ring->head();
    const uint64_t tail = facts.ring->header().tail.load(std::memory_order_relaxed);
    figures.ring_fill = std::min(1.0, static_cast<double>(head - std::min(head, tail)) /
                                          static_cast<double>(facts.ring->slot_count()));
    return figures;
}

namespace {

Json percentiles_of(const LatencyHistogram& histogram) {
    return {{"p50", histogram.percentile_us(0.5)},
            {"p90", histogram.percentile_us(0.9)},
            {"p99", histogram.percentile_us(0.99)},
            {"p999", histogram.percentile_us(0.999)},
            {"max", histogram.max_us()}};
}

Json hops_of(const HopHistograms& hops) {
    return {{"complete_to_ready", percentiles_of(hops.complete_to_ready)},
            {"ready_to_claimed", percentiles_of(hops.ready_to_claimed)},
            {"claimed_to_computed", percentiles_of(hops.claimed_to_computed)},
            {"computed_to_noticed", percentiles_of(hops.computed_to_noticed)},
            {"noticed_to_collected", percentiles_of(hops.noticed_to_collected)}};
}

Json spectra_of(const SpectraBooks& spectra) {
    return {{"out", spectra.out},
            {"incomplete", spectra.incomplete},
            {"empty", spectra.empty},
            {"crc_errors", spectra.crc_errors}};
}

Json frame_us_of(const RunFacts& facts, const RunFigures& figures) {
    return {{"period", figures.period_us},
            {"core", figures.core_us},
            {"coordinator", coordinator_us(facts, figures.books.frames.done)},
            {"latency", percentiles_of(figures.books.latency)}};
}

Json feed_of(const Feed* feed) {
    if (feed == nullptr) {
        return nullptr;
    }
    const FeedBooks books = feed->books();
    return {{"subscribers", books.subscribers},
            {"subscribers_most", books.subscribers_most},
            {"subscriptions", books.subscriptions},
            {"published", books.published},
            {"missed", books.missed},
            {"queue_full", books.queue_full},
            {"events_lost", books.events_lost},
            {"refused", books.refused}};
}

}  // namespace

Json make_figures(const RunFacts& facts) {
    const RunFigures figures = figures_of(facts);
    return {{"wall_s", figures.wall_s},
            {"frames", frames_of(figures.books.frames)},
            {"blocks", blocks_of(facts, figures.books.blocks)},
            {"spectra", spectra_of(figures.books.spectra)},
            {"frame_us", frame_us_of(facts, figures)},
            {"realtime_factor", figures.realtime_factor},
            {"ring_fill", figures.ring_fill},
            {"workers", facts.supervisor->alive()},
            {"feed", feed_of(facts.feed)}};
}

Json make_report(const RunFacts& facts) {
    const RunFigures figures = figures_of(facts);
    const Accounts::Snapshot& books = figures.books;
    Json report;
    report["config"] = config_of(facts);
    report["started_monotonic_us"] = static_cast<double>(facts.supervisor->started_ns()) / 1000.0;
    report["wall_s"] = figures.wall_s;
    if (const nlohmann::json source = facts.source->facts(); !source.is_null()) {
        report[facts.source->facts_name()] = source;
    }
    report["frames"] = frames_of(books.frames);
    report["blocks"] = blocks_of(facts, books.blocks);
    report["spectra"] = spectra_of(books.spectra);
    report["frame_us"] = frame_us_of(facts, figures);
    report["hops_us"] = hops_of(books.hops);
    report["realtime_factor"] = figures.realtime_factor;
    report["ring_fill"] = figures.ring_fill;
    report["budget"] = {{"us", facts.options->budget_us},
                        {"over", books.over_budget},
                        {"over_fraction", figures.over_fraction}};
    if (facts.capture != nullptr) {
        report["capture"] = capture_of(facts);
    }
    report["workers"] = workers_of(facts);
    report["recoveries"] = recoveries_of(facts);
    report["scaling"] = scaling_of(facts);
    report["paused"] = facts.ledger->paused();
    report["memory"] = {{"ring_bytes", facts.ring->region_bytes()},
                        {"page_kind", name_of(facts.ring->page_kind())},
                        {"ledger_bytes", facts.ledger->bytes()},
                        {"coordinator_rss_bytes", memory_of(getpid()).unshared_bytes},
                        {"worker_rss_max_bytes", facts.worker_rss_max_bytes},
                        {"worker_private_max_bytes", facts.worker_private_max_bytes}};
    report["notify"] = name_of(facts.options->notify);
    report["fft"] = {{"plan", facts.plans->description()},
                     {"wisdom", name_of(facts.plans->wisdom())},
                     {"planning_ms", facts.planning_s * 1000.0},
                     {"kernels", WelchEngine::kernel_target()}};
    report["nursery"] = {{"alive", facts.supervisor->nursery_alive()},
                         {"restarts", facts.supervisor->nursery_restarts()}};
    report["feed"] = feed_of(facts.feed);
    report["metrics"] =
        facts.metrics_address.empty() ? Json(nullptr) : Json{{"address", facts.metrics_address}};
    report["failure"] = facts.failure.empty() ? Json(nullptr) : Json(facts.failure);
    return report;
}

void check_report_path(const std::string& path) {
    std::error_code ignored;  // what cannot be looked at cannot be written either
    if (std::filesystem::is_directory(path, ignored)) {
        throw UsageError("cannot write the report " + path + ": it is a directory; name a file");
    }
    const std::string temporary = path + ".part-" + std::to_string(getpid());
    if (!std::ofstream(temporary)) {
        throw UsageError("cannot write the report " + path + ": " + errno_text() +
                         "; name a file in a directory that you can write");
    }
    unlink(temporary.c_str());
}

void write_report(const RunFacts& facts, const std::string& path) {
    const std::string temporary = path + ".part-" + std::to_string(getpid());
    {
        std::ofstream file(temporary);
        file << make_report(facts).dump(2) << "\n";
        file.flush();
        if (!file) {
            unlink(temporary.c_str());
            throw RunError("cannot write the report " + path + ": " + errno_text());
        }
    }
    if (rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        unlink(temporary.c_str());
        throw RunError("cannot write the report " + path + ": " + errno_text(error));
    }
}

namespace {

void add_row(std::string& table, const char* name, const char* format, auto... values) {
    char value[160];
    std::snprintf(value, sizeof value, format, values...);
    char row[240];
    std::snprintf(row, sizeof row, "  %-18s %s\n", name, value);
    table += row;
}

std::string dropped_text(const FrameBooks& frames) {
    std::string text = std::to_string(frames.dropped_in_all());
    for (size_t i = 0; i < frame_drop_reasons; ++i) {
        if (frames.dropped[i] > 0) {
            text += std::string(text.find('(') == std::string::npos ? " (" : ", ") +
                    std::string(name_of(static_cast<FrameDrop>(i))) + " " +
                    std::to_string(frames.dropped[i]);
        }
    }
    return text + (text.find('(') == std::string::npos ? "" : ")");
}

}  // namespace

std::string final_table(const RunFacts& facts) {
    const RunFigures figures = figures_of(facts);
    const Accounts::Snapshot& books = figures.books;
    const FrameGeometry& geometry = facts.stream.geometry;
    const double budget_us = facts.options->budget_us;
    std::string table = "echelle: " + std::to_string(geometry.channels) + " channels x " +
                        std::to_string(geometry.samples) + " samples, " +
                        std::to_string(facts.supervisor->wanted()) +
                        (facts.supervisor->wanted() == 1 ? " worker, " : " workers, ") +
                        facts.source_description + "\n";
    add_row(table, "frames in", "%lu", books.frames.in);
    add_row(table, "frames done", "%lu", books.frames.done);
    add_row(table, "frames dropped", "%s", dropped_text(books.frames).c_str());
    add_row(table, "frames in flight", "%lu", books.frames.in_flight);
    add_row(table, "spectra", "%lu (%lu incomplete)", books.spectra.out, books.spectra.incomplete);
    if (facts.capture != nullptr) {
        const CaptureBooks capture = facts.capture->books();
        add_row(table, "capture", "%lu frames in %lu file%s, %lu lost", capture.written,
                capture.files, capture.files == 1 ? "" : "s", capture.lost.in_all());
    }
    add_row(table, "wall time", "%.3f s", figures.wall_s);
    add_row(table, "period", "%.1f us per frame", figures.period_us);
    add_row(table, "core time", "%.1f us per frame (worker CPU, all workers)", figures.core_us);
    add_row(table, "latency", "P50 %.0f  P90 %.0f  P99 %.0f  P99.9 %.0f  max %.0f us",
            books.latency.percentile_us(0.5), books.latency.percentile_us(0.9),
            books.latency.percentile_us(0.99), books.latency.percentile_us(0.999),
            books.latency.max_us());
    add_row(table, "real-time factor", "%.3f", figures.realtime_factor);
    if (books.frames.done == 0) {
        add_row(table, "budget", "%s", "not measured: no frame was done");
        return table;
    }
    const uint32_t parallel = std::max(1U, std::min(facts.supervisor->wanted(), facts.cpus));
    const double share_us = figures.core_us / parallel;
    add_row(table, "budget",
            "%s: %.1f us of work per frame over %u CPUs against %.0f us; %.2f %% "
            "of frames were over",
            share_us <= budget_us ? "met" : "NOT met", share_us, parallel, budget_us,
            100.0 * figures.over_fraction);
    return table;
}

}  // namespace echelle
