// The coordinator's command line (docs/operations.md lists it). Scripts rely on these names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/wakeup.hpp"
#include "common/welch_parameters.hpp"
#include "coordinator/capture/capture_options.hpp"
#include "coordinator/log.hpp"
#include "coordinator/metrics/metrics_address.hpp"
#include "coordinator/sources/source.hpp"
#include "worker/fft_plans.hpp"

namespace echelle {

// --average FRAMES | all | SECONDSs
struct Average {
    enum class Kind { frames, all, seconds };
    Kind kind = Kind::frames;
    uint64_t frames = 16;
    double seconds = 0;

    static Average parse(const std::string& text);  // throws UsageError
    // Frames of one integration, 0 for all. Seconds become the nearest whole number of frames, at
    // least one.
    uint64_t frames_for(const Stream& stream) const;
};

// --workers N | MIN..MAX
struct WorkerRange {
    uint32_t least = 1;
    uint32_t most = 1;
    bool scales_itself() const { return most > least; }

    static WorkerRange parse(const std::string& text);  // throws UsageError
};

struct Options {
    std::string source = "sim:";
    std::optional<WorkerRange> workers;  // nothing: as many as CPUs may be used
    StreamOptions stream;
    WelchParameters welch;
    Average average;
    std::optional<uint32_t> block_channels;  // nothing: auto
    std::optional<uint32_t> block_frames;
    std::optional<uint64_t> ring_frames;
    std::optional<OverrunPolicy> on_overrun;
    double budget_us = 100.0;
    NotifyKind notify = NotifyKind::zmq;
    std::string pin = "auto";  // auto | none | CPULIST
    FftEffort fft_effort = FftEffort::patient;
    FftKind fft = FftKind::automatic;
    std::optional<uint32_t> real_time;  // SCHED_FIFO priority of the threads that pass work on
    bool lock_memory = false;
    std::string record;
    std::string report;
    std::optional<CaptureOptions> capture;
    std::optional<MetricsAddress> metrics;
    std::string control;             // endpoint; empty: in the instance's directory
    std::vector<std::string> feeds;  // endpoints beside the one in the instance's directory
    bool feed = true;                // false: --feed none
    std::string feed_key;            // file with the keys of the tcp feeds; empty: without
    std::string feed_allow;          // file with the keys of those who may subscribe
    bool feed_insecure = false;      // tcp may leave the machine without keys
    std::string name;                // empty: the default, or a free one
    std::optional<uint64_t> frames;
    std::optional<double> duration_s;
    LogFormat log_format = LogFormat::text;
    LogLevel log_level = LogLevel::info;
    bool quiet = false;
};

struct ParsedOptions {
    Options options;
    bool run = true;   // false: --help or --version was answered
    std::string text;  // what to print then
};

// Throws UsageError with one line that names the option, the value and the remedy.
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace echelle
