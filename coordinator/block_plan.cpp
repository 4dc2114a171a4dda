#include "coordinator/block_plan.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "worker/block_result.hpp"

namespace echelle {
namespace {

// Handing out, sealing and collecting a block costs some 0.1 ms of CPU time in all, so a group is
// given some milliseconds of work where an integration is that long: with 4 frames of 128 channels
// to a group instead of 16, a whole run took a third more CPU time. In samples to be transformed at
// 50 % overlap, of which a core does one in some 0.7 ns.
constexpr double usual_group_work = 4.0 * (1 << 20);
constexpr uint64_t most_usual_group_frames = 16;
// A median needs every segment: as long as an integration fits, its block takes it whole, so that
// workers and not the collector sort.
constexpr uint64_t most_median_group_frames = 64;
constexpr size_t most_median_group_bytes = size_t{256} << 20;
// Some 50 ms at the full rate: longer than the kernel ever keeps a thread waiting on a busy
// machine.
constexpr size_t usual_ring_bytes = size_t{128} << 20;
// 107 ms of 128 channels at 10 MS/s: shared machines pause a CPU for 45 ms now and then.
constexpr size_t usual_live_ring_bytes = size_t{256} << 20;
constexpr uint64_t most_usual_ring_frames = 1024;
constexpr size_t usual_result_bytes = size_t{16} << 20;
constexpr uint64_t most_open_groups = 64;
// Every channel's spectrum of a longer median lies in the collector's memory until its end.
constexpr double most_median_bytes = double(size_t{2} << 30);

uint32_t rounded_up_to_even(uint64_t value) {
    return static_cast<uint32_t>((value + 1) / 2 * 2);
}

// Frames before a group that its segments may reach back to.
uint32_t history_frames(const Stream& stream, const WelchParameters& welch) {
    return (welch.nperseg - 1 + stream.geometry.samples - 1) / stream.geometry.samples;
}

// The most frames of a group: never by the number of workers or the machine's speed, since values
// depend on it.
uint64_t usual_group_frames(const Stream& stream, const WelchParameters& welch) {
    const double frame_work = static_cast<double>(stream.geometry.channels) *
                              stream.geometry.samples * welch.nperseg / (2.0 * welch.hop());
    return static_cast<uint64_t>(std::clamp(usual_group_work / frame_work, 1.0,
                                            static_cast<double>(most_usual_group_frames)));
}

uint32_t choose_group_frames(const Stream& stream, const WelchParameters& welch,
                             const BlockPlanRequest& request) {
    if (request.block_frames) {
        return *request.block_frames;
    }
    const uint64_t integration =
        request.frames_per_integration == 0 ? UINT64_MAX : request.frames_per_integration;
    if (welch.average_mode == AverageMode::median && integration <= most_median_group_frames &&
        integration * stream.geometry.frame_bytes() <= most_median_group_bytes) {
        return static_cast<uint32_t>(integration);
    }
    uint64_t most = usual_group_frames(stream, welch);
    if (const auto ring_frames =
            request.given_ring_frames ? request.given_ring_frames : request.ring_frames) {
        // A short ring that somebody else decided on is put up with.
        const uint64_t others = history_frames(stream, welch) + uint64_t{1};
        const uint64_t bearable = (*ring_frames - std::min(others, *ring_frames)) / 3;
        most = std::clamp(bearable, uint64_t{1}, most);
    }
    if (integration == UINT64_MAX || integration <= most) {
        return static_cast<uint32_t>(std::min(integration, most));
    }
    const uint64_t groups = (integration + most - 1) / most;
    return static_cast<uint32_t>((integration + groups - 1) / groups);  // as equal as can be
}

uint32_t choose_block_channels(const Stream& stream, const BlockPlanRequest& request) {
    const uint32_t channels = stream.geometry.channels;
    if (request.block_channels) {
        return std::min(*request.block_channels, channels);
    }
    // One block for each worker: they even out their speeds over groups. An even count keeps
    // channel pairs together.
    const uint64_t pieces = request.most_workers;
    return std::min(rounded_up_to_even((channels + pieces - 1) / pieces), channels);
}

void check_median_memory(const Stream& stream, const WelchParameters& welch, const BlockPlan& plan,
                         const BlockPlanRequest& request) {
    const bool whole =
        request.frames_per_integration != 0 && plan.group_frames >= request.frames_per_integration;
    if (welch.average_mode != AverageMode::median || whole) {
        return;
    }
    const uint64_t samples = request.frames_per_integration != 0
                                 ? request.frames_per_integration * stream.geometry.samples
                                 : request.total_samples.value_or(0);
    if (samples == 0) {
        throw UsageError(
            "--average-mode median needs every segment of an integration in memory, and this "
            "source "
            "has no end: give --average a number of frames or seconds");
    }
    const double bytes = static_cast<double>(plan.grid.segments_before(samples)) *
                         welch.bins(stream.geometry.is_complex()) * stream.geometry.channels *
                         sizeof(float);
    if (bytes > most_median_bytes) {
        throw UsageError("a median over " + std::to_string(samples) + " samples of " +
                         std::to_string(stream.geometry.channels) + " channels needs " +
                         std::to_string(static_cast<uint64_t>(bytes / (1 << 20))) +
                         " MiB, at most " +
                         std::to_string(static_cast<uint64_t>(most_median_bytes / (1 << 20))) +
                         " MiB are used: give a shorter --average or a longer hop");
    }
}

// One group being written, one being read, the history before it, and one to spare.
uint64_t fewest_ring_frames(const BlockPlan& plan) {
    return uint64_t{3} * plan.group_frames + plan.history_frames + 1;
}

uint64_t choose_ring_frames(const Stream& stream, const BlockPlan& plan,
                            const BlockPlanRequest& request) {
    const uint64_t fewest = fewest_ring_frames(plan);
    const std::string why = std::to_string(plan.group_frames) + " frames to a block and " +
                            std::to_string(plan.history_frames) +
                            " of history, which nperseg reaches back";
    if (request.given_ring_frames) {
        if (*request.given_ring_frames < fewest) {
            throw UsageError("the ring has " + std::to_string(*request.given_ring_frames) +
                             " frames, at least " + std::to_string(fewest) + " are needed for " +
                             why +
                             ": make the producer's ring longer, or --block-frames or "
                             "--nperseg smaller");
        }
        return *request.given_ring_frames;
    }
    if (request.ring_frames) {
        if (*request.ring_frames < fewest) {
            throw UsageError("--ring-frames " + std::to_string(*request.ring_frames) +
                             " is too short: at least " + std::to_string(fewest) +
                             " are needed for " + why);
        }
        return *request.ring_frames;
    }
    const size_t bytes = request.live ? usual_live_ring_bytes : usual_ring_bytes;
    const uint64_t usual =
        std::clamp<uint64_t>(bytes / stream.geometry.frame_bytes(), 16, most_usual_ring_frames);
    return std::max(usual, fewest + uint64_t{8} * plan.group_frames);
}

}  // namespace

BlockPlan plan_blocks(const Stream& stream, const WelchParameters& welch,
                      const BlockPlanRequest& request) {
    const uint32_t samples = stream.geometry.samples;
    const uint32_t bins = welch.bins(stream.geometry.is_complex());
    BlockPlan plan;
    plan.grid = {welch.nperseg, welch.hop()};
    plan.history_frames = history_frames(stream, welch);
    plan.group_frames = choose_group_frames(stream, welch, request);
    plan.block_channels = choose_block_channels(stream, request);
    plan.blocks_per_group =
        (stream.geometry.channels + plan.block_channels - 1) / plan.block_channels;
    plan.usual_ring_frames = choose_ring_frames(stream, plan, request);
    plan.ring_frames = plan.usual_ring_frames;
    if (!request.given_ring_frames && !request.ring_frames) {
        // A short ring bridges shorter pauses only, but it runs.
        plan.ring_frames = std::clamp(request.most_ring_bytes / stream.geometry.frame_bytes(),
                                      std::min(plan.usual_ring_frames, fewest_ring_frames(plan)),
                                      plan.usual_ring_frames);
    }
    check_median_memory(stream, welch, plan, request);

    uint64_t rows = 1;
    if (welch.average_mode == AverageMode::median) {
        rows = uint64_t{plan.group_frames} * samples / welch.hop() + 1;
    }
    if (rows * bins > UINT32_MAX / 4) {
        throw UsageError("a block of " + std::to_string(plan.group_frames) + " frames has " +
                         std::to_string(rows) + " spectra of " + std::to_string(bins) +
                         " bins, too many for one packet: give a smaller --block-frames");
    }
    plan.most_values = static_cast<uint32_t>(rows * bins);
    plan.result_bytes = BlockResult::bytes_needed(plan.block_channels, plan.most_values);

    const uint64_t open_groups =
        std::clamp<uint64_t>(usual_result_bytes / (plan.result_bytes * plan.blocks_per_group), 3,
                             std::min(most_open_groups, plan.ring_frames / plan.group_frames + 1));
    plan.ledger_blocks = static_cast<uint32_t>(open_groups * plan.blocks_per_group);
    plan.reason =
        std::string(request.block_frames ? "as asked, " : "") + std::to_string(plan.group_frames) +
        " frames to a block (an integration in equal parts of at most " +
        std::to_string(usual_group_frames(stream, welch)) +
        ", some milliseconds of work; a median's whole integration); " +
        std::string(request.block_channels ? "as asked, " : "") +
        std::to_string(plan.block_channels) + " of " + std::to_string(stream.geometry.channels) +
        " channels (a block for each of " + std::to_string(request.most_workers) + " workers)";
    return plan;
}

}  // namespace echelle
