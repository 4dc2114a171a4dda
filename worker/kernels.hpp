// The inner loops of the Welch engine, each chosen at run time for the CPU's widest SIMD target
// (Highway). kernels_scalar.hpp states the same functions in plain loops; the tests hold every
// target against it.
//
// No pointer needs more alignment than its type, and nothing beyond the stated counts is read or
// written. Complex channels are interleaved (re, im) int16.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

namespace echelle {

// The mean of a segment as an integer and a fraction of at most 1/2. Subtracting a single float
// would leave a residue of up to 2^-10 counts beside a large DC level, which is more than the DC
// bin of a channel of pure LSB noise can bear; sample - whole is exact, and so the rounding that
// remains is relative to the signal without its mean.
struct SegmentMean {
    float whole = 0.0F;
    float fraction = 0.0F;

    static SegmentMean of(int64_t sum, uint32_t count);
};

// Exact sums over a run of samples. For real channels sum_im is 0.
struct RunSums {
    int64_t sum_re = 0;
    int64_t sum_im = 0;
    uint64_t sum_squares = 0;  // re^2 (+ im^2)
    uint64_t over_range = 0;   // samples of which a part is <= low or >= high
    bool operator==(const RunSums&) const = default;
};

namespace kernels {

// The target in use, as Highway names it: "AVX3", "AVX2", ..., "SCALAR".
const char* target();

// out[i] = window[i] * ((a[i] - mean_a) + i (b[i] - mean_b)): two real channels for one complex
// transform.
void load_pair(const int16_t* a, const int16_t* b, const float* window, SegmentMean mean_a,
               SegmentMean mean_b, size_t count, std::complex<float>* out);
// out[i] = window[i] * (a[i] - mean)
void load_real(const int16_t* a, const float* window, SegmentMean mean, size_t count, float* out);
// The same for `count` samples of a complex channel.
void load_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                  SegmentMean mean_im, size_t count, std::complex<float>* out);

// sum_re and sum_im alone: all that the mean of a history sample needs.
RunSums sum_real(const int16_t* samples, size_t count);
RunSums sum_complex(const int16_t* samples, size_t count);
// Every member of RunSums in one pass.
RunSums statistics_real(const int16_t* samples, size_t count, int16_t low, int16_t high);
RunSums statistics_complex(const int16_t* samples, size_t count, int16_t low, int16_t high);

// With Z the transform of a + ib, and z[nperseg] repeating z[0]: power[2k] and power[2k + 1] take 4
// |A[k]|^2 and 4 |B[k]|^2 for k = 0 .. nperseg / 2, added to what is there or where larger. `power`
// holds 2 * (nperseg / 2 + 1) values. A and B are separated before they are squared: the difference
// of powers would lose the weaker channel under the stronger one's rounding.
void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power);
void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power);
// power[k] takes |z[k]|^2, k = 0 .. count - 1.
void add_power(const std::complex<float>* z, size_t count, float* power);
void max_power(const std::complex<float>* z, size_t count, float* power);

// a[k] = power[2k] * scale, b[k] = power[2k + 1] * scale. The product is formed in double, so a
// scale below the range of float (volts, a high rate) loses nothing.
void scale_pair_power(const float* power, size_t count, double scale, float* a, float* b);
void scale_power(const float* power, size_t count, double scale, float* out);

// From sample-major to rows: rows[c * row_stride + s] = samples[s * sample_stride + c], strides in
// int16 values. For complex channels, pairs (re, im) are moved and both strides still count int16
// values: rows[c * row_stride + 2s (+ 1)] = samples[s * sample_stride + 2c (+ 1)].
void transpose_real(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                    int16_t* rows, size_t row_stride);
void transpose_complex(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                       int16_t* rows, size_t row_stride);

}  // namespace kernels
}  // namespace echelle
