// The kernels that stay in integers: sums, statistics and the transposition of sample-major
// frames. Compiled once for every SIMD target (Highway's foreach_target).
#include <algorithm>

#include "worker/kernels.hpp"
#include "worker/kernels_scalar.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/sample_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echelle::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

using scalar::statistics_complex;
using scalar::statistics_real;
using scalar::sum_complex;
using scalar::sum_real;
using scalar::transpose_complex;
using scalar::transpose_real;

#else

namespace hn = hwy::HWY_NAMESPACE;

using Samples = hn::ScalableTag<int16_t>;
using SampleVector = hn::Vec<Samples>;
using Words = hn::RepartitionToWide<Samples>;
using WordVector = hn::Vec<Words>;
using Totals = hn::RepartitionToWide<hn::Repartition<uint32_t, Samples> >;

// A 32-bit lane gains at most 2 * 32768 with each vector (and a count at most 2), so this many
// vectors can be added before the lanes must be drained into 64 bits.
constexpr size_t kVectorsPerDrain = 16384;

// What is to be multiplied with (re, im, ...) to get each part's sum: 1s for real channels; for
// complex ones a 1 in the even or odd lanes.
struct Selectors {
    SampleVector re;
    SampleVector im;
};

HWY_INLINE Selectors selectors_of(bool is_complex) {
    const Samples d;
    const Words words;
    if (!is_complex) {
        return {hn::Set(d, 1), hn::Zero(d)};
    }
    const auto low = hn::BitCast(d, hn::Set(words, 1));
    return {low, hn::Sub(hn::Set(d, 1), low)};
}

// sum + the products of a and b, added in neighbouring pairs.
HWY_INLINE WordVector add_products(SampleVector a, SampleVector b, WordVector sum) {
    const Words words;
    WordVector rest = hn::Zero(words);
    sum = hn::ReorderWidenMulAccumulate(words, a, b, sum, rest);
    return hn::Add(sum, rest);
}

HWY_INLINE int64_t total_of(WordVector sums) {
    const hn::RepartitionToWide<Words> wide;
    const auto pairs = hn::BitCast(wide, sums);
    const auto odd = hn::ShiftRight<32>(pairs);
    const auto even = hn::ShiftRight<32>(hn::ShiftLeft<32>(pairs));
    return hn::GetLane(hn::SumOfLanes(wide, hn::Add(even, odd)));
}

// The squares of a pair of samples of -32768 add up to 2^31: right as an unsigned word only, and
// too much to be added again in 32 bits.
HWY_INLINE hn::Vec<Totals> add_squares(SampleVector x, hn::Vec<Totals> total) {
    const Totals totals;
    const Words words;
    const auto squares = hn::BitCast(totals, add_products(x, x, hn::Zero(words)));
    const auto low_half = hn::Set(totals, 0xFFFFFFFFU);
    total = hn::Add(total, hn::And(squares, low_half));
    return hn::Add(total, hn::ShiftRight<32>(squares));
}

// -1 in each word that holds a sample out of range, once for a complex one; for real channels each
// of the two samples counts.
template <bool kComplex>
HWY_INLINE WordVector over_range_of(SampleVector x, SampleVector low, SampleVector high,
                                    WordVector count) {
    const Samples d;
    const Words words;
    const auto inside = hn::And(hn::Gt(x, low), hn::Lt(x, high));
    const SampleVector outside = hn::Not(hn::VecFromMask(d, inside));
    if constexpr (kComplex) {
        const auto any = hn::Ne(hn::BitCast(words, outside), hn::Zero(words));
        return hn::Sub(count, hn::VecFromMask(words, any));
    } else {
        return add_products(outside, hn::Set(d, -1), count);
    }
}

struct Drain {
    size_t values;  // handled, of the values asked for
    RunSums sums;
};

