// The ledger alone, without any process around it: what a block's way through it costs in one
// thread, and what a claim costs when blocks before it are already taken.
#include "common/ledger.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/topology.hpp"

namespace echelle::bench {
namespace {

LedgerShape shape_of(uint32_t capacity) {
    LedgerShape shape;
    shape.capacity = capacity;
    shape.most_frames = 5;
    shape.workers = 2;
    shape.result_bytes = 64;
    return shape;
}

BlockDescriptor example_block() {
    BlockDescriptor block;
    block.listed_frames = 5;
    block.own_frames = 4;
    block.channel_count = 32;
    block.blocks_in_group = 4;
    return block;
}

constexpr std::array<uint64_t, 5> positions{0, 1, 2, 3, 4};

// FREE -> READY -> CLAIMED -> DONE -> FREE.
void whole_cycle(benchmark::State& state) {
    Ledger ledger(shape_of(64));
    const BlockDescriptor block = example_block();
    for (auto _ : state) {
        const uint64_t number = ledger.open(block, positions);
        const auto claim = ledger.claim_oldest(0, 1);
        ledger.finish(*claim);
        ledger.retire(number);
    }
    state.SetItemsProcessed(state.iterations());
}

// READY -> CLAIMED -> DONE, what a worker does for each block.
void claim_and_finish(benchmark::State& state) {
    constexpr uint32_t capacity = 64;
    Ledger ledger(shape_of(capacity));
    const BlockDescriptor block = example_block();
    uint64_t next = 0;
    while (state.KeepRunningBatch(capacity)) {
        state.PauseTiming();
        for (; next < ledger.opened(); ++next) {
            ledger.retire(next);
        }
        for (uint32_t i = 0; i < capacity; ++i) {
            ledger.open(block, positions);
        }
        state.ResumeTiming();
        for (uint32_t i = 0; i < capacity; ++i) {
            ledger.finish(*ledger.claim_oldest(0, 1));
        }
    }
    state.SetItemsProcessed(state.iterations());
}

// A worker looks for work and finds none, though `range` blocks are in others' hands.
void look_in_vain(benchmark::State& state) {
    const auto taken = static_cast<uint32_t>(state.range(0));
    Ledger ledger(shape_of(taken));
    const BlockDescriptor block = example_block();
    for (uint32_t i = 0; i < taken; ++i) {
        ledger.open(block, positions);
        ledger.claim_oldest(0, 1);
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(ledger.claim_oldest(1, 1));
    }
}

BENCHMARK(whole_cycle);
BENCHMARK(claim_and_finish);
BENCHMARK(look_in_vain)->Arg(4)->Arg(256);

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    echelle::bind_this_thread(echelle::usable_cpus().front().number);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
