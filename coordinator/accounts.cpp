#include "coordinator/accounts.hpp"

#include <numeric>

#include "common/clock.hpp"

namespace echelle {

std::string_view name_of(FrameDrop reason) {
    switch (reason) {
        case FrameDrop::lost_by_source:
            return "lost_by_source";
        case FrameDrop::repeated:
            return "repeated";
        case FrameDrop::out_of_order:
            return "out_of_order";
        case FrameDrop::malformed:
            return "malformed";
        case FrameDrop::overrun:
            return "overrun";
        case FrameDrop::overwritten:
            return "overwritten";
        case FrameDrop::worker_failures:
            return "worker_failures";
        case FrameDrop::crc_error:
            return "crc_error";
        case FrameDrop::paused:
            return "paused";
        case FrameDrop::stopped:
            return "stopped";
    }
    return "unknown";
}

uint64_t FrameBooks::dropped_in_all() const {
    return std::accumulate(dropped.begin(), dropped.end(), uint64_t{0});
}

void Accounts::frame_came_in(int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (now_.first_frame_ns == 0) {
        now_.first_frame_ns = now_ns;
    }
    now_.frames.in += 1;
    now_.frames.in_flight += 1;
}

void Accounts::frames_lost(FrameDrop reason, uint64_t n) {
    const std::lock_guard lock(mutex_);
    // The very first may have been overwritten before we looked: time counts from it all the same.
    if (now_.first_frame_ns == 0) {
        now_.first_frame_ns = monotonic_ns();
    }
    now_.frames.in += n;
    now_.frames.dropped[static_cast<size_t>(reason)] += n;
}

void Accounts::frame_refused(FrameDrop reason) {
    group_dropped(1, reason);
}

void Accounts::blocks_made(uint64_t n) {
    const std::lock_guard lock(mutex_);
    now_.blocks.made += n;
    now_.blocks.in_flight += n;
}

void HopHistograms::add(const BlockTimes& times) {
    complete_to_ready.add(times.ready - times.complete);
    ready_to_claimed.add(times.claimed - times.ready);
    claimed_to_computed.add(times.computed - times.claimed);
    computed_to_noticed.add(times.noticed - times.computed);
    noticed_to_collected.add(times.collected - times.noticed);
}

void Accounts::block_done(const BlockTimes& times) {
    constexpr double newest_weight = 1.0 / 16;
    const auto wall_ns = static_cast<double>(times.computed - times.claimed);
    const std::lock_guard lock(mutex_);
    now_.hops.add(times);
    const double before = now_.mean_block_ns == 0 ? wall_ns : now_.mean_block_ns;
    now_.mean_block_ns = before + newest_weight * (wall_ns - before);
    now_.blocks.done += 1;
    now_.blocks.in_flight -= 1;
}

void Accounts::block_dropped() {
    const std::lock_guard lock(mutex_);
    now_.blocks.dropped += 1;
    now_.blocks.in_flight -= 1;
}

void Accounts::block_failed() {
    const std::lock_guard lock(mutex_);
    now_.blocks.failed += 1;
    now_.blocks.in_flight -= 1;
}

void Accounts::group_done(uint64_t frames, const GroupWork& work, double budget_ns) {
    const std::lock_guard lock(mutex_);
    now_.frames.done += frames;
    now_.frames.in_flight -= frames;
    now_.latency.add(work.latency_ns);
    now_.work_ns += work.work_ns;
    now_.cpu_ns += work.cpu_ns;
    now_.over_budget += work.frame_work_ns > budget_ns ? frames : 0;
    now_.last_done_ns = monotonic_ns();
}

void Accounts::group_dropped(uint64_t frames, FrameDrop reason) {
    const std::lock_guard lock(mutex_);
    now_.frames.dropped[static_cast<size_t>(reason)] += frames;
    now_.frames.in_flight -= frames;
}

void Accounts::set_spectra(const SpectraBooks& spectra) {
    const std::lock_guard lock(mutex_);
    now_.spectra = spectra;
}

void Accounts::blocks_requeued(uint64_t n) {
    const std::lock_guard lock(mutex_);
    now_.blocks.requeued += n;
}

double Accounts::mean_block_ns() const {
    const std::lock_guard lock(mutex_);
    return now_.mean_block_ns;
}

void Accounts::abort_in_flight() {
    const std::lock_guard lock(mutex_);
    now_.frames.dropped[static_cast<size_t>(FrameDrop::stopped)] += now_.frames.in_flight;
    now_.frames.in_flight = 0;
    now_.blocks.dropped += now_.blocks.in_flight;
    now_.blocks.in_flight = 0;
}

int64_t Accounts::first_frame_ns() const {
    const std::lock_guard lock(mutex_);
    return now_.first_frame_ns;
}

FrameBooks Accounts::frames() const {
    const std::lock_guard lock(mutex_);
    return now_.frames;
}

Accounts::Snapshot Accounts::snapshot() const {
    const std::lock_guard lock(mutex_);
    return now_;
}

}  // namespace echelle
