// The frequency axis and the median's bias: the parts of Welch's definition that both the worker
// and the collector need.
#pragma once

#include <cstdint>
#include <span>

#include "common/rational.hpp"

namespace echelle {

// Frequency of value 0 and the distance between values, Hz. One-sided spectra begin at 0; two-sided
// ones at -floor(nperseg / 2) bins, as numpy.fft.fftshift orders them.
double first_bin_hz(uint32_t nperseg, bool is_complex, Rational rate);
double bin_spacing_hz(uint32_t nperseg, Rational rate);

// The bias of the median of n exponentially distributed values, relative to their mean
// (scipy.signal's _median_bias; Allen et al., gr-qc/0509116, appendix B). n >= 1.
double median_bias(uint64_t n);

// numpy.median of `values`, which are reordered. Not empty.
float median_in_place(std::span<float> values);

}  // namespace echelle
