// The transform of our own: a complex one of a power of two of values in split form, whose first
// pass reads samples, subtracts the mean and windows them. FFTW does every other size; bench/ has
// both beside each other.
//
// Made once in the coordinator before it forks the nursery, and constant from then on: any thread
// of any process may use it, each with rows of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/aligned_array.hpp"
#include "worker/split_kernels.hpp"

namespace echelle {

// Where a transform works: two pairs of rows, each of nperseg + 1 values.
class SplitWorkspace {
  public:
    explicit SplitWorkspace(uint32_t nperseg);
    kernels::SplitRows rows(size_t which) { return rows_[which % 2]; }

  private:
    AlignedArray<float> values_;
    kernels::SplitRows rows_[2];
};

class SplitTransform {
  public:
    // A power of two within these, on a CPU that has split kernels. Others were not measured.
    static constexpr uint32_t smallest = 64;
    static constexpr uint32_t largest = 4096;
    static bool supports(uint32_t nperseg);
    // Where it beats FFTW as well: with vectors of 16 lanes. From samples to powers, a pair of 1024
    // took 0.52 us there against 0.79; with 8 lanes (AVX2) there was nothing between them, and with
    // 4 (SSE4, on a CPU whose AVX FFTW could use) it took half as long again.
    static bool pays(uint32_t nperseg);

    // `nperseg` must be supported.
    explicit SplitTransform(uint32_t nperseg);

    uint32_t nperseg() const { return nperseg_; }
    // "radix 4 x 4 x 8 x 8"
    std::string description() const;

    // The transform of window[i] * ((a[i] - mean_a) + i (b[i] - mean_b)), i < nperseg, in its
    // natural order. The result stays in the workspace until the next one.
    kernels::SplitRows of_pair(const int16_t* a, const int16_t* b, const float* window,
                               SegmentMean mean_a, SegmentMean mean_b,
                               SplitWorkspace& workspace) const;
    // The same of a complex channel's samples (re, im).
    kernels::SplitRows of_complex(const int16_t* samples, const float* window, SegmentMean mean_re,
                                  SegmentMean mean_im, SplitWorkspace& workspace) const;

  private:
    kernels::SplitRows later_passes(SplitWorkspace& workspace) const;

    uint32_t nperseg_;
    std::vector<float> twiddles_;
    std::vector<kernels::SplitPass> passes_;
};

}  // namespace echelle