// Samples out of range among `whole` values, a multiple of the vector's length.
template <bool kComplex>
HWY_INLINE uint64_t count_over_range(const int16_t* samples, size_t whole, SampleVector low,
                                     SampleVector high) {
    const Samples d;
    WordVector over = hn::Zero(Words());
    for (size_t i = 0; i < whole; i += hn::Lanes(d)) {
        over = over_range_of<kComplex>(hn::LoadU(d, samples + i), low, high, over);
    }
    return static_cast<uint64_t>(total_of(over));
}

// As many whole vectors as there are, kVectorsPerDrain at most. Hardly any run of samples has one
// out of range, so that is looked at by the extremes first and counted only where it is so.
template <bool kComplex, bool kStatistics>
HWY_INLINE Drain drain(const int16_t* samples, size_t values, int16_t low, int16_t high) {
    const Samples d;
    const Words words;
    const Totals totals;
    const size_t lanes = hn::Lanes(d);
    const size_t whole = std::min(values / lanes, kVectorsPerDrain) * lanes;
    const Selectors select = selectors_of(kComplex);
    WordVector re = hn::Zero(words);
    WordVector im = hn::Zero(words);
    SampleVector lowest = hn::Set(d, 0);
    SampleVector highest = hn::Set(d, 0);
    auto squares = hn::Zero(totals);
    for (size_t i = 0; i < whole; i += lanes) {
        const SampleVector x = hn::LoadU(d, samples + i);
        re = add_products(x, select.re, re);
        if constexpr (kComplex) {
            im = add_products(x, select.im, im);
        }
        if constexpr (kStatistics) {
            squares = add_squares(x, squares);
            lowest = hn::Min(lowest, x);
            highest = hn::Max(highest, x);
        }
    }
    RunSums sums;
    sums.sum_re = total_of(re);
    sums.sum_im = kComplex ? total_of(im) : 0;
    if constexpr (kStatistics) {
        sums.sum_squares = hn::GetLane(hn::SumOfLanes(totals, squares));
        const SampleVector at_low = hn::Set(d, low);
        const SampleVector at_high = hn::Set(d, high);
        const auto inside = hn::And(hn::Gt(lowest, at_low), hn::Lt(highest, at_high));
        if (!hn::AllTrue(d, inside)) {
            sums.over_range = count_over_range<kComplex>(samples, whole, at_low, at_high);
        }
    }
    return {whole, sums};
}

HWY_INLINE void add(RunSums& total, const RunSums& part) {
    total.sum_re += part.sum_re;
    total.sum_im += part.sum_im;
    total.sum_squares += part.sum_squares;
    total.over_range += part.over_range;
}

// The sums over the whole vectors among `values` int16 values; `done` says how many those were.
template <bool kComplex, bool kStatistics>
HWY_INLINE RunSums vector_sums(const int16_t* samples, size_t values, int16_t low, int16_t high,
                               size_t& done) {
    RunSums total;
    done = 0;
    for (;;) {
        const Drain part = drain<kComplex, kStatistics>(samples + done, values - done, low, high);
        if (part.values == 0) {
            return total;
        }
        add(total, part.sums);
        done += part.values;
    }
}

RunSums sum_real(const int16_t* samples, size_t count) {
    size_t done = 0;
    RunSums total = vector_sums<false, false>(samples, count, 0, 0, done);
    add(total, scalar::sum_real(samples + done, count - done));
    return total;
}

RunSums sum_complex(const int16_t* samples, size_t count) {
    size_t done = 0;
    RunSums total = vector_sums<true, false>(samples, 2 * count, 0, 0, done);
    add(total, scalar::sum_complex(samples + done, count - done / 2));
    return total;
}

RunSums statistics_real(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    size_t done = 0;
    RunSums total = vector_sums<false, true>(samples, count, low, high, done);
    add(total, scalar::statistics_real(samples + done, count - done, low, high));
    return total;
}

RunSums statistics_complex(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    size_t done = 0;
    RunSums total = vector_sums<true, true>(samples, 2 * count, low, high, done);
    add(total, scalar::statistics_complex(samples + done, count - done / 2, low, high));
    return total;
}

// The transposition's vectors: as many 128-bit blocks as the target has, four at most. Each block
// holds eight channels of one sample; the next block is eight samples on.
using Tile = hn::CappedTag<int16_t, 32>;
constexpr size_t kTileSamples = hn::MaxLanes(Tile());

