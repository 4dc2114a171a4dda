#include "fpga_sim/sim_options.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr double longest_frame_s = 3600;
constexpr uint64_t most_samples = uint64_t{1} << 62;

[[noreturn]] void refuse(std::string_view key, std::string_view value, std::string_view remedy) {
    throw UsageError("simulator: " + std::string(key) + "=" + std::string(value) + ": " +
                     std::string(remedy));
}

template <typename Number>
Number parse_number(std::string_view key, std::string_view text, std::string_view remedy) {
    Number number{};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) {
        refuse(key, text, remedy);
    }
    return number;
}

uint64_t parse_count(std::string_view key, std::string_view text) {
    return parse_number<uint64_t>(key, text, "give a whole number, 0 or more");
}

uint32_t parse_extent(std::string_view key, std::string_view text) {
    return parse_number<uint32_t>(key, text, "give a whole number, 1 or more");
}

double parse_real(std::string_view key, std::string_view text) {
    const auto number = parse_number<double>(key, text, "give a finite number");
    if (!std::isfinite(number)) {
        refuse(key, text, "give a finite number");
    }
    return number;
}

Pace parse_pace(std::string_view text) {
    if (text == "realtime" || text == "asap") {
        return text == "asap" ? Pace::asap : Pace::realtime;
    }
    refuse("pace", text, "give realtime or asap");
}

Generate parse_generate(std::string_view text) {
    if (text == "once" || text == "each") {
        return text == "each" ? Generate::each : Generate::once;
    }
    refuse("generate", text, "give once or each");
}

using Text = std::string_view;
constexpr std::array keys{
    SimKey{"channels", "C", "channels (128)",
           [](SimArguments& a, Text t) { a.channels = parse_extent("channels", t); }},
    SimKey{"samples", "S", "samples of each channel in a frame (2048)",
           [](SimArguments& a, Text t) { a.samples = parse_extent("samples", t); }},
    SimKey{"rate", "HZ", "samples per second of each channel, as 10e6 or 200/3 (10e6)",
           [](SimArguments& a, Text t) { a.rate = Rational::parse(t, "rate"); }},
    SimKey{"format", "F", "i16 or ci16 (i16)",
           [](SimArguments& a, Text t) { a.format = parse_sample_format(t); }},
    SimKey{"layout", "L", "channel-major or sample-major (channel-major)",
           [](SimArguments& a, Text t) { a.layout = parse_layout(t); }},
    SimKey{"signal", "SPEC", "what stands on the channels (a tone that rises with the channel)",
           [](SimArguments& a, Text t) { a.signal = std::string(t); }},
    SimKey{"seed", "N", "of the noise and of the faults (1)",
           [](SimArguments& a, Text t) { a.seed = parse_count("seed", t); }},
    SimKey{"frames", "N", "frames until the end (endless)",
           [](SimArguments& a, Text t) { a.frames = parse_count("frames", t); }},
    SimKey{"duration", "SECONDS", "of signal until the end, rounded up to whole frames",
           [](SimArguments& a, Text t) { a.duration_s = parse_real("duration", t); }},
    SimKey{"pace", "PACE", "realtime, or asap: as fast as there is room (realtime)",
           [](SimArguments& a, Text t) { a.pace = parse_pace(t); }},
    SimKey{"generate", "HOW", "once: the ring is filled and replayed; each: every frame is new",
           [](SimArguments& a, Text t) { a.generate = parse_generate(t); }},
    SimKey{"drop", "FRACTION", "fraction of frames lost at random (0)",
           [](SimArguments& a, Text t) { a.faults.drop = parse_real("drop", t); }},
    SimKey{"drop-every", "N", "every Nth frame is lost",
           [](SimArguments& a, Text t) { a.faults.drop_every = parse_count("drop-every", t); }},
    SimKey{"repeat-every", "N", "every Nth frame is published twice",
           [](SimArguments& a, Text t) { a.faults.repeat_every = parse_count("repeat-every", t); }},
    SimKey{"pause-every", "N", "a pause before every Nth frame",
           [](SimArguments& a, Text t) { a.faults.pause_every = parse_count("pause-every", t); }},
    SimKey{"pause-ms", "MS", "length of a pause (10)",
           [](SimArguments& a, Text t) { a.faults.pause_ms = parse_real("pause-ms", t); }},
    SimKey{"over-range-every", "N", "a burst at the ADC's rails in every Nth frame",
           [](SimArguments& a, Text t) {
               a.faults.over_range_every = parse_count("over-range-every", t);
           }},
    SimKey{"write-raw", "FILE", "also write the samples of every frame to FILE",
           [](SimArguments& a, Text t) { a.write_raw = std::string(t); }},
    SimKey{"write-framed", "FILE", "also write every frame as a card sends it; FIFO or - will do",
           [](SimArguments& a, Text t) { a.write_framed = std::string(t); }},
};

