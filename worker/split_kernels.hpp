// The inner loops of the split transform (split_transform.hpp), each chosen at run time for the
// CPU's widest SIMD target (Highway). "Split": real and imaginary parts lie in rows of their own,
// so that no lane is ever exchanged between them; two real channels that share a transform are the
// two rows, as they come.
//
// Rows are aligned to 64 bytes; samples, windows and powers to their type. Rows have room for
// nperseg + 1 values, the last for what separates a pair.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/kernels.hpp"

namespace echelle::kernels {

struct SplitRows {
    float* re = nullptr;
    float* im = nullptr;
};

// One pass of a Stockham transform, decimation in frequency (C. Van Loan, "Computational
// Frameworks for the Fast Fourier Transform", SIAM 1992, section 1.7), over the `length`-point
// transforms that the passes before it have left, `stride` of them side by side:
//
//   out[q + stride (radix p + k)] = w^(p k) sum_j in[q + stride (p + j m)] e^(-2 pi i j k / radix)
//
// with m = length / radix, w = e^(-2 pi i / length), q < stride, p < m, k < radix. The results come
// out in their natural order.
struct SplitPass {
    uint32_t radix = 0;   // 4 or 8
    uint32_t length = 0;  // a multiple of radix
    uint32_t stride = 0;  // 1 and 4 with radix 4, else a multiple of 16
    // Below a stride of 16, where lanes have different p: rows re, im of w^p, then of w^2p and
    // w^3p, each with a value for every q + stride p. From 16 on: re, im of w^p ... w^(radix-1)p
    // for each p in turn.
    const float* twiddles = nullptr;
};

// Values in a vector of the target. 0 where it has no split kernels: Highway's scalar target, and
// vectors of a length that is not known when they are compiled. The others must then not be called.
size_t split_lanes();

// The first pass (radix 4, stride 1) on window[i] * ((a[i] - mean_a) + i (b[i] - mean_b)).
void split_first_pass_pair(const SplitPass& pass, const int16_t* a, const int16_t* b,
                           const float* window, SegmentMean mean_a, SegmentMean mean_b,
                           SplitRows out);
// The same on a complex channel's samples (re, im).
void split_first_pass_complex(const SplitPass& pass, const int16_t* samples, const float* window,
                              SegmentMean mean_re, SegmentMean mean_im, SplitRows out);
// Any later pass.
void split_pass(const SplitPass& pass, SplitRows in, SplitRows out);

// As add_pair_power and max_pair_power of kernels.hpp, but channel by channel: a[k] takes 4
// |A[k]|^2 and b[k] 4 |B[k]|^2, k = 0 .. nperseg / 2. Writes z[nperseg] = z[0] first.
void add_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b);
void max_split_pair_power(SplitRows z, uint32_t nperseg, float* a, float* b);
// power[k] takes |z[k]|^2, k = 0 .. nperseg - 1.
void add_split_power(SplitRows z, uint32_t nperseg, float* power);
void max_split_power(SplitRows z, uint32_t nperseg, float* power);

}  // namespace echelle::kernels
