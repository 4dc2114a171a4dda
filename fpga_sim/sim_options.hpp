// What the simulator is asked to do. The same keys serve a source URI (sim:?seed=7&pace=asap) and
// the command line of echelle-fpga-sim (--seed 7 --pace asap); one table holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/source_uri.hpp"
#include "common/stream.hpp"
#include "fpga_sim/faults.hpp"
#include "fpga_sim/signal_language.hpp"

namespace echelle {

enum class Pace {
    realtime,  // a frame is published when its last sample would have been taken
    asap,      // as soon as it is made and there is room
};
enum class Generate {
    once,  // the ring's slots are filled beforehand; then only their stamps advance
    each,  // every frame is made anew
};

// As the user gives them; absent means that the user gave nothing.
struct SimArguments {
    std::optional<uint32_t> channels;
    std::optional<uint32_t> samples;
    std::optional<Rational> rate;
    std::optional<SampleFormat> format;
    std::optional<Layout> layout;
    std::optional<std::string> signal;
    uint64_t seed = 1;
    std::optional<uint64_t> frames;
    std::optional<double> duration_s;
    Pace pace = Pace::realtime;
    std::optional<Generate> generate;
    FaultOptions faults;
    std::string write_raw;
    std::string write_framed;
};

struct SimKey {
    std::string_view name;  // in a URI; with "--" before it on the command line
    std::string_view type;  // for the help text
    std::string_view meaning;
    // Takes the value as written. Throws UsageError.
    void (*set)(SimArguments& arguments, std::string_view text);
};
std::span<const SimKey> sim_keys();

// Takes every key that the URI has; what it has not stays as it is. Throws UsageError.
void take_from(SourceUri& uri, SimArguments& arguments);

// Complete and checked.
struct SimOptions {
    Stream stream;  // epoch_ns is 0: whoever opens the stream sets it
    SignalSpec signal;
    uint64_t seed = 1;
    std::optional<uint64_t> frames;  // frame indices of the stream, dropped ones included
    Pace pace = Pace::realtime;
    Generate generate = Generate::once;
    FaultOptions faults;
    std::string write_raw;     // empty: no file
    std::string write_framed;  // the same

    // Samples per channel, when they are finite and none is dropped.
    std::optional<uint64_t> total_samples() const;
    // One line for a report.
    std::string text() const;
};

// Puts the defaults in (128 channels x 2048 samples, 10 MS/s, i16, channel-major; the default
// signal; generate once in real time, each otherwise) and checks everything that can be checked
// without the ring. Throws UsageError.
SimOptions complete_sim_options(const SimArguments& arguments);

}  // namespace echelle