std::optional<uint64_t> frame_count(const SimArguments& arguments, const Stream& stream) {
    if (!arguments.duration_s) {
        return arguments.frames;
    }
    if (arguments.frames) {
        throw UsageError("simulator: both frames and duration are given: give one of them");
    }
    const double frames =
        std::ceil(*arguments.duration_s * stream.rate.value() / stream.geometry.samples);
    if (!(frames >= 1 && frames < static_cast<double>(most_samples))) {
        refuse("duration", std::to_string(*arguments.duration_s),
               "give the seconds of signal, more than 0");
    }
    return static_cast<uint64_t>(frames);
}

Stream stream_of(const SimArguments& arguments) {
    Stream stream;
    FrameGeometry& geometry = stream.geometry;
    geometry.channels = arguments.channels.value_or(geometry.channels);
    geometry.samples = arguments.samples.value_or(geometry.samples);
    geometry.format = arguments.format.value_or(geometry.format);
    geometry.layout = arguments.layout.value_or(geometry.layout);
    geometry.validate();
    stream.rate = arguments.rate.value_or(Rational{10'000'000, 1});
    if (arguments.pace == Pace::realtime && stream.frame_period_ns() > longest_frame_s * 1e9) {
        refuse("rate", stream.rate.text(),
               "a frame would take more than an hour in real time: give a higher rate, fewer "
               "samples or pace=asap");
    }
    return stream;
}

std::string faults_text(const FaultOptions& faults) {
    std::string text;
    const auto every = [&text](const char* what, uint64_t count) {
        text += count > 0 ? std::string(", ") + what + " every " + std::to_string(count) + " frames"
                          : std::string();
    };
    text += faults.drop > 0 ? ", drops " + std::to_string(faults.drop) + " of the frames" : "";
    every("drops one", faults.drop_every);
    every("repeats one", faults.repeat_every);
    every("pauses", faults.pause_every);
    every("over range", faults.over_range_every);
    return text;
}

}  // namespace

std::span<const SimKey> sim_keys() {
    return keys;
}

void take_from(SourceUri& uri, SimArguments& arguments) {
    for (const SimKey& key : keys) {
        if (const std::optional<std::string> value = uri.take(std::string(key.name))) {
            key.set(arguments, *value);
        }
    }
}

std::optional<uint64_t> SimOptions::total_samples() const {
    if (!frames || faults.drops()) {
        return std::nullopt;
    }
    return *frames * stream.geometry.samples;
}

std::string SimOptions::text() const {
    return "simulated " + signal.text + ", seed " + std::to_string(seed) + ", " +
           (pace == Pace::realtime ? "in real time" : "as fast as possible") + ", " +
           (generate == Generate::once ? "generated once and replayed round the ring"
                                       : "each frame generated") +
           (frames ? ", " + std::to_string(*frames) + " frames" : "") + faults_text(faults);
}

SimOptions complete_sim_options(const SimArguments& arguments) {
    SimOptions options;
    options.stream = stream_of(arguments);
    options.signal = parse_signal(arguments.signal.value_or(default_signal(options.stream)));
    options.seed = arguments.seed;
    options.frames = frame_count(arguments, options.stream);
    if (options.frames && (*options.frames == 0 ||
                           *options.frames > most_samples / options.stream.geometry.samples)) {
        refuse("frames", std::to_string(*options.frames),
               "give 1 or more, and at most 2^62 samples in all");
    }
    options.pace = arguments.pace;
    options.generate = arguments.generate.value_or(options.pace == Pace::realtime ? Generate::once
                                                                                  : Generate::each);
    options.faults = arguments.faults;
    options.faults.validate();
    options.write_raw = arguments.write_raw;
    options.write_framed = arguments.write_framed;
    return options;
}

}  // namespace echelle
