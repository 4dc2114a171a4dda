// A fixed amount of work for callgrind to count: groups of frames through the Welch engine for each
// kind of frame, and sealed packets. bench/instructions.py runs it and compares the counts.
//
// The counts must be the same on every machine, so everything that chooses by CPU is pinned: the
// kernels to AVX2, and FFTW to estimated plans (whose instructions are left out, since its codelets
// follow the CPU). Prints what was done as JSON: name -> units of work.
// Exit code 77 where the CPU has no AVX2.
#include <cstdio>
#include <iostream>
#include <string>

#include <hwy/highway.h>
#include <hwy/nanobenchmark.h>
#include <nlohmann/json.hpp>
#include <valgrind/callgrind.h>

#include "bench/welch_work.hpp"

// libhwy calls this when it is loaded, to no purpose of ours, and does so with RDTSCP, which
// valgrind refuses on CPUs that do not announce it. Ours goes before the library's.
namespace hwy::platform {
uint64_t TimerResolution() {
    return 1;
}
}  // namespace hwy::platform

namespace echelle::bench {
namespace {

constexpr int exit_skipped = 77;
constexpr uint32_t channels = 16;  // instructions per frame grow with it, nothing else changes
constexpr uint64_t groups = 2;

// Counts body() under the name, apart from all others.
template <typename Body>
void count(const std::string& name, Body body) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    body();
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    CALLGRIND_STOP_INSTRUMENTATION;
}

void count_shape(const std::string& name, const WorkShape& shape, nlohmann::json& done) {
    WelchWork work(shape);
    count("frame " + name, [&] {
        for (uint64_t group = 1; group <= groups; ++group) {
            work.compute(group);
        }
    });
    done["frame " + name] = groups * work.group_frames();
}

void count_sealing(const WorkShape& shape, nlohmann::json& done) {
    WelchWork work(shape);
    work.compute(1);
    count("seal packet", [&] { work.seal(1); });
    done["seal packet"] = work.channels();
}

int run() {
    if ((hwy::SupportedTargets() & HWY_AVX2) == 0) {
        std::fprintf(stderr, "instruction_count: this CPU has no AVX2, which the counts are of\n");
        return exit_skipped;
    }
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    nlohmann::json done;
    WorkShape shape;
    shape.geometry.channels = channels;
    shape.ring_frames = 64;
    shape.effort = FftEffort::estimate;
    shape.fft = FftKind::fftw;
    for (const Layout layout : {Layout::channel_major, Layout::sample_major}) {
        for (const SampleFormat format : {SampleFormat::i16, SampleFormat::ci16}) {
            for (const uint64_t average : {16, 1}) {
                shape.geometry.layout = layout;
                shape.geometry.format = format;
                shape.average = average;
                count_shape(std::string(name_of(layout)) + " " + std::string(name_of(format)) +
                                " average " + std::to_string(average),
                            shape, done);
            }
        }
    }
    shape = WorkShape();
    shape.geometry.channels = channels;
    shape.ring_frames = 64;
    shape.fft = FftKind::own;
    count_shape("own transform channel-major i16 average 16", shape, done);
    count_sealing(shape, done);
    std::cout << done.dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace echelle::bench

int main() {
    try {
        return echelle::bench::run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "instruction_count: %s\n", error.what());
        return 1;
    }
}
