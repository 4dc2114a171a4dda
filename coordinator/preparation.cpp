#include "coordinator/preparation.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/limits.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

// How far `echellectl scale` can go in any run: a record is one cache line.
constexpr uint32_t fewest_worker_records = 1024;
// Below this, small pages fit a CPU's table of them anyway.
constexpr size_t smallest_ring_for_huge_pages = size_t{32} << 20;

void check_recording_is_long_enough(const Source& source, const WelchParameters& welch) {
    const auto stretch = source.longest_stretch();
    if (stretch && *stretch < welch.nperseg) {
        throw UsageError("--nperseg " + std::to_string(welch.nperseg) +
                         " is longer than the recording, whose longest stretch without a gap has " +
                         std::to_string(*stretch) + " samples per channel: give " +
                         std::to_string(*stretch) + " at most");
    }
}

void choose_workers(Preparation& run) {
    run.usable_cpus = usable_cpus();
    run.worker_cpus = run.read_worker_cpus();  // refuses CPUs that are not there
    const auto cpus = static_cast<uint32_t>(run.usable_cpus.size());
    run.workers = run.options.workers.value_or(WorkerRange{cpus, cpus});
    check_worker_limits(run.workers.most, run.options.notify);
}

void plan_work(Preparation& run) {
    BlockPlanRequest request;
    request.frames_per_integration = run.frames_per_integration;
    request.most_workers = run.workers.most;
    request.block_channels = run.options.block_channels;
    request.block_frames = run.options.block_frames;
    request.ring_frames = run.options.ring_frames;
    request.total_samples = run.source->total_samples();
    request.live = run.policy == OverrunPolicy::drop;
    request.most_ring_bytes = memory_available() / 2;  // the rest is for workers and results
    if (run.ring) {
        request.given_ring_frames = run.ring->slot_count();
    }
    run.plan = plan_blocks(run.stream, run.options.welch, request);
}

void place_workers(Preparation& run) {
    run.ring_node = node_of_memory(run.ring->frame(0).data());
    run.worker_cpus = run.read_worker_cpus();
}

void make_plans(Preparation& run) {
    const int64_t began_ns = monotonic_ns();
    run.plans.emplace(run.options.welch.nperseg, run.stream.geometry.is_complex(),
                      run.options.welch.pair_channels, run.options.fft_effort, run.options.fft);
    const double seconds = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
    run.planning_s = seconds;
    if (seconds > 1.0 && !run.options.quiet) {
        const bool kept = run.plans->wisdom() == WisdomUse::written;
        char text[160];
        std::snprintf(text, sizeof text, "planned the transforms for nperseg %u in %.1f s (%s)%s",
                      run.options.welch.nperseg, seconds,
                      std::string(name_of(run.options.fft_effort)).c_str(),
                      kept ? "; kept for next time" : "");
        note(text, {{"nperseg", uint64_t{run.options.welch.nperseg}}, {"seconds", seconds}});
    }
}

void make_ledger(Preparation& run) {
    LedgerShape shape;
    shape.capacity = run.plan.ledger_blocks;
    shape.most_frames = run.plan.most_listed_frames();
    shape.workers = std::max(run.workers.most, fewest_worker_records);
    shape.result_bytes = run.plan.result_bytes;
    run.ledger.emplace(shape);
}

void fill_worker_setup(Preparation& run) {
    run.life_line = LifeLine::of_this_process();
    if (!run.life_line.why_no_pidfd().empty()) {
        warn("pidfd_open is refused (" + run.life_line.why_no_pidfd() +
             "): deaths are learnt from the nursery instead, somewhat later; Linux 5.3 or a "
             "seccomp profile that allows it does better");
    }
    run.setup.ring = &*run.ring;
    run.setup.ledger = &*run.ledger;
    run.setup.stream = run.stream;
    run.setup.welch = run.options.welch;
    run.setup.plans = &*run.plans;
    run.setup.most_channels = run.plan.block_channels;
    run.setup.most_frames = run.plan.most_listed_frames();
    run.setup.most_values = run.plan.most_values;
    run.setup.notify = run.options.notify;
    run.setup.endpoints = run.instance->wakeup_endpoints();
    if (run.policy == OverrunPolicy::drop) {
        run.setup.touch_ns = touch_at_start_ns * static_cast<int64_t>(run.cpus_for_workers()) /
                             std::max<int64_t>(run.workers.least, 1);
    }
    run.setup.coordinator_end = run.life_line.watched();
}

void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
        sigaddset(&set, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void take_instance_name(Preparation& run) {
    block_signals();
    run.instance = Instance::lock(run.options.name);
    if (run.options.name.empty() && run.instance->name() != default_instance_name &&
        !run.options.quiet) {
        warn("instance '" + std::string(default_instance_name) +
             "' is running already; this one is '" + run.instance->name() +
             "' (choose with --name)");
    }
}

}  // namespace

void tell_what_is_missing(const Preparation& run) {
    if (run.plan.ring_frames < run.plan.usual_ring_frames) {
        warn("the ring has " + std::to_string(run.plan.ring_frames) + " frames instead of " +
             std::to_string(run.plan.usual_ring_frames) +
             ": more memory is not allowed (control group, ulimit -v, ulimit -f) or not there; "
             "shorter pauses of the workers are bridged");
    }
    if (run.options.quiet) {
        return;
    }
    const uint32_t all_cpus = cpus_of_machine();
    if (run.usable_cpus.size() < all_cpus) {
        warn("this program may use " + std::to_string(run.usable_cpus.size()) + " of the " +
             std::to_string(all_cpus) + " CPUs (affinity mask or cpuset)");
    }
    if (!run.ring_is_outside && run.ring->page_kind() == PageKind::small_4k &&
        run.ring->region_bytes() >= smallest_ring_for_huge_pages) {
        warn("no huge pages for the ring of " + std::to_string(run.ring->region_bytes() >> 20) +
             " MiB: it has small ones, which cost some speed (deploy/tune.sh gives huge ones)");
    }
}

Preparation::~Preparation() {
    if (instance) {
        instance->remove_files();
    }
}

uint32_t Preparation::cpus_for_workers() const {
    return static_cast<uint32_t>(worker_cpus.empty() ? usable_cpus.size() : worker_cpus.size());
}

std::vector<Cpu> Preparation::read_worker_cpus() const {
    if (options.pin == "none") {
        return {};
    }
    if (options.pin != "auto") {
        return parse_cpu_list(options.pin, echelle::usable_cpus());
    }
    std::vector<Cpu> cpus = echelle::usable_cpus();
    return ring_node ? nearest_first(std::move(cpus), *ring_node) : cpus;
}

std::unique_ptr<Preparation> prepare(const Options& options) {
    auto run = std::make_unique<Preparation>(options);
    if (!options.name.empty()) {
        instance_directory(options.name);  // refuses an impossible name before any work is done
    }
    run->source = open_source(options.source, options.stream);
    run->stream = run->source->stream();
    run->policy = options.on_overrun.value_or(run->source->default_policy());
    run->frames_per_integration = options.average.frames_for(run->stream);
    check_recording_is_long_enough(*run->source, options.welch);
    run->ring = run->source->take_ring();
    run->ring_is_outside = run->ring.has_value();
    choose_workers(*run);
    plan_work(*run);
    if (!run->ring) {
        run->ring = Ring::anonymous(run->stream, run->plan.ring_frames, run->source->ring_margin());
    }
    place_workers(*run);
    make_ledger(*run);
    make_plans(*run);  // may take a minute: after everything that can be refused at once
    take_instance_name(*run);
    fill_worker_setup(*run);
    return run;
}

}  // namespace echelle
