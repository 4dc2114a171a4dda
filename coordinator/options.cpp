#include "coordinator/options.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include <CLI/CLI.hpp>

#include "common/error.hpp"
#include "common/feed_endpoint.hpp"
#include "common/rational.hpp"

namespace echelle {
namespace {

// Everything as the user typed it; turned into Options with our own messages.
struct Typed {
    std::string workers, rate, format, layout, window, detrend, scaling, average, average_mode;
    std::string block_channels = "auto", block_frames = "auto", ring_frames, on_overrun;
    std::string notify, pair_channels, fft_effort, fft, real_time;
    std::string channels, samples, nperseg, noverlap, budget_us, volts, frames, duration;
    std::string capture, metrics, log_format, log_level;
};

uint64_t unsigned_of(const std::string& text, const std::string& option, uint64_t least,
                     uint64_t most) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < least || value > most) {
        throw UsageError(option + " '" + text + "' is not possible: give a whole number from " +
                         std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
}

double number_of(const std::string& text, const std::string& option, double least) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || !std::isfinite(value) || value <= least) {
        throw UsageError(option + " '" + text + "' is not possible: give a number above " +
                         (least == 0 ? std::string("0") : std::to_string(least)));
    }
    return value;
}

template <typename T>
std::optional<T> optional_unsigned(const std::string& text, const std::string& option,
                                   uint64_t least, uint64_t most) {
    if (text.empty() || text == "auto") {
        return std::nullopt;
    }
    return static_cast<T>(unsigned_of(text, option, least, most));
}

bool on_off(const std::string& text, const std::string& option) {
    if (text == "on" || text == "off") {
        return text == "on";
    }
    throw UsageError(option + " '" + text + "' is not known: give on or off");
}

