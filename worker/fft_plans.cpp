#include "worker/fft_plans.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "common/error.hpp"
#include "common/invariant.hpp"
#include "worker/aligned_array.hpp"
#include "worker/wisdom_file.hpp"

namespace echelle {
namespace {

struct EffortName {
    FftEffort effort;
    std::string_view name;
    unsigned flags;
};

constexpr std::array<EffortName, 3> kEfforts{{
    {FftEffort::estimate, "estimate", FFTW_ESTIMATE},
    {FftEffort::measure, "measure", FFTW_MEASURE},
    {FftEffort::patient, "patient", FFTW_PATIENT},
}};

const EffortName& entry_of(FftEffort effort) {
    return kEfforts[static_cast<size_t>(effort)];
}

fftwf_complex* as_fftw(const std::complex<float>* values) {
    // FFTW's new-array functions take no const, but out-of-place plans do not write their input.
    return reinterpret_cast<fftwf_complex*>(const_cast<std::complex<float>*>(values));
}

struct FftwFree {
    void operator()(char* text) const { std::free(text); }
};
using FftwText = std::unique_ptr<char, FftwFree>;

// Makes plans on one pair of buffers, first from wisdom alone.
class Planner {
  public:
    Planner(uint32_t nperseg, unsigned flags)
        : size_(static_cast<int>(nperseg)),
          flags_(flags | FFTW_PRESERVE_INPUT),
          in_(nperseg),
          out_(nperseg) {}

    fftwf_plan complex_plan() {
        return plan([this](unsigned flags) {
            return fftwf_plan_dft_1d(size_, as_fftw(in_.data()), as_fftw(out_.data()), FFTW_FORWARD,
                                     flags);
        });
    }
    fftwf_plan real_plan() {
        return plan([this](unsigned flags) {
            return fftwf_plan_dft_r2c_1d(size_, reinterpret_cast<float*>(in_.data()),
                                         as_fftw(out_.data()), flags);
        });
    }
    bool planned_anew() const { return planned_anew_; }

  private:
    template <class Make>
    fftwf_plan plan(Make make) {
        const bool searches = (flags_ & FFTW_ESTIMATE) == 0;
        if (searches) {
            if (const fftwf_plan known = make(flags_ | FFTW_WISDOM_ONLY)) {
                return known;
            }
        }
        planned_anew_ = searches;
        const fftwf_plan found = make(flags_);
        if (found == nullptr) {
            throw RunError("FFTW has no plan for nperseg " + std::to_string(size_) +
                           "; choose another --nperseg");
        }
        return found;
    }

