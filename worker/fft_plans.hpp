// FFTW plans (single precision) for one nperseg, made once in the coordinator before it forks the
// nursery, so that every worker inherits them. Planning is not thread-safe and happens on the one
// thread that exists then; executing a plan on other buffers is safe anywhere.
//
// Every plan is out of place and expects buffers aligned to 64 bytes.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>

#include <fftw3.h>

namespace echelle {

enum class FftEffort { estimate, measure, patient };
std::string_view name_of(FftEffort effort);
FftEffort parse_fft_effort(std::string_view text);  // throws UsageError

// Where wisdom came from, for the report's `fft.wisdom`.
enum class WisdomUse { none, read, written };
std::string_view name_of(WisdomUse use);

class FftPlans {
  public:
    // Plans the transforms that a stream needs: `complex_input` decides between complex channels
    // (one complex transform each) and real ones (a complex transform for a pair when
    // `pair_channels`, a real one for a channel alone). Wisdom is kept in
    // $XDG_CACHE_HOME/echelle (or ~/.cache/echelle), one file for each nperseg and effort, replaced
    // atomically; when it cannot be read or written planning goes on without it. Each plan takes at
    // most `time_limit_s` to find.
    FftPlans(uint32_t nperseg, bool complex_input, bool pair_channels, FftEffort effort,
             double time_limit_s = 20.0);
    FftPlans(FftPlans&& other) noexcept;
    FftPlans& operator=(FftPlans&&) = delete;
    ~FftPlans();

    uint32_t nperseg() const { return nperseg_; }
    // nperseg complex values in, nperseg complex values out. For a pair or a complex channel.
    void complex_transform(const std::complex<float>* in, std::complex<float>* out) const;
    // nperseg real values in, nperseg / 2 + 1 complex values out. Overwrites nothing of `in`.
    void real_transform(const float* in, std::complex<float>* out) const;

    // For the report: effort and, as FFTW prints them, the operations of the plan in use.
    std::string description() const;
    WisdomUse wisdom() const { return wisdom_; }

  private:
    uint32_t nperseg_;
    FftEffort effort_;
    WisdomUse wisdom_ = WisdomUse::none;
    fftwf_plan complex_plan_ = nullptr;
    fftwf_plan real_plan_ = nullptr;
};

}  // namespace echelle
