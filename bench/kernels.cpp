// The Welch engine against its limit, bare FFTW with the same plans over the same blocks, for every
// kind of frame; the engine also on each SIMD target that this CPU has.
//
// `s_per_frame` is CPU time. Run with --benchmark_enable_random_interleaving=true and repetitions,
// so that what is compared is measured side by side (bench/run.py does).
#include "worker/kernels.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <hwy/highway.h>

#include "bench/welch_work.hpp"
#include "common/topology.hpp"

namespace echelle::bench {
namespace {

// Longer than any cache, shorter than the product's ring: all shapes are in memory at once.
constexpr uint64_t ring_frames = 96;

struct Case {
    std::string name;
    WorkShape shape;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Layout layout : {Layout::channel_major, Layout::sample_major}) {
        for (const SampleFormat format : {SampleFormat::i16, SampleFormat::ci16}) {
            for (const uint64_t average : {16, 1}) {
                WorkShape shape;
                shape.geometry.layout = layout;
                shape.geometry.format = format;
                shape.average = average;
                shape.ring_frames = ring_frames;
                all.push_back({std::string(name_of(layout)) + "/" + std::string(name_of(format)) +
                                   "/average:" + std::to_string(average),
                               shape});
            }
        }
    }
    return all;
}

// Made at first use and kept: repetitions come back to it. One for each target, by which the plans
// choose who transforms.
WelchWork& work_of(const Case& each, int64_t target) {
    static std::map<std::string, std::unique_ptr<WelchWork>> kept;
    std::unique_ptr<WelchWork>& work = kept[each.name + std::to_string(target)];
    if (!work) {
        work = std::make_unique<WelchWork>(each.shape);
    }
    return *work;
}

void report(benchmark::State& state, const WelchWork& work) {
    using benchmark::Counter;
    state.counters["s_per_frame"] =
        Counter(static_cast<double>(state.iterations()) * work.group_frames(),
                Counter::kIsRate | Counter::kInvert);
}

void bare_fft(benchmark::State& state, const Case& each) {
    WelchWork& work = work_of(each, 0);
    uint64_t group = 1;
    for (auto _ : state) {
        work.transform(group++);
    }
    report(state, work);
}

void engine(benchmark::State& state, const Case& each, int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    WelchWork& work = work_of(each, target);
    state.SetLabel(kernels::target());
    uint64_t group = 1;
    for (auto _ : state) {
        work.compute(group++);
    }
    report(state, work);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void register_all() {
    for (const Case& each : cases()) {
        benchmark::RegisterBenchmark(("bare_fft/" + each.name).c_str(), bare_fft, each);
        benchmark::RegisterBenchmark(("engine/" + each.name).c_str(), engine, each, 0);
        if (each.shape.average != 16 || each.shape.geometry.is_complex()) {
            continue;
        }
        for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
            const std::string name =
                "engine/" + each.name + "/target:" + std::string(hwy::TargetName(target));
            benchmark::RegisterBenchmark(name.c_str(), engine, each, target);
        }
    }
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    echelle::bind_this_thread(echelle::usable_cpus().front().number);
    echelle::bench::register_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
