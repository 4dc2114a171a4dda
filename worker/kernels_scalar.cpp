#include "worker/kernels_scalar.hpp"

#include <algorithm>

namespace echelle {

SegmentMean SegmentMean::of(int64_t sum, uint32_t count) {
    const double mean = static_cast<double>(sum) / static_cast<double>(count);
    // Rounded by truncation of what cannot be negative: nearbyint is a call, and a branch on the
    // sign of a mean about zero is mispredicted every other time.
    constexpr double offset = 32768.0;
    const double whole = static_cast<double>(static_cast<int32_t>(mean + (offset + 0.5))) - offset;
    return {static_cast<float>(whole), static_cast<float>(mean - whole)};
}

namespace kernels::scalar {
namespace {

float without_mean(int16_t sample, SegmentMean mean) {
    return (static_cast<float>(sample) - mean.whole) - mean.fraction;
}

uint64_t square(int16_t sample) {
    return static_cast<uint64_t>(int64_t{sample} * sample);
}

bool outside(int16_t sample, int16_t low, int16_t high) {
    return sample <= low || sample >= high;
}

struct PairPower {
    float a;
    float b;
};

// A[k] = (Z[k] + conj Z[N-k]) / 2 and B[k] = (Z[k] - conj Z[N-k]) / 2i, times 2, squared.
PairPower pair_power(std::complex<float> z, std::complex<float> mirror) {
    const float sum_re = z.real() + mirror.real();
    const float sum_im = z.imag() + mirror.imag();
    const float difference_re = z.real() - mirror.real();
    const float difference_im = z.imag() - mirror.imag();
    return {sum_re * sum_re + difference_im * difference_im,
            difference_re * difference_re + sum_im * sum_im};
}

float power_of(std::complex<float> z) {
    return z.real() * z.real() + z.imag() * z.imag();
}

PairPower pair_power_at(const std::complex<float>* z, uint32_t nperseg, uint32_t k) {
    return pair_power(z[k], z[nperseg - k]);
}

}  // namespace

void load_pair(const int16_t* a, const int16_t* b, const float* window, SegmentMean mean_a,
               SegmentMean mean_b, size_t count, std::complex<float>* out) {
    for (size_t i = 0; i < count; ++i) {
        out[i] = {window[i] * without_mean(a[i], mean_a), window[i] * without_mean(b[i], mean_b)};
    }
}

void load_real(const int16_t* a, const float* window, SegmentMean mean, size_t count, float* out) {
    for (size_t i = 0; i < count; ++i) {
        out[i] = window[i] * without_mean(a[i], mean);
    }
}

void load_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                  SegmentMean mean_im, size_t count, std::complex<float>* out) {
    for (size_t i = 0; i < count; ++i) {
        out[i] = {window[i] * without_mean(samples[2 * i], mean_re),
                  window[i] * without_mean(samples[2 * i + 1], mean_im)};
    }
}

RunSums sum_real(const int16_t* samples, size_t count) {
    RunSums sums;
    for (size_t i = 0; i < count; ++i) {
        sums.sum_re += samples[i];
    }
    return sums;
}

RunSums sum_complex(const int16_t* samples, size_t count) {
    RunSums sums;
    for (size_t i = 0; i < count; ++i) {
        sums.sum_re += samples[2 * i];
        sums.sum_im += samples[2 * i + 1];
    }
    return sums;
}

RunSums statistics_real(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    RunSums sums = sum_real(samples, count);
    for (size_t i = 0; i < count; ++i) {
        sums.sum_squares += square(samples[i]);
        sums.over_range += outside(samples[i], low, high) ? 1 : 0;
    }
    return sums;
}

RunSums statistics_complex(const int16_t* samples, size_t count, int16_t low, int16_t high) {
    RunSums sums = sum_complex(samples, count);
    for (size_t i = 0; i < count; ++i) {
        const int16_t re = samples[2 * i];
        const int16_t im = samples[2 * i + 1];
        sums.sum_squares += square(re) + square(im);
        sums.over_range += outside(re, low, high) || outside(im, low, high) ? 1 : 0;
    }
    return sums;
}

void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power, uint32_t first) {
    for (uint32_t k = first; k <= nperseg / 2; ++k) {
        const PairPower p = pair_power_at(z, nperseg, k);
        power[size_t{2} * k] += p.a;
        power[size_t{2} * k + 1] += p.b;
    }
}

void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power, uint32_t first) {
    for (uint32_t k = first; k <= nperseg / 2; ++k) {
        const PairPower p = pair_power_at(z, nperseg, k);
        power[size_t{2} * k] = std::max(power[size_t{2} * k], p.a);
        power[size_t{2} * k + 1] = std::max(power[size_t{2} * k + 1], p.b);
    }
}

void add_power(const std::complex<float>* z, size_t count, float* power) {
    for (size_t k = 0; k < count; ++k) {
        power[k] += power_of(z[k]);
    }
}

void max_power(const std::complex<float>* z, size_t count, float* power) {
    for (size_t k = 0; k < count; ++k) {
        power[k] = std::max(power[k], power_of(z[k]));
    }
}

void scale_pair_power(const float* power, size_t count, double scale, float* a, float* b) {
    for (size_t k = 0; k < count; ++k) {
        a[k] = static_cast<float>(double{power[2 * k]} * scale);
        b[k] = static_cast<float>(double{power[2 * k + 1]} * scale);
    }
}

void scale_power(const float* power, size_t count, double scale, float* out) {
    for (size_t k = 0; k < count; ++k) {
        out[k] = static_cast<float>(double{power[k]} * scale);
    }
}

void transpose_real(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                    int16_t* rows, size_t row_stride) {
    for (size_t c = 0; c < channels; ++c) {
        for (size_t s = 0; s < count; ++s) {
            rows[c * row_stride + s] = samples[s * sample_stride + c];
        }
    }
}

void transpose_complex(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                       int16_t* rows, size_t row_stride) {
    for (size_t c = 0; c < channels; ++c) {
        for (size_t s = 0; s < count; ++s) {
            rows[c * row_stride + 2 * s] = samples[s * sample_stride + 2 * c];
            rows[c * row_stride + 2 * s + 1] = samples[s * sample_stride + 2 * c + 1];
        }
    }
}

}  // namespace kernels::scalar
}  // namespace echelle
