#include "coordinator/metrics/metrics_families.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include <unistd.h>

#include "common/clock.hpp"

namespace echelle {
namespace {

using Histogram = prometheus::ClientMetric::Histogram;

// Upper edges in microseconds, closest where latencies are: a frame lasts 204.8 us at the full
// rate.
constexpr std::array<int64_t, 26> duration_edges_us{
    10,     20,     50,      100,     150,     200,       300,       500,       700,
    1'000,  1'500,  2'000,   3'000,   5'000,   7'000,     10'000,    15'000,    20'000,
    30'000, 50'000, 100'000, 200'000, 500'000, 1'000'000, 2'000'000, 10'000'000};

double whole(uint64_t count) {
    return static_cast<double>(count);
}

Histogram histogram_of(const LatencyHistogram& durations) {
    Histogram histogram;
    histogram.sample_count = durations.count();
    histogram.sample_sum = durations.sum_s();
    for (const int64_t edge_us : duration_edges_us) {
        histogram.bucket.push_back(
            {durations.count_up_to(edge_us * 1000), static_cast<double>(edge_us) / 1e6});
    }
    return histogram;
}

Histogram histogram_of(std::span<const double> durations_s) {
    Histogram histogram;
    histogram.sample_count = durations_s.size();
    histogram.sample_sum = std::accumulate(durations_s.begin(), durations_s.end(), 0.0);
    for (const int64_t edge_us : duration_edges_us) {
        const double edge_s = static_cast<double>(edge_us) / 1e6;
        const auto within = std::count_if(durations_s.begin(), durations_s.end(),
                                          [edge_s](double value) { return value <= edge_s; });
        histogram.bucket.push_back({static_cast<uint64_t>(within), edge_s});
    }
    return histogram;
}

void add_what_runs(FamilyList& list, const MetricsBooks& books) {
    list.info("echelle_build_info", "What the program is: 1.", books.build);
    list.info("echelle_run_info", "What the run is: 1.", books.run);
    list.info("echelle_welch_info", "How spectra are computed: 1.", books.welch);
    list.gauge("echelle_start_time_seconds", "When the source was started, Unix time.",
               books.started_s);
    list.gauge("echelle_books_age_seconds", "How old the figures of this answer are.",
               static_cast<double>(monotonic_ns() - books.taken_ns) / 1e9);
    list.gauge("echelle_channels", "Channels of a frame.", books.geometry.channels);
    list.gauge("echelle_frame_samples", "Samples of each channel in a frame.",
               books.geometry.samples);
    list.gauge("echelle_sample_rate_hertz", "Samples per second of each channel.", books.rate_hz);
    list.gauge("echelle_frame_duration_seconds", "How long a frame lasts.", books.frame_s);
    list.gauge("echelle_paused", "1 while the operator has paused the workers.",
               books.paused ? 1 : 0);
}

void add_frames(FamilyList& list, const FrameBooks& frames) {
    list.counter("echelle_frames_in_total", "Frames that came, those seen only as a gap included.",
                 whole(frames.in));
    list.counter("echelle_frames_done_total", "Frames computed and collected on all channels.",
                 whole(frames.done));
    for (size_t i = 0; i < frame_drop_reasons; ++i) {
        list.counter("echelle_frames_dropped_total", "Frames lost, by reason.",
                     whole(frames.dropped[i]),
                     {{"reason", std::string(name_of(static_cast<FrameDrop>(i)))}});
    }
    list.gauge("echelle_frames_in_flight", "Frames neither done nor dropped yet.",
               whole(frames.in_flight));
}

void add_blocks(FamilyList& list, const MetricsBooks& books) {
    const BlockBooks& blocks = books.figures.books.blocks;
    list.counter("echelle_blocks_made_total", "Blocks of work made.", whole(blocks.made));
    list.counter("echelle_blocks_done_total", "Blocks computed and collected.", whole(blocks.done));
    list.counter("echelle_blocks_dropped_total", "Blocks dropped with their frames.",
                 whole(blocks.dropped));
    list.counter("echelle_blocks_failed_total", "Blocks given up: workers died on them.",
                 whole(blocks.failed));
    list.gauge("echelle_blocks_in_flight", "Blocks neither done, dropped nor failed yet.",
               whole(blocks.in_flight));
    list.counter("echelle_blocks_requeued_total", "Blocks given to another worker after a death.",
                 whole(blocks.requeued));
}

void add_spectra(FamilyList& list, const SpectraBooks& spectra) {
    list.counter("echelle_spectra_total", "Spectra handed on, all channels.", whole(spectra.out));
    list.counter("echelle_spectra_incomplete_total", "Of those, with fewer segments than expected.",
                 whole(spectra.incomplete));
    list.counter("echelle_spectra_empty_total",
                 "Integrations of a channel without a single segment: no spectrum.",
                 whole(spectra.empty));
    list.counter("echelle_packet_crc_errors_total",
                 "Packets damaged between worker and collector: not used.",
                 whole(spectra.crc_errors));
}

void add_times(FamilyList& list, const MetricsBooks& books) {
    const RunFigures& figures = books.figures;
    const Accounts::Snapshot& accounts = figures.books;
    list.histogram("echelle_latency_seconds",
                   "From a group's last frame complete in the ring to its spectra collected.",
                   histogram_of(accounts.latency));
    list.gauge("echelle_latency_max_seconds", "The longest of these since the start.",
               accounts.latency.max_us() / 1e6);
    const auto hop = [&list](const char* name, const LatencyHistogram& durations) {
        list.histogram("echelle_hop_seconds", "Where a block's time goes, step by step.",
                       histogram_of(durations), {{"hop", name}});
    };
    hop("complete_to_ready", accounts.hops.complete_to_ready);
    hop("ready_to_claimed", accounts.hops.ready_to_claimed);
    hop("claimed_to_computed", accounts.hops.claimed_to_computed);
    hop("computed_to_noticed", accounts.hops.computed_to_noticed);
    hop("noticed_to_collected", accounts.hops.noticed_to_collected);
    list.counter("echelle_block_cpu_seconds_total", "CPU time of workers for frames done.",
                 accounts.cpu_ns / 1e9);
    list.counter("echelle_block_wall_seconds_total", "Wall time of workers for frames done.",
                 accounts.work_ns / 1e9);
    list.counter("echelle_frames_over_budget_total",
                 "Frames whose work took longer than the budget.", whole(accounts.over_budget));
    list.gauge("echelle_budget_seconds", "The budget of a frame.", books.budget_s);
    list.gauge("echelle_realtime_ratio", "Signal done / time taken, since the start.",
               figures.realtime_factor);
    list.gauge("echelle_frame_period_seconds", "Wall time per frame done, since the start.",
               figures.period_us / 1e6);
    for (const auto& [thread, seconds] : books.threads_s) {
        list.counter("echelle_coordinator_cpu_seconds_total",
                     "CPU time of the coordinator, by thread.", seconds, {{"thread", thread}});
    }
}

void add_memory(FamilyList& list, const MetricsBooks& books) {
    list.gauge("echelle_ring_fill_ratio", "Frames in the ring that are still needed / its length.",
               books.figures.ring_fill);
    list.gauge("echelle_ring_frames", "Frames that the ring holds.", whole(books.ring_frames));
    list.gauge("echelle_ring_bytes", "Memory of the ring.", whole(books.ring_bytes));
    list.gauge("echelle_ledger_bytes", "Memory of the ledger.", whole(books.ledger_bytes));
    list.gauge("echelle_coordinator_resident_bytes",
               "Memory of the coordinator that is not shared.",
               whole(memory_of(getpid()).unshared_bytes));
    list.gauge("echelle_worker_resident_max_bytes",
               "The same of the largest worker, as seen once a second.",
               whole(books.worker_rss_max_bytes));
    list.gauge("echelle_worker_private_max_bytes", "Of that, without programs and libraries.",
               whole(books.worker_private_max_bytes));
}

MetricLabels described(const WorkerBooks& worker) {
    return {
        {"worker", std::to_string(worker.status.id)},
        {"cpu", worker.cpu ? std::to_string(*worker.cpu) : ""},
        {"node", worker.status.wanted_cpu ? std::to_string(worker.status.wanted_cpu->node) : ""},
        {"state", std::string(name_of(worker.status.state))}};
}

// A worker that has left keeps its counters: it may come back, and its share of the work was done.
void add_workers(FamilyList& list, const MetricsBooks& books) {
    list.gauge("echelle_workers_wanted", "Workers that there should be.", books.workers_wanted);
    list.gauge("echelle_workers_alive", "Workers that there are.", books.workers_alive);
    list.gauge("echelle_workers_most", "Workers that there may be.", books.workers_most);
    const auto for_each = [&books](auto add) {
        for (const WorkerBooks& worker : books.workers) {
            if (worker.status.incarnations > 0) {
                add(worker, MetricLabels{{"worker", std::to_string(worker.status.id)}});
            }
        }
    };
    for_each([&list](const WorkerBooks& worker, const MetricLabels&) {
        list.info("echelle_worker_info", "Each worker that there ever was: 1.", described(worker));
    });
    for_each([&list](const WorkerBooks& worker, const MetricLabels& labels) {
        list.gauge("echelle_worker_alive", "1 while that worker lives.",
                   worker.status.pid != 0 ? 1 : 0, labels);
    });
    for_each([&list](const WorkerBooks& worker, const MetricLabels& labels) {
        list.counter("echelle_worker_lives_total", "Lives of that worker so far.",
                     worker.status.incarnations, labels);
    });
    for_each([&list](const WorkerBooks& worker, const MetricLabels& labels) {
        list.counter("echelle_worker_blocks_total", "Blocks done by that worker in all its lives.",
                     whole(worker.blocks), labels);
    });
    for_each([&list](const WorkerBooks& worker, const MetricLabels& labels) {
        list.counter("echelle_worker_duplicates_total",
                     "Blocks that it computed when it held them no longer: not used.",
                     whole(worker.duplicates), labels);
    });
    for_each([&list](const WorkerBooks& worker, const MetricLabels& labels) {
        list.counter("echelle_worker_busy_seconds_total", "Wall time inside blocks.", worker.busy_s,
                     labels);
    });
}

void add_recoveries(FamilyList& list, const MetricsBooks& books) {
    list.counter("echelle_worker_deaths_total", "Workers that ended without being asked to.",
                 whole(books.deaths.in_all));
    // A few that are always there: a count that appears with its first event shows no increase.
    std::map<std::string, uint64_t> causes{
        {"SIGKILL", 0}, {"SIGSEGV", 0}, {"exit", 0}, {"hung", 0}};
    for (const auto& [cause, count] : books.deaths.by_cause) {
        causes[cause] = count;
    }
    for (const auto& [cause, count] : causes) {
        list.counter("echelle_recoveries_total", "Deaths whose cause is known, by cause.",
                     whole(count), {{"cause", cause}});
    }
    list.histogram("echelle_requeue_seconds",
                   "From a death noticed to its blocks free for other workers.",
                   histogram_of(books.deaths.requeued_s));
    list.histogram("echelle_respawn_seconds", "From a death noticed to its replacement at work.",
                   histogram_of(books.deaths.respawned_s));
    list.counter("echelle_scaling_decisions_total", "Changes of the wanted number of workers.",
                 whole(books.scaled_up), {{"direction", "up"}});
    list.counter("echelle_scaling_decisions_total", "Changes of the wanted number of workers.",
                 whole(books.scaled_down), {{"direction", "down"}});
    list.gauge("echelle_nursery_alive", "0 while the nursery is being replaced.",
               books.nursery_alive ? 1 : 0);
    list.counter("echelle_nursery_restarts_total", "Times that the nursery was replaced.",
                 whole(books.nursery_restarts));
}

void add_feed(FamilyList& list, const FeedBooks& feed) {
    list.gauge("echelle_feed_subscribers", "Connections to the feed.", whole(feed.subscribers));
    list.gauge("echelle_feed_subscribers_most", "The most at one time.",
               whole(feed.subscribers_most));
    list.gauge("echelle_feed_subscriptions", "What they are subscribed to.",
               whole(feed.subscriptions));
    list.counter("echelle_feed_messages_total", "Messages published.", whole(feed.published));
    list.counter("echelle_feed_missed_total", "Spectra that the feed's thread came too late for.",
                 whole(feed.missed));
    list.counter("echelle_feed_queue_full_total", "Times that a subscriber's queue ran full.",
                 whole(feed.queue_full));
    list.counter("echelle_feed_events_lost_total", "Events that did not get into the feed.",
                 whole(feed.events_lost));
    list.counter("echelle_feed_refused_total", "Connections that the feed has refused.",
                 whole(feed.refused));
}

void add_capture(FamilyList& list, const CaptureBooks& capture) {
    list.gauge("echelle_capture_active", "1 while incoming frames are kept.",
               capture.capturing ? 1 : 0);
    list.gauge("echelle_capture_failing", "1 once the disk has refused something.",
               capture.problem.empty() ? 0 : 1);
    list.counter("echelle_capture_frames_in_total", "Frames that came in during a capture.",
                 whole(capture.in));
    list.counter("echelle_capture_frames_written_total", "Of those, written.",
                 whole(capture.written));
    const auto lost = [&list](const char* cause, uint64_t count) {
        list.counter("echelle_capture_frames_lost_total", "Of those, not written, by cause.",
                     whole(count), {{"cause", cause}});
    };
    lost("overwritten", capture.lost.overwritten);
    lost("write_failed", capture.lost.write_failed);
    lost("repeated", capture.lost.repeated);
    lost("out_of_order", capture.lost.out_of_order);
    lost("malformed", capture.lost.malformed);
    lost("stopped", capture.lost.stopped);
    list.gauge("echelle_capture_frames_in_flight", "Of those, not written yet.",
               whole(capture.in_flight));
    list.counter("echelle_capture_bytes_total", "Bytes written.", whole(capture.bytes));
    list.counter("echelle_capture_files_total", "Files begun.", whole(capture.files));
    list.counter("echelle_capture_segments_total", "Stretches without a gap.",
                 whole(capture.segments));
}

void add_log(FamilyList& list, const LogBooks& log) {
    list.counter("echelle_log_warnings_total", "Warnings, those not shown included.",
                 whole(log.warnings));
    list.counter("echelle_log_held_back_total",
                 "Lines not shown because there were many like them.", whole(log.held_back));
    list.counter("echelle_log_unshown_total", "Lines that nobody who reads standard error took.",
                 whole(log.unshown));
}

}  // namespace

std::vector<prometheus::MetricFamily> families_of(const MetricsBooks& books) {
    FamilyList list;
    add_what_runs(list, books);
    add_frames(list, books.figures.books.frames);
    add_blocks(list, books);
    add_spectra(list, books.figures.books.spectra);
    add_times(list, books);
    add_memory(list, books);
    add_workers(list, books);
    add_recoveries(list, books);
    if (books.feed) {
        add_feed(list, *books.feed);
    }
    if (books.capture) {
        add_capture(list, *books.capture);
    }
    add_log(list, books.log);
    add_source_families(list, books.source);
    return list.take();
}

}  // namespace echelle
