// Compiled once for every SIMD target (Highway's foreach_target).
#include "worker/split_kernels.hpp"

#include <algorithm>
#include <numbers>

#include "common/invariant.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/split_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echelle::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

size_t split_lanes() {
    return 0;
}
void split_first_pass_pair(const SplitPass& /*pass*/, const int16_t* /*a*/, const int16_t* /*b*/,
                           const float* /*window*/, SegmentMean /*mean_a*/, SegmentMean /*mean_b*/,
                           SplitRows /*out*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void split_first_pass_complex(const SplitPass& /*pass*/, const int16_t* /*samples*/,
                              const float* /*window*/, SegmentMean /*mean_re*/,
                              SegmentMean /*mean_im*/, SplitRows /*out*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void split_pass(const SplitPass& /*pass*/, SplitRows /*in*/, SplitRows /*out*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void add_split_pair_power(SplitRows /*z*/, uint32_t /*nperseg*/, float* /*a*/, float* /*b*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void max_split_pair_power(SplitRows /*z*/, uint32_t /*nperseg*/, float* /*a*/, float* /*b*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void add_split_power(SplitRows /*z*/, uint32_t /*nperseg*/, float* /*power*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}
void max_split_power(SplitRows /*z*/, uint32_t /*nperseg*/, float* /*power*/) {
    ECHELLE_INVARIANT(split_lanes() > 0);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;
using Words = hn::Rebind<int32_t, Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());

size_t split_lanes() {
    return kLanes;
}

struct Complex {
    Vector re;
    Vector im;
};