    int size_;
    unsigned flags_;
    AlignedArray<std::complex<float>> in_;
    AlignedArray<std::complex<float>> out_;
    bool planned_anew_ = false;
};

std::string operations_of(fftwf_plan plan) {
    const FftwText printed(fftwf_sprint_plan(plan));
    std::string text;
    for (const char* c = printed.get(); c != nullptr && *c != '\0'; ++c) {
        const bool is_space = std::isspace(static_cast<unsigned char>(*c)) != 0;
        if (!is_space) {
            text += *c;
        } else if (!text.empty() && text.back() != ' ') {
            text += ' ';
        }
    }
    return text;
}

}  // namespace

std::string_view name_of(FftEffort effort) {
    return entry_of(effort).name;
}

FftEffort parse_fft_effort(std::string_view text) {
    for (const EffortName& entry : kEfforts) {
        if (entry.name == text) {
            return entry.effort;
        }
    }
    throw UsageError("unknown FFT planning effort '" + std::string(text) +
                     "'; use estimate, measure or patient");
}

std::string_view name_of(FftKind kind) {
    switch (kind) {
        case FftKind::automatic:
            return "auto";
        case FftKind::own:
            return "own";
        case FftKind::fftw:
            break;
    }
    return "fftw";
}

FftKind parse_fft_kind(std::string_view text) {
    for (const FftKind kind : {FftKind::automatic, FftKind::own, FftKind::fftw}) {
        if (name_of(kind) == text) {
            return kind;
        }
    }
    throw UsageError("unknown transform '" + std::string(text) + "'; use auto, own or fftw");
}

std::string_view name_of(WisdomUse use) {
    switch (use) {
        case WisdomUse::read:
            return "read";
        case WisdomUse::written:
            return "written";
        case WisdomUse::none:
            break;
    }
    return "none";
}

FftPlans::FftPlans(uint32_t nperseg, bool complex_input, bool pair_channels, FftEffort effort,
                   FftKind kind, double time_limit_s)
    : nperseg_(nperseg), effort_(effort) {
    const bool wants_split = kind == FftKind::own
                                 ? SplitTransform::supports(nperseg)
                                 : kind == FftKind::automatic && SplitTransform::pays(nperseg);
    if ((complex_input || pair_channels) && wants_split) {
        split_.emplace(nperseg);
    }
    const bool needs_complex = (complex_input || pair_channels) && !split_;
    const bool needs_real = !complex_input;
    if (!needs_complex && !needs_real) {
        return;
    }
    std::string path;
    // Plans of other sizes made before in this process must not decide this one.
    fftwf_forget_wisdom();
    if (effort != FftEffort::estimate) {
        const char* const kinds = !needs_complex ? "real" : complex_input ? "complex" : "pair";
        if (const auto directory = wisdom_directory()) {
            path =
                *directory + "/" + wisdom_file_name(nperseg, kinds, std::string(name_of(effort)));
            if (const auto known = read_wisdom(path)) {
                fftwf_import_wisdom_from_string(known->c_str());
            }
        }
    }
    fftwf_set_timelimit(time_limit_s);
    Planner planner(nperseg, entry_of(effort).flags);
    if (needs_complex) {
        complex_plan_ = planner.complex_plan();
    }
    if (needs_real) {
        try {
            real_plan_ = planner.real_plan();
        } catch (...) {
            fftwf_destroy_plan(complex_plan_);
            throw;
        }
    }
    if (path.empty()) {
        return;
    }
    if (!planner.planned_anew()) {
        wisdom_ = WisdomUse::read;
        return;
    }
    const FftwText found(fftwf_export_wisdom_to_string());
    if (found != nullptr && write_wisdom(path, found.get())) {
        wisdom_ = WisdomUse::written;
    }
}

FftPlans::FftPlans(FftPlans&& other) noexcept
    : nperseg_(other.nperseg_),
      effort_(other.effort_),
      wisdom_(other.wisdom_),
      split_(std::move(other.split_)),
      complex_plan_(std::exchange(other.complex_plan_, nullptr)),
      real_plan_(std::exchange(other.real_plan_, nullptr)) {}

FftPlans::~FftPlans() {
    fftwf_destroy_plan(complex_plan_);
    fftwf_destroy_plan(real_plan_);
}

void FftPlans::complex_transform(const std::complex<float>* in, std::complex<float>* out) const {
    ECHELLE_INVARIANT(complex_plan_ != nullptr);
    fftwf_execute_dft(complex_plan_, as_fftw(in), as_fftw(out));
}

void FftPlans::real_transform(const float* in, std::complex<float>* out) const {
    ECHELLE_INVARIANT(real_plan_ != nullptr);
    fftwf_execute_dft_r2c(real_plan_, const_cast<float*>(in), as_fftw(out));
}

std::string FftPlans::description() const {
    std::string text;
    if (split_) {
        text += "own split transform: " + split_->description() + "; FFTW ";
    }
    text += name_of(effort_);
    if (complex_plan_ != nullptr) {
        text += "; complex: " + operations_of(complex_plan_);
    }
    if (real_plan_ != nullptr) {
        text += "; real: " + operations_of(real_plan_);
    }
    return text;
}

}  // namespace echelle
