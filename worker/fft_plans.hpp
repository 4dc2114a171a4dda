// The transforms for one nperseg: our own split transform where it can do them, and FFTW's plans
// (single precision) for the rest. Made once in the coordinator before it forks the nursery, so
// that every worker inherits them. Planning is not thread-safe and happens on the one thread that
// exists then; executing a plan on other buffers is safe anywhere.
//
// Every plan is out of place and expects buffers aligned to 64 bytes.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fftw3.h>

#include "worker/split_transform.hpp"

namespace echelle {

enum class FftEffort { estimate, measure, patient };
std::string_view name_of(FftEffort effort);
FftEffort parse_fft_effort(std::string_view text);  // throws UsageError

// Who transforms pairs and complex channels. The choice is never made by the clock: the same run
// must give the same bytes again.
enum class FftKind {
    automatic,  // the split transform where it is the faster one, else FFTW
    own,        // the split transform wherever there is one, else FFTW
    fftw,       // FFTW always
};
std::string_view name_of(FftKind kind);
FftKind parse_fft_kind(std::string_view text);  // throws UsageError

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
             FftKind kind = FftKind::automatic, double time_limit_s = 20.0);
    FftPlans(FftPlans&& other) noexcept;
    FftPlans& operator=(FftPlans&&) = delete;
    ~FftPlans();

    uint32_t nperseg() const { return nperseg_; }
    // What transforms a pair or a complex channel; null where complex_transform() does.
    const SplitTransform* split() const { return split_ ? &*split_ : nullptr; }
    // nperseg complex values in, nperseg complex values out. Where split() is null.
    void complex_transform(const std::complex<float>* in, std::complex<float>* out) const;
    // nperseg real values in, nperseg / 2 + 1 complex values out. Overwrites nothing of `in`.
    void real_transform(const float* in, std::complex<float>* out) const;

    // For the report: what does the transforms; of FFTW's plans the effort and, as FFTW prints
    // them, their operations.
    std::string description() const;
    WisdomUse wisdom() const { return wisdom_; }

  private:
    uint32_t nperseg_;
    FftEffort effort_;
    WisdomUse wisdom_ = WisdomUse::none;
    std::optional<SplitTransform> split_;
    fftwf_plan complex_plan_ = nullptr;
    fftwf_plan real_plan_ = nullptr;
};

}  // namespace echelle