HWY_INLINE Complex operator+(const Complex& a, const Complex& b) {
    return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE Complex operator-(const Complex& a, const Complex& b) {
    return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
HWY_INLINE Complex operator*(const Complex& a, const Complex& w) {
    return {hn::NegMulAdd(a.im, w.im, hn::Mul(a.re, w.re)),
            hn::MulAdd(a.im, w.re, hn::Mul(a.re, w.im))};
}
// a - i b and a + i b
HWY_INLINE Complex minus_i(const Complex& a, const Complex& b) {
    return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
HWY_INLINE Complex plus_i(const Complex& a, const Complex& b) {
    return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}

HWY_INLINE Complex load(SplitRows rows, size_t i) {
    const Floats d;
    return {hn::Load(d, rows.re + i), hn::Load(d, rows.im + i)};
}
HWY_INLINE void store(const Complex& z, SplitRows rows, size_t i) {
    const Floats d;
    hn::Store(z.re, d, rows.re + i);
    hn::Store(z.im, d, rows.im + i);
}

// The transform of four values: y[k] = sum_j x[j] (-i)^(jk).
HWY_INLINE void transform_4(const Complex (&x)[4], Complex (&y)[4]) {
    const Complex even_sum = x[0] + x[2];
    const Complex even_difference = x[0] - x[2];
    const Complex odd_sum = x[1] + x[3];
    const Complex odd_difference = x[1] - x[3];
    y[0] = even_sum + odd_sum;
    y[1] = minus_i(even_difference, odd_difference);
    y[2] = even_sum - odd_sum;
    y[3] = plus_i(even_difference, odd_difference);
}

// a e^(-i pi / 4) and a e^(-3 i pi / 4)
HWY_INLINE Complex turned_by_1_8(const Complex& a) {
    const Vector c = hn::Set(Floats(), std::numbers::sqrt2_v<float> / 2.0F);
    return {hn::Mul(c, hn::Add(a.re, a.im)), hn::Mul(c, hn::Sub(a.im, a.re))};
}
HWY_INLINE Complex turned_by_3_8(const Complex& a) {
    const Vector c = hn::Set(Floats(), std::numbers::sqrt2_v<float> / 2.0F);
    return {hn::Mul(c, hn::Sub(a.im, a.re)), hn::Neg(hn::Mul(c, hn::Add(a.re, a.im)))};
}

// The transform of eight values.
HWY_INLINE void transform_8(const Complex (&x)[8], Complex (&y)[8]) {
    const Complex sums[4] = {x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]};
    const Complex third = x[2] - x[6];
    const Complex differences[4] = {x[0] - x[4],
                                    turned_by_1_8(x[1] - x[5]),
                                    {third.im, hn::Neg(third.re)},
                                    turned_by_3_8(x[3] - x[7])};
    Complex even[4];
    Complex odd[4];
    transform_4(sums, even);
    transform_4(differences, odd);
    for (size_t k = 0; k < 4; ++k) {
        y[2 * k] = even[k];
        y[2 * k + 1] = odd[k];
    }
}

// ---- strides 1 and 4, where the lanes of a vector belong to different p

// The factors of outputs 1 to 3 for the values from i on.
HWY_INLINE void multiply_by_rows(const SplitPass& pass, size_t i, Complex (&y)[4]) {
    const Floats d;
    const size_t row = pass.length * pass.stride / 4;
    for (size_t k = 1; k < 4; ++k) {
        const float* const re = pass.twiddles + 2 * (k - 1) * row + i;
        y[k] = y[k] * Complex{hn::LoadU(d, re), hn::LoadU(d, re + row)};
    }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

// Two-source permutations of vectors of four blocks. Highway 1.0.3 puts both functions below
// together from more shuffles within and between blocks: with them the first pass for 1024 values
// took 139 ns instead of 170, the second 106 instead of 112.
HWY_INLINE Vector permuted(Vector a, __m512i indices, Vector b) {
    return Vector{_mm512_permutex2var_ps(a.raw, indices, b.raw)};
}

// y0[0], y1[0], y2[0], y3[0], y0[1], ...
HWY_INLINE void store_interleaved(Vector y0, Vector y1, Vector y2, Vector y3, float* out) {
    const Floats d;
    const auto lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const auto upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
    const Vector even_lower = permuted(y0, lower, y2);
    const Vector even_upper = permuted(y0, upper, y2);
    const Vector odd_lower = permuted(y1, lower, y3);
    const Vector odd_upper = permuted(y1, upper, y3);
    hn::Store(permuted(even_lower, lower, odd_lower), d, out);
    hn::Store(permuted(even_lower, upper, odd_lower), d, out + 16);
    hn::Store(permuted(even_upper, lower, odd_upper), d, out + 32);
    hn::Store(permuted(even_upper, upper, odd_upper), d, out + 48);
}

// Block b of 128 bits of the four vectors, one after another, for each b in turn.
HWY_INLINE void store_blocks(Vector y0, Vector y1, Vector y2, Vector y3, float* out) {
    const Floats d;
    const Vector lower01{_mm512_shuffle_f32x4(y0.raw, y1.raw, 0b01'00'01'00)};
    const Vector upper01{_mm512_shuffle_f32x4(y0.raw, y1.raw, 0b11'10'11'10)};
    const Vector lower23{_mm512_shuffle_f32x4(y2.raw, y3.raw, 0b01'00'01'00)};
    const Vector upper23{_mm512_shuffle_f32x4(y2.raw, y3.raw, 0b11'10'11'10)};
    hn::Store(Vector{_mm512_shuffle_f32x4(lower01.raw, lower23.raw, 0b10'00'10'00)}, d, out);
    hn::Store(Vector{_mm512_shuffle_f32x4(lower01.raw, lower23.raw, 0b11'01'11'01)}, d, out + 16);
    hn::Store(Vector{_mm512_shuffle_f32x4(upper01.raw, upper23.raw, 0b10'00'10'00)}, d, out + 32);
    hn::Store(Vector{_mm512_shuffle_f32x4(upper01.raw, upper23.raw, 0b11'01'11'01)}, d, out + 48);
}

#else

HWY_INLINE void store_interleaved(Vector y0, Vector y1, Vector y2, Vector y3, float* out) {
    hn::StoreInterleaved4(y0, y1, y2, y3, Floats(), out);
}

HWY_INLINE void store_blocks(Vector y0, Vector y1, Vector y2, Vector y3, float* out) {
    const Floats d;
    if constexpr (kLanes == 4) {
        hn::Store(y0, d, out);
        hn::Store(y1, d, out + 4);
        hn::Store(y2, d, out + 8);
        hn::Store(y3, d, out + 12);
    } else {
        hn::Store(hn::ConcatLowerLower(d, y1, y0), d, out);
        hn::Store(hn::ConcatLowerLower(d, y3, y2), d, out + 8);
        hn::Store(hn::ConcatUpperUpper(d, y1, y0), d, out + 16);
        hn::Store(hn::ConcatUpperUpper(d, y3, y2), d, out + 24);
    }
}

#endif

HWY_INLINE void pass_of_stride_4(const SplitPass& pass, SplitRows in, SplitRows out) {
    const size_t quarter = pass.length;  // a quarter of all values
    for (size_t i = 0; i < quarter; i += kLanes) {
        const Complex x[4] = {load(in, i), load(in, i + quarter), load(in, i + 2 * quarter),
                              load(in, i + 3 * quarter)};
        Complex y[4];
        transform_4(x, y);
        multiply_by_rows(pass, i, y);
        store_blocks(y[0].re, y[1].re, y[2].re, y[3].re, out.re + 4 * i);
        store_blocks(y[0].im, y[1].im, y[2].im, y[3].im, out.im + 4 * i);
    }
}

// ---- longer strides, where all lanes have the same p

template <size_t kRadix>
HWY_INLINE void transform(const Complex (&x)[kRadix], Complex (&y)[kRadix]) {
    if constexpr (kRadix == 4) {
        transform_4(x, y);
    } else {
        transform_8(x, y);
    }
}

template <size_t kRadix, bool kHasTwiddles>
HWY_INLINE void pass_of_long_stride(const SplitPass& pass, SplitRows in, SplitRows out) {
    const Floats d;
    const size_t m = pass.length / kRadix;
    const float* twiddles = pass.twiddles;
    for (size_t p = 0; p < m; ++p, twiddles += 2 * (kRadix - 1)) {
        for (size_t q = 0; q < pass.stride; q += kLanes) {
            Complex x[kRadix];
            Complex y[kRadix];
            for (size_t j = 0; j < kRadix; ++j) {
                x[j] = load(in, q + pass.stride * (p + j * m));
            }
            transform<kRadix>(x, y);
            store(y[0], out, q + pass.stride * kRadix * p);
            for (size_t k = 1; k < kRadix; ++k) {
                if constexpr (kHasTwiddles) {
                    const float* const w = twiddles + 2 * (k - 1);
                    y[k] = y[k] * Complex{hn::Set(d, w[0]), hn::Set(d, w[1])};
                }
                store(y[k], out, q + pass.stride * (kRadix * p + k));
            }
        }
    }
}

template <size_t kRadix>
HWY_INLINE void pass_of_radix(const SplitPass& pass, SplitRows in, SplitRows out) {
    if (pass.length == kRadix) {
        pass_of_long_stride<kRadix, false>(pass, in, out);  // w^0 alone
    } else {
        pass_of_long_stride<kRadix, true>(pass, in, out);
    }
}

void split_pass(const SplitPass& pass, SplitRows in, SplitRows out) {
    if (pass.stride == 4) {
        pass_of_stride_4(pass, in, out);
    } else if (pass.radix == 4) {
        pass_of_radix<4>(pass, in, out);
    } else {
        pass_of_radix<8>(pass, in, out);
    }
}

// ---- the first pass, which reads samples

struct Mean {
    explicit Mean(SegmentMean mean)
        : whole(hn::Set(Floats(), mean.whole)), fraction(hn::Set(Floats(), mean.fraction)) {}

    HWY_INLINE Vector removed_from(hn::Vec<Words> samples) const {
        return hn::Sub(hn::Sub(hn::ConvertTo(Floats(), samples), whole), fraction);
    }

    Vector whole;
    Vector fraction;
};

// `windowed` gives the vector of values from i on.
template <class Windowed>
HWY_INLINE void first_pass(const SplitPass& pass, SplitRows out, Windowed windowed) {
    const size_t quarter = pass.length / 4;
    for (size_t i = 0; i < quarter; i += kLanes) {
        const Complex x[4] = {windowed(i), windowed(i + quarter), windowed(i + 2 * quarter),
                              windowed(i + 3 * quarter)};
        Complex y[4];
        transform_4(x, y);
        multiply_by_rows(pass, i, y);
        store_interleaved(y[0].re, y[1].re, y[2].re, y[3].re, out.re + 4 * i);
        store_interleaved(y[0].im, y[1].im, y[2].im, y[3].im, out.im + 4 * i);
    }
}

void split_first_pass_pair(const SplitPass& pass, const int16_t* a, const int16_t* b,
                           const float* window, SegmentMean mean_a, SegmentMean mean_b,
                           SplitRows out) {
    const Mean of_a(mean_a);
    const Mean of_b(mean_b);
    first_pass(pass, out, [&](size_t i) HWY_ATTR {
        const hn::Rebind<int16_t, Words> half_words;
        const Vector w = hn::LoadU(Floats(), window + i);
        const auto re = hn::PromoteTo(Words(), hn::LoadU(half_words, a + i));
        const auto im = hn::PromoteTo(Words(), hn::LoadU(half_words, b + i));
        return Complex{hn::Mul(w, of_a.removed_from(re)), hn::Mul(w, of_b.removed_from(im))};
    });
}

void split_first_pass_complex(const SplitPass& pass, const int16_t* samples, const float* window,
                              SegmentMean mean_re, SegmentMean mean_im, SplitRows out) {
    const Mean of_re(mean_re);
    const Mean of_im(mean_im);
    first_pass(pass, out, [&](size_t i) HWY_ATTR {
        const hn::Repartition<int16_t, Words> halves;
        const Vector w = hn::LoadU(Floats(), window + i);
        const auto pairs = hn::BitCast(Words(), hn::LoadU(halves, samples + 2 * i));
        const auto re = hn::ShiftRight<16>(hn::ShiftLeft<16>(pairs));
        const auto im = hn::ShiftRight<16>(pairs);
        return Complex{hn::Mul(w, of_re.removed_from(re)), hn::Mul(w, of_im.removed_from(im))};
    });
}

// ---- powers

struct AddTo {
    HWY_INLINE Vector operator()(Vector old, Vector value) const { return hn::Add(old, value); }
};
struct Larger {
    HWY_INLINE Vector operator()(Vector old, Vector value) const { return hn::Max(old, value); }
};

// With M the mirror of Z, 4 |A|^2 = (Z.re + M.re)^2 + (Z.im - M.im)^2 and 4 |B|^2 = (Z.im +
// M.im)^2 + (Z.re - M.re)^2.
struct PairPower {
    Vector a;
    Vector b;
};
HWY_INLINE PairPower pair_power(const Complex& z, const Complex& mirror) {
    const Complex sum = z + mirror;
    const Complex difference = z - mirror;
    return {hn::MulAdd(sum.re, sum.re, hn::Mul(difference.im, difference.im)),
            hn::MulAdd(sum.im, sum.im, hn::Mul(difference.re, difference.re))};
}

HWY_INLINE Complex mirrored(SplitRows z, size_t last) {
    const Floats d;
    const size_t first = last + 1 - kLanes;
    return {hn::Reverse(d, hn::LoadU(d, z.re + first)), hn::Reverse(d, hn::LoadU(d, z.im + first))};
}

template <class Reduce>
HWY_INLINE void reduce_pair(SplitRows z, uint32_t nperseg, float* a, float* b, Reduce reduce) {
    const Floats d;
    z.re[nperseg] = z.re[0];
    z.im[nperseg] = z.im[0];
    const size_t half = nperseg / 2;
    for (size_t k = 0; k < half; k += kLanes) {
        const PairPower power = pair_power(load(z, k), mirrored(z, nperseg - k));
        hn::StoreU(reduce(hn::LoadU(d, a + k), power.a), d, a + k);
        hn::StoreU(reduce(hn::LoadU(d, b + k), power.b), d, b + k);
    }
    // Nyquist is its own mirror.
    const Complex nyquist{hn::Set(d, z.re[half]), hn::Set(d, z.im[half])};
    const PairPower power = pair_power(nyquist, nyquist);
    a[half] = hn::GetLane(reduce(hn::Set(d, a[half]), power.a));
    b[half] = hn::GetLane(reduce(hn::Set(d, b[half]), power.b));
}

void add_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b) {
    reduce_pair(z, nperseg, a, b, AddTo());
}

void max_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b) {
    reduce_pair(z, nperseg, a, b, Larger());
}

template <class Reduce>
HWY_INLINE void reduce_power(SplitRows z, uint32_t nperseg, float* power, Reduce reduce) {
    const Floats d;
    for (size_t k = 0; k < nperseg; k += kLanes) {
        const Complex value = load(z, k);
        const Vector square = hn::MulAdd(value.re, value.re, hn::Mul(value.im, value.im));
        hn::StoreU(reduce(hn::LoadU(d, power + k), square), d, power + k);
    }
}

void add_split_power(SplitRows z, uint32_t nperseg, float* power) {
    reduce_power(z, nperseg, power, AddTo());
}

void max_split_power(SplitRows z, uint32_t nperseg, float* power) {
    reduce_power(z, nperseg, power, Larger());
}

#endif

}  // namespace
}  // namespace echelle::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelle::kernels {

HWY_EXPORT(split_lanes);
HWY_EXPORT(split_first_pass_pair);
HWY_EXPORT(split_first_pass_complex);
HWY_EXPORT(split_pass);
HWY_EXPORT(add_split_pair_power);
HWY_EXPORT(max_split_pair_power);
HWY_EXPORT(add_split_power);
HWY_EXPORT(max_split_power);

size_t split_lanes() {
    return HWY_DYNAMIC_DISPATCH(split_lanes)();
}

void split_first_pass_pair(const SplitPass& pass, const int16_t* a, const int16_t* b,
                           const float* window, SegmentMean mean_a, SegmentMean mean_b,
                           SplitRows out) {
    HWY_DYNAMIC_DISPATCH(split_first_pass_pair)(pass, a, b, window, mean_a, mean_b, out);
}

void split_first_pass_complex(const SplitPass& pass, const int16_t* samples, const float* window,
                              SegmentMean mean_re, SegmentMean mean_im, SplitRows out) {
    HWY_DYNAMIC_DISPATCH(split_first_pass_complex)(pass, samples, window, mean_re, mean_im, out);
}

void split_pass(const SplitPass& pass, SplitRows in, SplitRows out) {
    HWY_DYNAMIC_DISPATCH(split_pass)(pass, in, out);
}

void add_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b) {
    HWY_DYNAMIC_DISPATCH(add_split_pair_power)(z, nperseg, a, b);
}

void max_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b) {
    HWY_DYNAMIC_DISPATCH(max_split_pair_power)(z, nperseg, a, b);
}

void add_split_power(SplitRows z, uint32_t nperseg, float* power) {
    HWY_DYNAMIC_DISPATCH(add_split_power)(z, nperseg, power);
}

void max_split_power(SplitRows z, uint32_t nperseg, float* power) {
    HWY_DYNAMIC_DISPATCH(max_split_power)(z, nperseg, power);
}

}  // namespace echelle::kernels
#endif  // HWY_ONCE