void fill_stream(StreamOptions& stream, const Typed& typed) {
    stream.channels = optional_unsigned<uint32_t>(typed.channels, "--channels", 1, 65'536);
    stream.samples = optional_unsigned<uint32_t>(typed.samples, "--samples", 1, 16'777'216);
    if (!typed.rate.empty()) {
        stream.rate = Rational::parse(typed.rate, "--rate");
    }
    if (!typed.format.empty()) {
        stream.format = parse_sample_format(typed.format);
    }
    if (!typed.layout.empty()) {
        stream.layout = parse_layout(typed.layout);
    }
}

void fill_welch(WelchParameters& welch, const Typed& typed) {
    constexpr uint64_t most = uint64_t{1} << 24;
    if (!typed.nperseg.empty()) {
        welch.nperseg = static_cast<uint32_t>(unsigned_of(typed.nperseg, "--nperseg", 1, most));
    }
    welch.noverlap = welch.nperseg / 2;  // as scipy: half of nperseg, rounded down
    if (!typed.noverlap.empty()) {
        welch.noverlap = static_cast<uint32_t>(unsigned_of(typed.noverlap, "--noverlap", 0, most));
    }
    if (!typed.window.empty()) {
        welch.window = Window::parse(typed.window);
    }
    if (!typed.detrend.empty()) {
        welch.detrend = parse_detrend(typed.detrend);
    }
    if (!typed.scaling.empty()) {
        welch.scaling = parse_scaling(typed.scaling);
    }
    if (!typed.average_mode.empty()) {
        welch.average_mode = parse_average_mode(typed.average_mode);
    }
    if (!typed.pair_channels.empty()) {
        welch.pair_channels = on_off(typed.pair_channels, "--pair-channels");
    }
    if (!typed.volts.empty()) {
        welch.volts_per_count = number_of(typed.volts, "--volts-per-count", 0);
    }
    welch.validate();
}

void check_feeds(Options& options) {
    if (options.feeds == std::vector<std::string>{"none"}) {
        options.feeds.clear();
        options.feed = false;
    }
    check_feed_access("--feed",
                      {options.feeds, options.feed_key, options.feed_allow, options.feed_insecure});
}

void fill(Options& options, const Typed& typed) {
    if (!typed.workers.empty()) {
        options.workers = WorkerRange::parse(typed.workers);
    }
    fill_stream(options.stream, typed);
    fill_welch(options.welch, typed);
    if (!typed.average.empty()) {
        options.average = Average::parse(typed.average);
    }
    options.block_channels =
        optional_unsigned<uint32_t>(typed.block_channels, "--block-channels", 1, 65'536);
    options.block_frames =
        optional_unsigned<uint32_t>(typed.block_frames, "--block-frames", 1, 65'536);
    options.ring_frames =
        optional_unsigned<uint64_t>(typed.ring_frames, "--ring-frames", 2, uint64_t{1} << 20);
    if (!typed.on_overrun.empty()) {
        if (typed.on_overrun != "drop" && typed.on_overrun != "block") {
            throw UsageError("--on-overrun '" + typed.on_overrun +
                             "' is not known: give drop or block");
        }
        options.on_overrun =
            typed.on_overrun == "drop" ? OverrunPolicy::drop : OverrunPolicy::block;
    }
    if (!typed.budget_us.empty()) {
        options.budget_us = number_of(typed.budget_us, "--budget-us", 0);
    }
    if (!typed.notify.empty()) {
        options.notify = parse_notify_kind(typed.notify);
    }
    if (!typed.fft.empty()) {
        options.fft = parse_fft_kind(typed.fft);
    }
    if (!typed.fft_effort.empty()) {
        options.fft_effort = parse_fft_effort(typed.fft_effort);
    }
    options.real_time = optional_unsigned<uint32_t>(typed.real_time, "--realtime", 1, 99);
    if (!typed.capture.empty()) {
        options.capture = CaptureOptions::parse(typed.capture);
    }
    check_feeds(options);
    if (!typed.metrics.empty()) {
        options.metrics = MetricsAddress::parse(typed.metrics);
    }
    if (!typed.log_format.empty()) {
        options.log_format = parse_log_format(typed.log_format);
    }
    if (!typed.log_level.empty()) {
        options.log_level = parse_log_level(typed.log_level);
    }
    options.frames = optional_unsigned<uint64_t>(typed.frames, "--frames", 1,
                                                 std::numeric_limits<uint64_t>::max());
    if (!typed.duration.empty()) {
        options.duration_s = number_of(typed.duration, "--duration", 0);
    }
}

void declare(CLI::App& app, Options& options, Typed& typed) {
    app.set_version_flag("--version", "echelle-coordinator " ECHELLE_VERSION);
    app.set_config("--config", "", "Read options from a TOML file (names without the dashes)");
    app.allow_config_extras(CLI::config_extras_mode::error);  // a misspelt name must not be ignored
    const auto text = [&app](const char* group, const char* name, std::string& target,
                             const char* help) {
        app.add_option(name, target, help)->group(group);
    };
    text("Input", "--source", options.source,
         "Where frames come from: sim: ring:NAME raw:FILE sigmf:FILE (default sim:)");
    text("Input", "--channels", typed.channels, "Channels, where the source does not say");
    text("Input", "--samples", typed.samples, "Samples of each channel in a frame (2048)");
    text("Input", "--rate", typed.rate, "Samples/s of each channel, e.g. 10e6 or 200/3");
    text("Input", "--format", typed.format, "i16 (real) or ci16 (complex)");
    text("Input", "--layout", typed.layout, "channel-major or sample-major");
    text("Input", "--frames", typed.frames, "Stop after this many frames");
    text("Input", "--duration", typed.duration, "Stop after this many seconds");
    text("Input", "--on-overrun", typed.on_overrun,
         "drop or block when workers fall behind (live sources drop, files block)");
    text("Spectra", "--nperseg", typed.nperseg, "Samples of a segment (1024)");
    text("Spectra", "--noverlap", typed.noverlap, "Samples that segments share (half of nperseg)");
    text("Spectra", "--window", typed.window,
         "boxcar hann hamming blackman blackmanharris flattop kaiser,BETA tukey,ALPHA");
    text("Spectra", "--detrend", typed.detrend, "constant or none");
    text("Spectra", "--scaling", typed.scaling, "density (V**2/Hz) or spectrum (V**2)");
    text("Spectra", "--average", typed.average, "Frames of one spectrum (16), all, or SECONDSs");
    text("Spectra", "--average-mode", typed.average_mode, "mean, median or max");
    text("Spectra", "--pair-channels", typed.pair_channels,
         "on: two real channels share a transform; off: each has its own");
    text("Spectra", "--volts-per-count", typed.volts, "Gives results in volts instead of counts");
    text("Output", "--record", options.record, "Write the spectra to this file");
    text("Output", "--report", options.report, "Write the run's report (JSON) to this file");
    text("Output", "--capture", typed.capture,
         "Keep the incoming frames as SigMF in this directory (DIR?size=1G&seconds=60)");
    text("Work", "--workers", typed.workers,
         "Worker processes, N or MIN..MAX (the CPUs that may be used)");
    text("Work", "--pin", options.pin, "auto, none, or a list of CPUs such as 0-3,6");
    text("Work", "--block-channels", typed.block_channels, "Channels of a block, or auto");
    text("Work", "--block-frames", typed.block_frames, "Frames of a block, or auto");
    text("Work", "--ring-frames", typed.ring_frames, "Frames that the ring holds");
    text("Work", "--notify", typed.notify, "How workers are woken: zmq or futex");
    text("Work", "--fft", typed.fft, "auto, own or fftw");
    text("Work", "--fft-effort", typed.fft_effort, "estimate, measure or patient");
    text("Work", "--realtime", typed.real_time,
         "SCHED_FIFO priority, 1 to 99, of the threads that pass work on (none)");
    app.add_flag("--lock-memory", options.lock_memory, "Keep ring and ledger in memory (mlock)")
        ->group("Work");
    text("Work", "--budget-us", typed.budget_us, "Time budget of a frame, microseconds (100)");
    app.add_option("--feed", options.feeds,
                   "One more endpoint for subscribers to spectra (ipc:// or tcp://), or none")
        ->group("Output")
        ->allow_extra_args(false)
        ->take_all();
    text("Output", "--feed-key", options.feed_key, "File with the keys of the tcp feeds");
    text("Output", "--feed-allow", options.feed_allow, "File with the keys of who may subscribe");
    app.add_flag("--feed-insecure", options.feed_insecure,
                 "A tcp feed without keys may leave this machine")
        ->group("Output");
    text("Output", "--metrics", typed.metrics,
         "Serve figures to Prometheus at [ADDRESS:]PORT (127.0.0.1)");
    text("Output", "--log-format", typed.log_format,
         "text, or json: a JSON object for each line on standard error");
    text("Output", "--log-level", typed.log_level, "info, warning or error: this and graver");
    text("Control", "--name", options.name, "Name of this instance, for echellectl");
    text("Control", "--control", options.control, "ZeroMQ endpoint for echellectl");
    app.add_flag("--quiet", options.quiet, "No progress and no table, only errors");
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (c == '\n') {
            c = ' ';
        }
    }
    while (!text.empty() && text.back() == ' ') {
        text.pop_back();
    }
    return text;
}

}  // namespace

Average Average::parse(const std::string& text) {
    Average average;
    if (text == "all") {
        average.kind = Kind::all;
    } else if (text.ends_with('s')) {
        average.kind = Kind::seconds;
        average.seconds = number_of(text.substr(0, text.size() - 1), "--average", 0);
    } else {
        average.frames = unsigned_of(text, "--average", 1, uint64_t{1} << 40);
    }
    return average;
}

uint64_t Average::frames_for(const Stream& stream) const {
    switch (kind) {
        case Kind::all:
            return 0;
        case Kind::frames:
            return frames;
        case Kind::seconds:
            break;
    }
    const double wanted = seconds * 1e9 / stream.frame_period_ns();
    if (wanted > static_cast<double>(uint64_t{1} << 40)) {
        throw UsageError("--average " + std::to_string(seconds) + "s is too many frames: give all");
    }
    return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(wanted)));
}

