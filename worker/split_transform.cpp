#include "worker/split_transform.hpp"

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr uint32_t kLongStride = 16;  // from here on a vector's lanes belong to the same p

// Radix 4 until the stride is long, then 8 while that leaves no single factor of 2.
std::vector<uint32_t> radices_of(uint32_t nperseg) {
    std::vector<uint32_t> radices{4, 4};
    for (uint32_t left = nperseg / kLongStride; left > 1; left /= radices.back()) {
        radices.push_back(left == 4 || left == 16 ? 4 : 8);
    }
    return radices;
}

std::complex<double> twiddle(uint64_t power, uint32_t length) {
    return std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(power % length) / length);
}

void append_rows(std::vector<float>& twiddles, const kernels::SplitPass& pass) {
    const uint32_t m = pass.length / pass.radix;
    for (uint64_t k = 1; k < pass.radix; ++k) {
        for (const bool imaginary : {false, true}) {
            for (uint64_t i = 0; i < uint64_t{m} * pass.stride; ++i) {
                const auto w = twiddle(k * (i / pass.stride), pass.length);
                twiddles.push_back(static_cast<float>(imaginary ? w.imag() : w.real()));
            }
        }
    }
}

void append_in_turn(std::vector<float>& twiddles, const kernels::SplitPass& pass) {
    for (uint64_t p = 0; p < pass.length / pass.radix; ++p) {
        for (uint64_t k = 1; k < pass.radix; ++k) {
            const auto w = twiddle(k * p, pass.length);
            twiddles.push_back(static_cast<float>(w.real()));
            twiddles.push_back(static_cast<float>(w.imag()));
        }
    }
}

}  // namespace

SplitWorkspace::SplitWorkspace(uint32_t nperseg) {
    // Each row a cache line longer than its values: the last value, and rows that do not begin at
    // the same place of their pages.
    const size_t row = (size_t{nperseg} + 31) / 16 * 16;
    values_ = AlignedArray<float>(4 * row);
    rows_[0] = {values_.data(), values_.data() + row};
    rows_[1] = {values_.data() + 2 * row, values_.data() + 3 * row};
}

bool SplitTransform::supports(uint32_t nperseg) {
    return std::has_single_bit(nperseg) && nperseg >= smallest && nperseg <= largest &&
           kernels::split_lanes() > 0;
}

bool SplitTransform::pays(uint32_t nperseg) {
    return supports(nperseg) && kernels::split_lanes() >= 16;
}

SplitTransform::SplitTransform(uint32_t nperseg) : nperseg_(nperseg) {
    ECHELLE_INVARIANT(supports(nperseg));
    std::vector<size_t> begins;
    uint32_t stride = 1;
    for (const uint32_t radix : radices_of(nperseg)) {
        const kernels::SplitPass pass{radix, nperseg / stride, stride, nullptr};
        begins.push_back(twiddles_.size());
        if (stride < kLongStride) {
            append_rows(twiddles_, pass);
        } else {
            append_in_turn(twiddles_, pass);
        }
        passes_.push_back(pass);
        stride *= radix;
    }
    for (size_t i = 0; i < passes_.size(); ++i) {
        passes_[i].twiddles = twiddles_.data() + begins[i];
    }
}

std::string SplitTransform::description() const {
    std::string text = "radix";
    for (const kernels::SplitPass& pass : passes_) {
        text += (text == "radix" ? " " : " x ") + std::to_string(pass.radix);
    }
    return text;
}

kernels::SplitRows SplitTransform::of_pair(const int16_t* a, const int16_t* b, const float* window,
                                           SegmentMean mean_a, SegmentMean mean_b,
                                           SplitWorkspace& workspace) const {
    kernels::split_first_pass_pair(passes_[0], a, b, window, mean_a, mean_b, workspace.rows(0));
    return later_passes(workspace);
}

kernels::SplitRows SplitTransform::of_complex(const int16_t* samples, const float* window,
                                              SegmentMean mean_re, SegmentMean mean_im,
                                              SplitWorkspace& workspace) const {
    kernels::split_first_pass_complex(passes_[0], samples, window, mean_re, mean_im,
                                      workspace.rows(0));
    return later_passes(workspace);
}

kernels::SplitRows SplitTransform::later_passes(SplitWorkspace& workspace) const {
    for (size_t i = 1; i < passes_.size(); ++i) {
        kernels::split_pass(passes_[i], workspace.rows(i - 1), workspace.rows(i));
    }
    return workspace.rows(passes_.size() - 1);
}

}  // namespace echelle
