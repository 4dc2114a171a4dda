// Window functions, periodic (DFT-even) as scipy.signal.get_window(name, n) gives them by default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelle {

enum class WindowKind : uint16_t {
    boxcar = 0,
    hann = 1,
    hamming = 2,
    blackman = 3,
    blackmanharris = 4,
    flattop = 5,
    kaiser = 6,  // parameter: beta, no default
    tukey = 7,   // parameter: alpha in [0, 1], 0.5 by default
};

struct Window {
    WindowKind kind = WindowKind::hann;
    double parameter = 0.0;  // of kaiser and tukey, 0 otherwise

    // n coefficients, in double; n >= 1. Equal to scipy's to 1e-15 absolute.
    std::vector<double> coefficients(uint32_t n) const;
    std::string text() const;  // as parse() reads it: "hann", "kaiser,8.6"
    bool operator==(const Window&) const = default;

    // "NAME" or "NAME,PARAM". Throws UsageError listing the known names.
    static Window parse(std::string_view text);
};

}  // namespace echelle
