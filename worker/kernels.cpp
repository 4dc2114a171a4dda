// Compiled once for every SIMD target (Highway's foreach_target); sample_kernels.cpp holds the
// kernels that stay in integers.
#include "worker/kernels.hpp"

#include <bit>

#include "worker/kernels_scalar.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace echelle::kernels::HWY_NAMESPACE {
namespace {

const char* target_name() {
    return hwy::TargetName(HWY_TARGET);
}

#if HWY_TARGET == HWY_SCALAR

using scalar::add_power;
using scalar::load_complex;
using scalar::load_pair;
using scalar::load_real;
using scalar::max_power;
using scalar::scale_pair_power;
using scalar::scale_power;

void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    scalar::add_pair_power(z, nperseg, power);
}

void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    scalar::max_pair_power(z, nperseg, power);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
using Words = hn::Rebind<int32_t, Floats>;

// The complex values as (re, im, re, im, ...): std::complex guarantees the layout.
const float* parts(const std::complex<float>* z) {
    return reinterpret_cast<const float*>(z);
}

float* parts(std::complex<float>* z) {
    return reinterpret_cast<float*>(z);
}

// A segment's mean, in every lane.
struct Mean {
    explicit Mean(SegmentMean mean)
        : whole(hn::Set(Floats(), mean.whole)), fraction(hn::Set(Floats(), mean.fraction)) {}

    HWY_INLINE FloatVector removed_from(hn::Vec<Words> samples) const {
        return hn::Sub(hn::Sub(hn::ConvertTo(Floats(), samples), whole), fraction);
    }

    FloatVector whole;
    FloatVector fraction;
};

HWY_INLINE hn::Vec<Words> load_samples(const int16_t* samples) {
    const Words words;
    const hn::Rebind<int16_t, Words> half_words;
    return hn::PromoteTo(words, hn::LoadU(half_words, samples));
}

// Stores (re[0], im[0], re[1], im[1], ...). Where vectors have four blocks Highway 1.0.3 takes six
// shuffles for it; a two-source permutation takes one for each vector stored, and load_pair takes
// a quarter less time (1024 pairs: 0.078 against 0.103 us).
HWY_INLINE void store_complex(FloatVector re, FloatVector im, float* out) {
    const Floats d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    const auto first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const auto second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    hn::StoreU(FloatVector{_mm512_permutex2var_ps(re.raw, first, im.raw)}, d, out);
    hn::StoreU(FloatVector{_mm512_permutex2var_ps(re.raw, second, im.raw)}, d, out + hn::Lanes(d));
#else
    hn::StoreInterleaved2(re, im, d, out);
#endif
}

void load_pair(const int16_t* a, const int16_t* b, const float* window, SegmentMean mean_a,
               SegmentMean mean_b, size_t count, std::complex<float>* out) {
    const Floats d;
    const size_t lanes = hn::Lanes(d);
    const Mean of_a(mean_a);
    const Mean of_b(mean_b);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const FloatVector w = hn::LoadU(d, window + i);
        const FloatVector re = hn::Mul(w, of_a.removed_from(load_samples(a + i)));
        const FloatVector im = hn::Mul(w, of_b.removed_from(load_samples(b + i)));
        store_complex(re, im, parts(out + i));
    }
    scalar::load_pair(a + i, b + i, window + i, mean_a, mean_b, count - i, out + i);
}

void load_real(const int16_t* a, const float* window, SegmentMean mean, size_t count, float* out) {
    const Floats d;
    const size_t lanes = hn::Lanes(d);
    const Mean of_a(mean);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const FloatVector w = hn::LoadU(d, window + i);
        hn::StoreU(hn::Mul(w, of_a.removed_from(load_samples(a + i))), d, out + i);
    }
    scalar::load_real(a + i, window + i, mean, count - i, out + i);
}

void load_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                  SegmentMean mean_im, size_t count, std::complex<float>* out) {
    const Floats d;
    const Words words;
    const hn::Repartition<int16_t, Words> halves;
    const size_t lanes = hn::Lanes(d);
    const Mean of_re(mean_re);
    const Mean of_im(mean_im);
    constexpr bool is_little_endian = std::endian::native == std::endian::little;
    size_t i = 0;
    // One 32-bit word is one sample, the real part in its low half.
    for (; is_little_endian && i + lanes <= count; i += lanes) {
        const auto pairs = hn::BitCast(words, hn::LoadU(halves, samples + 2 * i));
        const FloatVector w = hn::LoadU(d, window + i);
        const auto low = hn::ShiftRight<16>(hn::ShiftLeft<16>(pairs));
        const FloatVector re = hn::Mul(w, of_re.removed_from(low));
        const FloatVector im = hn::Mul(w, of_im.removed_from(hn::ShiftRight<16>(pairs)));
        store_complex(re, im, parts(out + i));
    }
    scalar::load_complex(samples + 2 * i, window + i, mean_re, mean_im, count - i, out + i);
}

struct Add {
    HWY_INLINE FloatVector operator()(FloatVector old, FloatVector value) const {
        return hn::Add(old, value);
    }
};

struct Max {
    HWY_INLINE FloatVector operator()(FloatVector old, FloatVector value) const {
        return hn::Max(old, value);
    }
};

