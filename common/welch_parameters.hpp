// The parameters of Welch's method, named and defaulted as in scipy.signal.welch except that
// nperseg is 1024. docs/welch.md defines what each does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/window.hpp"

namespace echelle {

enum class Detrend : uint8_t { none = 0, constant = 1 };
enum class Scaling : uint8_t { density = 0, spectrum = 1 };
enum class AverageMode : uint8_t { mean = 0, median = 1, max = 2 };

struct WelchParameters {
    uint32_t nperseg = 1024;
    uint32_t noverlap = 512;  // below nperseg
    Window window;            // periodic Hann by default
    Detrend detrend = Detrend::constant;
    Scaling scaling = Scaling::density;
    AverageMode average_mode = AverageMode::mean;
    bool pair_channels = true;     // two real channels share one complex transform
    double volts_per_count = 0.0;  // 0: results in counts; otherwise in volts

    uint32_t hop() const { return nperseg - noverlap; }
    // Number of values in one spectrum: nperseg/2 + 1 one-sided (real), nperseg two-sided
    // (complex).
    uint32_t bins(bool is_complex) const { return is_complex ? nperseg : nperseg / 2 + 1; }

    // Throws UsageError unless 1 <= nperseg <= 2^24 and noverlap < nperseg, and volts_per_count is
    // finite and not negative.
    void validate() const;
};

std::string_view name_of(Detrend detrend);
std::string_view name_of(Scaling scaling);
std::string_view name_of(AverageMode mode);
Detrend parse_detrend(std::string_view text);
Scaling parse_scaling(std::string_view text);
AverageMode parse_average_mode(std::string_view text);

}  // namespace echelle