WorkerRange WorkerRange::parse(const std::string& text) {
    constexpr uint64_t most_workers = 65'535;  // what a ledger word can name
    const size_t dots = text.find("..");
    WorkerRange range;
    range.least =
        static_cast<uint32_t>(unsigned_of(text.substr(0, dots), "--workers", 1, most_workers));
    range.most = range.least;
    if (dots != std::string::npos) {
        range.most =
            static_cast<uint32_t>(unsigned_of(text.substr(dots + 2), "--workers", 1, most_workers));
    }
    if (range.most < range.least) {
        throw UsageError("--workers '" + text + "' ends below its start: give MIN..MAX");
    }
    return range;
}

ParsedOptions parse_options(int argc, const char* const* argv) {
    ParsedOptions parsed;
    Typed typed;
    CLI::App app("Turns ADC frames into calibrated Welch power spectra, on every core.",
                 "echelle-coordinator");
    declare(app, parsed.options, typed);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        parsed.run = false;
        parsed.text = app.help();
        return parsed;
    } catch (const CLI::CallForVersion&) {
        parsed.run = false;
        parsed.text = "echelle-coordinator " ECHELLE_VERSION "\n";
        return parsed;
    } catch (const CLI::Error& error) {
        throw UsageError(one_line(error.what()) + " (see --help)");
    }
    fill(parsed.options, typed);
    return parsed;
}

}  // namespace echelle