template <size_t kBlocks>
HWY_INLINE auto load_blocks(const int16_t* from, size_t block_stride) {
    if constexpr (kBlocks == 1) {
        return hn::LoadU(hn::CappedTag<int16_t, 8>(), from);
    } else {
        constexpr size_t half = kBlocks / 2;
        return hn::Combine(hn::CappedTag<int16_t, 8 * kBlocks>(),
                           load_blocks<half>(from + half * block_stride, block_stride),
                           load_blocks<half>(from, block_stride));
    }
}

// kTileSamples samples of eight channels: three stages of interleaving, of 16, 32 and 64 bits, in
// each block alike.
HWY_INLINE void transpose_tile(const int16_t* from, size_t from_stride, int16_t* to,
                               size_t to_stride) {
    const Tile d;
    const hn::RepartitionToWide<Tile> d32;
    const hn::RepartitionToWide<decltype(d32)> d64;
    constexpr size_t blocks = kTileSamples / 8;
    const size_t block_stride = 8 * from_stride;
    hn::Vec<decltype(d64)> quarters[8];
    for (size_t half = 0; half < 2; ++half) {
        const int16_t* row = from + 4 * half * from_stride;
        const auto r0 = load_blocks<blocks>(row, block_stride);
        const auto r1 = load_blocks<blocks>(row + from_stride, block_stride);
        const auto r2 = load_blocks<blocks>(row + 2 * from_stride, block_stride);
        const auto r3 = load_blocks<blocks>(row + 3 * from_stride, block_stride);
        const auto lower01 = hn::BitCast(d32, hn::InterleaveLower(d, r0, r1));
        const auto upper01 = hn::BitCast(d32, hn::InterleaveUpper(d, r0, r1));
        const auto lower23 = hn::BitCast(d32, hn::InterleaveLower(d, r2, r3));
        const auto upper23 = hn::BitCast(d32, hn::InterleaveUpper(d, r2, r3));
        quarters[half] = hn::BitCast(d64, hn::InterleaveLower(d32, lower01, lower23));
        quarters[2 + half] = hn::BitCast(d64, hn::InterleaveUpper(d32, lower01, lower23));
        quarters[4 + half] = hn::BitCast(d64, hn::InterleaveLower(d32, upper01, upper23));
        quarters[6 + half] = hn::BitCast(d64, hn::InterleaveUpper(d32, upper01, upper23));
    }
    for (size_t c = 0; c < 8; c += 2) {
        const auto even = hn::InterleaveLower(d64, quarters[c], quarters[c + 1]);
        const auto odd = hn::InterleaveUpper(d64, quarters[c], quarters[c + 1]);
        hn::StoreU(hn::BitCast(d, even), d, to + c * to_stride);
        hn::StoreU(hn::BitCast(d, odd), d, to + (c + 1) * to_stride);
    }
}

// Four samples of four complex channels, moved as 32-bit words.
HWY_INLINE void transpose_4x4(const int16_t* from, size_t from_stride, int16_t* to,
                              size_t to_stride) {
    const hn::CappedTag<int16_t, 8> d;
    const hn::RepartitionToWide<decltype(d)> d32;
    const hn::RepartitionToWide<decltype(d32)> d64;
    const auto r0 = hn::BitCast(d32, hn::LoadU(d, from));
    const auto r1 = hn::BitCast(d32, hn::LoadU(d, from + from_stride));
    const auto r2 = hn::BitCast(d32, hn::LoadU(d, from + 2 * from_stride));
    const auto r3 = hn::BitCast(d32, hn::LoadU(d, from + 3 * from_stride));
    const auto lower01 = hn::BitCast(d64, hn::InterleaveLower(d32, r0, r1));
    const auto upper01 = hn::BitCast(d64, hn::InterleaveUpper(d32, r0, r1));
    const auto lower23 = hn::BitCast(d64, hn::InterleaveLower(d32, r2, r3));
    const auto upper23 = hn::BitCast(d64, hn::InterleaveUpper(d32, r2, r3));
    const auto store = [&](auto row, size_t c) {
        hn::StoreU(hn::BitCast(d, row), d, to + c * to_stride);
    };
    store(hn::InterleaveLower(d64, lower01, lower23), 0);
    store(hn::InterleaveUpper(d64, lower01, lower23), 1);
    store(hn::InterleaveLower(d64, upper01, upper23), 2);
    store(hn::InterleaveUpper(d64, upper01, upper23), 3);
}

