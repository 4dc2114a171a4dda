// What one core needs for a frame without any cluster around it: bare FFTW, the Welch engine, and
// sealing the packets, in turns of some milliseconds, so that all three see the same machine.
//
//   kernel_alone --layout channel-major --average 16 --workers 2 --cpu 1 --seconds 2
//
// Prints one JSON object: medians over the turns, CPU time in microseconds per frame, and the
// median of the ratio of neighbouring turns.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/welch_work.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/topology.hpp"

namespace echelle::bench {
namespace {

constexpr int64_t turn_ns = 5'000'000;

struct Turns {
    std::vector<double> bare_fft_us;
    std::vector<double> engine_us;
    std::vector<double> seal_us;
    std::vector<double> ratio;
};

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// CPU time per frame of `body(group)` over one turn.
template <typename Body>
double us_per_frame(const WelchWork& work, uint64_t& group, Body body) {
    const int64_t began_ns = thread_cpu_ns();
    uint64_t groups = 0;
    int64_t used_ns = 0;
    while (used_ns < turn_ns) {
        body(group++);
        ++groups;
        used_ns = thread_cpu_ns() - began_ns;
    }
    return static_cast<double>(used_ns) / 1000.0 /
           static_cast<double>(groups * work.group_frames());
}

Turns measure(WelchWork& work, double seconds) {
    Turns turns;
    uint64_t group = 1;
    const int64_t end_ns = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
    do {
        const double bare = us_per_frame(work, group, [&](uint64_t g) { work.transform(g); });
        const double engine = us_per_frame(work, group, [&](uint64_t g) { work.compute(g); });
        const double seal = us_per_frame(work, group, [&](uint64_t g) { work.seal(g); });
        turns.bare_fft_us.push_back(bare);
        turns.engine_us.push_back(engine);
        turns.seal_us.push_back(seal);
        turns.ratio.push_back(engine / bare);
    } while (monotonic_ns() < end_ns);
    return turns;
}

int run(int argc, char** argv) {
    std::string layout = "channel-major";
    std::string format = "i16";
    std::string fft = "auto";
    double seconds = 2.0;
    unsigned int cpu = usable_cpus().front().number;
    WorkShape shape;
    CLI::App app("The Welch engine on one core, beside bare FFTW.");
    app.add_option("--layout", layout, "channel-major or sample-major");
    app.add_option("--format", format, "i16 or ci16");
    app.add_option("--channels", shape.geometry.channels, "Channels (128)");
    app.add_option("--average", shape.average, "Frames of one spectrum (16)");
    app.add_option("--workers", shape.workers, "Workers that the blocks are cut for (1)");
    app.add_option("--cpu", cpu, "CPU to run on");
    app.add_option("--fft", fft, "The engine's transform: auto, own or fftw (auto)");
    app.add_option("--seconds", seconds, "How long to measure (2)");
    CLI11_PARSE(app, argc, argv);
    shape.geometry.layout = parse_layout(layout);
    shape.geometry.format = parse_sample_format(format);
    shape.fft = parse_fft_kind(fft);

    bind_this_thread(cpu);
    WelchWork work(shape);
    const Turns turns = measure(work, seconds);
    const nlohmann::json result = {{"bare_fft_us", median_of(turns.bare_fft_us)},
                                   {"engine_us", median_of(turns.engine_us)},
                                   {"seal_us", median_of(turns.seal_us)},
                                   {"engine_over_bare_fft", median_of(turns.ratio)},
                                   {"turns", turns.ratio.size()},
                                   {"block_frames", work.group_frames()},
                                   {"plan", work.plans().description()},
                                   {"kernels", WelchEngine::kernel_target()}};
    std::cout << result.dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    try {
        return echelle::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kernel_alone: %s\n", error.what());
        return 2;
    }
}
