// The kernels of kernels.hpp in plain loops: what the tests compare every SIMD target with, what a
// CPU without one runs, and what finishes the last few values of a vector loop.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "worker/kernels.hpp"

namespace echelle::kernels::scalar {

void load_pair(const int16_t* a, const int16_t* b, const float* window, SegmentMean mean_a,
               SegmentMean mean_b, size_t count, std::complex<float>* out);
void load_real(const int16_t* a, const float* window, SegmentMean mean, size_t count, float* out);
void load_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                  SegmentMean mean_im, size_t count, std::complex<float>* out);

RunSums sum_real(const int16_t* samples, size_t count);
RunSums sum_complex(const int16_t* samples, size_t count);
RunSums statistics_real(const int16_t* samples, size_t count, int16_t low, int16_t high);
RunSums statistics_complex(const int16_t* samples, size_t count, int16_t low, int16_t high);

// Bins first .. nperseg / 2, so that it can finish where a vector loop stopped.
void add_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power,
                    uint32_t first = 0);
void max_pair_power(const std::complex<float>* z, uint32_t nperseg, float* power,
                    uint32_t first = 0);
void add_power(const std::complex<float>* z, size_t count, float* power);
void max_power(const std::complex<float>* z, size_t count, float* power);

void scale_pair_power(const float* power, size_t count, double scale, float* a, float* b);
void scale_power(const float* power, size_t count, double scale, float* out);

void transpose_real(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                    int16_t* rows, size_t row_stride);
void transpose_complex(const int16_t* samples, size_t sample_stride, size_t channels, size_t count,
                       int16_t* rows, size_t row_stride);

}  // namespace echelle::kernels::scalar