// Works on (re, im) pairs as they lie. With s = Z[k] + Z[N-k] and d = Z[k] - Z[N-k], part by part:
//   4 |A|^2 = s.re^2 + d.im^2,   4 |B|^2 = s.im^2 + d.re^2
// so s^2 plus d^2 with its neighbours exchanged is the interleaved pair of powers.
// Returns the first bin that is left to do.
template <class Reduce>
HWY_INLINE uint32_t reduce_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power,
                                      Reduce reduce) {
    const Floats d;
    const hn::RepartitionToWide<Floats> pairs;
    const auto step = static_cast<uint32_t>(hn::Lanes(d) / 2);
    uint32_t k = 0;
    for (; k + step <= nperseg / 2 + 1; k += step) {
        const FloatVector ahead = hn::LoadU(d, parts(z + k));
        const FloatVector behind = hn::LoadU(d, parts(z + (nperseg - k - step + 1)));
        const FloatVector mirror = hn::BitCast(d, hn::Reverse(pairs, hn::BitCast(pairs, behind)));
        const FloatVector sum = hn::Add(ahead, mirror);
        const FloatVector difference = hn::Reverse2(d, hn::Sub(ahead, mirror));
        const FloatVector value = hn::MulAdd(sum, sum, hn::Mul(difference, difference));
        float* const at = power + size_t{2} * k;
        hn::StoreU(reduce(hn::LoadU(d, at), value), d, at);
    }
    return k;
}

void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    const uint32_t rest = reduce_pair_power(z, nperseg, power, Add());
    scalar::add_pair_power(z, nperseg, power, rest);
}

void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    const uint32_t rest = reduce_pair_power(z, nperseg, power, Max());
    scalar::max_pair_power(z, nperseg, power, rest);
}

// Returns how many values are done.
template <class Reduce>
HWY_INLINE size_t reduce_power(const std::complex<float>* z, size_t count, float* power,
                               Reduce reduce) {
    const Floats d;
    const size_t lanes = hn::Lanes(d);
    size_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        FloatVector re;
        FloatVector im;
        hn::LoadInterleaved2(d, parts(z + k), re, im);
        const FloatVector value = hn::MulAdd(re, re, hn::Mul(im, im));
        hn::StoreU(reduce(hn::LoadU(d, power + k), value), d, power + k);
    }
    return k;
}

void add_power(const std::complex<float>* z, size_t count, float* power) {
    const size_t done = reduce_power(z, count, power, Add());
    scalar::add_power(z + done, count - done, power + done);
}

void max_power(const std::complex<float>* z, size_t count, float* power) {
    const size_t done = reduce_power(z, count, power, Max());
    scalar::max_power(z + done, count - done, power + done);
}

using Doubles = hn::ScalableTag<double>;
using HalfFloats = hn::Rebind<float, Doubles>;

HWY_INLINE hn::Vec<HalfFloats> scaled(hn::Vec<HalfFloats> power, hn::Vec<Doubles> scale) {
    return hn::DemoteTo(HalfFloats(), hn::Mul(hn::PromoteTo(Doubles(), power), scale));
}

void scale_pair_power(const float* power, size_t count, double scale, float* a, float* b) {
    const HalfFloats d;
    const size_t lanes = hn::Lanes(d);
    const auto factor = hn::Set(Doubles(), scale);
    size_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        hn::Vec<HalfFloats> of_a;
        hn::Vec<HalfFloats> of_b;
        hn::LoadInterleaved2(d, power + 2 * k, of_a, of_b);
        hn::StoreU(scaled(of_a, factor), d, a + k);
        hn::StoreU(scaled(of_b, factor), d, b + k);
    }
    scalar::scale_pair_power(power + 2 * k, count - k, scale, a + k, b + k);
}

void scale_power(const float* power, size_t count, double scale, float* out) {
    const HalfFloats d;
    const size_t lanes = hn::Lanes(d);
    const auto factor = hn::Set(Doubles(), scale);
    size_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        hn::StoreU(scaled(hn::LoadU(d, power + k), factor), d, out + k);
    }
    scalar::scale_power(power + k, count - k, scale, out + k);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace echelle::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelle::kernels {

HWY_EXPORT(target_name);
HWY_EXPORT(load_pair);
HWY_EXPORT(load_real);
HWY_EXPORT(load_complex);
HWY_EXPORT(add_pair_power);
HWY_EXPORT(max_pair_power);
HWY_EXPORT(add_power);
HWY_EXPORT(max_power);
HWY_EXPORT(scale_pair_power);
HWY_EXPORT(scale_power);

const char* target() {
    return HWY_DYNAMIC_DISPATCH(target_name)();
}

void load_pair(const int16_t* a, const int16_t* b, const float* window, SegmentMean mean_a,
               SegmentMean mean_b, size_t count, std::complex<float>* out) {
    HWY_DYNAMIC_DISPATCH(load_pair)(a, b, window, mean_a, mean_b, count, out);
}

void load_real(const int16_t* a, const float* window, SegmentMean mean, size_t count, float* out) {
    HWY_DYNAMIC_DISPATCH(load_real)(a, window, mean, count, out);
}

void load_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                  SegmentMean mean_im, size_t count, std::complex<float>* out) {
    HWY_DYNAMIC_DISPATCH(load_complex)(samples, window, mean_re, mean_im, count, out);
}

void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    HWY_DYNAMIC_DISPATCH(add_pair_power)(z, nperseg, power);
}

void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power) {
    HWY_DYNAMIC_DISPATCH(max_pair_power)(z, nperseg, power);
}

void add_power(const std::complex<float>* z, size_t count, float* power) {
    HWY_DYNAMIC_DISPATCH(add_power)(z, count, power);
}

void max_power(const std::complex<float>* z, size_t count, float* power) {
    HWY_DYNAMIC_DISPATCH(max_power)(z, count, power);
}

void scale_pair_power(const float* power, size_t count, double scale, float* a, float* b) {
    HWY_DYNAMIC_DISPATCH(scale_pair_power)(power, count, scale, a, b);
}

void scale_power(const float* power, size_t count, double scale, float* out) {
    HWY_DYNAMIC_DISPATCH(scale_power)(power, count, scale, out);
}

}  // namespace echelle::kernels
#endif  // HWY_ONCE