// A sample of all channels takes some hundred bytes, so that a page ends, and with it the
// hardware's prefetching, after a few samples: they are asked for that far ahead.
constexpr size_t kSamplesAhead = 64;

HWY_INLINE void ask_for_samples(const int16_t* samples, size_t stride, size_t count, bool exist) {
    for (size_t s = 0; exist && s < count; ++s) {
        hwy::Prefetch(samples + s * stride);
    }
}

void transpose_real(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                    int16_t* rows, size_t row_stride) {
    const size_t whole_channels = channels / 8 * 8;
    const size_t whole_count = count / kTileSamples * kTileSamples;
    for (size_t s = 0; s < whole_count; s += kTileSamples) {
        const int16_t* const from = samples + s * sample_stride;
        ask_for_samples(from + kSamplesAhead * sample_stride, sample_stride, kTileSamples,
                        count - s > kSamplesAhead + kTileSamples);
        for (size_t c = 0; c < whole_channels; c += 8) {
            transpose_tile(from + c, sample_stride, rows + c * row_stride + s, row_stride);
        }
    }
    scalar::transpose_real(samples + whole_channels, sample_stride, channels - whole_channels,
                           count, rows + whole_channels * row_stride, row_stride);
    scalar::transpose_real(samples + whole_count * sample_stride, sample_stride, whole_channels,
                           count - whole_count, rows + whole_count, row_stride);
}

void transpose_complex(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                       int16_t* rows, size_t row_stride) {
    const size_t whole_channels = channels / 4 * 4;
    const size_t whole_count = count / 4 * 4;
    for (size_t s = 0; s < whole_count; s += 4) {
        for (size_t c = 0; c < whole_channels; c += 4) {
            transpose_4x4(samples + s * sample_stride + 2 * c, sample_stride,
                          rows + c * row_stride + 2 * s, row_stride);
        }
    }
    scalar::transpose_complex(samples + 2 * whole_channels, sample_stride,
                              channels - whole_channels, count, rows + whole_channels * row_stride,
                              row_stride);
    scalar::transpose_complex(samples + whole_count * sample_stride, sample_stride, whole_channels,
                              count - whole_count, rows + 2 * whole_count, row_stride);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace echelle::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelle::kernels {

HWY_EXPORT(sum_real);
HWY_EXPORT(sum_complex);
HWY_EXPORT(statistics_real);
HWY_EXPORT(statistics_complex);
HWY_EXPORT(transpose_real);
HWY_EXPORT(transpose_complex);

RunSums sum_real(const int16_t* samples, size_t count) {
    return HWY_DYNAMIC_DISPATCH(sum_real)(samples, count);
}

RunSums sum_complex(const int16_t* samples, size_t count) {
    return HWY_DYNAMIC_DISPATCH(sum_complex)(samples, count);
}

RunSums statistics_real(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    return HWY_DYNAMIC_DISPATCH(statistics_real)(samples, count, low, high);
}

RunSums statistics_complex(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    return HWY_DYNAMIC_DISPATCH(statistics_complex)(samples, count, low, high);
}

void transpose_real(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                    int16_t* rows, size_t row_stride) {
    HWY_DYNAMIC_DISPATCH(transpose_real)(samples, sample_stride, channels, count, rows, row_stride);
}

void transpose_complex(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                       int16_t* rows, size_t row_stride) {
    HWY_DYNAMIC_DISPATCH(transpose_complex)
    (samples, sample_stride, channels, count, rows, row_stride);
}

}  // namespace echelle::kernels
#endif  // HWY_ONCE
