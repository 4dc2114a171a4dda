#include "common/window.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <optional>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr std::array<std::string_view, 8> kNames{"boxcar",         "hann",    "hamming", "blackman",
                                                 "blackmanharris", "flattop", "kaiser",  "tukey"};
constexpr double kTukeyDefault = 0.5;
// Above it I0 exceeds a double, and scipy's Kaiser window is no longer a number.
constexpr double kMostBeta = 700.0;

bool takes_parameter(WindowKind kind) {
    return kind == WindowKind::kaiser || kind == WindowKind::tukey;
}

// A periodic window of n is a symmetric one of n + 1 without its last value. The arithmetic below
// goes through the same steps as scipy.signal.windows, so that even the rounding of the angles
// agrees.

// scipy's general_cosine: the sum of a[k] cos(k x), x from -pi to pi. Hann, Hamming and Blackman:
// Blackman & Tukey 1958; 4-term Blackman-Harris: Harris, Proc. IEEE 66 (1978); flat top: D'Antona
// & Ferrero, Digital Signal Processing for Measurement Systems (2006), p. 70.
void cosine_sum(std::vector<double>& w, std::initializer_list<double> a) {
    const double step = 2.0 * std::numbers::pi / static_cast<double>(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
        const double x = static_cast<double>(i) * step - std::numbers::pi;
        double k = 0.0;
        for (const double weight : a) {
            w[i] += weight * std::cos(k * x);
            k += 1.0;
        }
    }
}

// The modified Bessel function of order 0 by its power series (Abramowitz & Stegun 9.6.10). All
// terms are positive, so nothing cancels.
long double bessel_i0(long double x) {
    const long double quarter_square = x * x / 4.0L;
    long double term = 1.0L;
    long double sum = 1.0L;
    for (long double k = 1.0L; term > sum * 1e-20L; k += 1.0L) {
        term *= quarter_square / (k * k);
        sum += term;
    }
    return sum;
}

// Kaiser, in Kuo & Kaiser, System Analysis by Digital Computer (1966), chapter 7.
void kaiser(std::vector<double>& w, double beta) {
    const double alpha = static_cast<double>(w.size()) / 2.0;
    const long double at_centre = bessel_i0(beta);
    for (size_t i = 0; i < w.size(); ++i) {
        // Symmetric about size / 2 within the periodic window.
        if (2 * i > w.size()) {
            w[i] = w[w.size() - i];
            continue;
        }
        const double x = (static_cast<double>(i) - alpha) / alpha;
        w[i] = static_cast<double>(bessel_i0(beta * std::sqrt(1.0 - x * x)) / at_centre);
    }
}

// Harris, Proc. IEEE 66 (1978): flat, with a cosine taper over the fraction alpha of its length.
void tukey(std::vector<double>& w, double alpha) {
    if (alpha <= 0.0) {
        w.assign(w.size(), 1.0);
        return;
    }
    if (alpha >= 1.0) {
        cosine_sum(w, {0.5, 0.5});
        return;
    }
    const auto length = static_cast<double>(w.size());  // of the symmetric window, less one
    const auto width = static_cast<size_t>(std::floor(alpha * length / 2.0));
    for (size_t i = 0; i < w.size(); ++i) {
        const auto n = static_cast<double>(i);
        double x = 0.0;
        if (i <= width) {
            x = -1.0 + 2.0 * n / alpha / length;
        } else if (i >= w.size() - width) {
            x = -2.0 / alpha + 1.0 + 2.0 * n / alpha / length;
        }
        w[i] = 0.5 * (1.0 + std::cos(std::numbers::pi * x));
    }
}

std::string known_windows() {
    std::string text;
    for (const std::string_view name : kNames) {
        text += (text.empty() ? "" : ", ") + std::string(name);
        text += name == "kaiser" ? ",BETA" : name == "tukey" ? "[,ALPHA]" : "";
    }
    return text;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    throw UsageError("window '" + std::string(text) + "' " + why);
}

double parse_parameter(std::string_view text, std::string_view parameter) {
    double value = 0.0;
    const char* const end = parameter.data() + parameter.size();
    const auto [stop, error] = std::from_chars(parameter.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) {
        refuse(text, "has a parameter that is not a finite number; write it as in kaiser,8.6");
    }
    return value;
}

std::optional<WindowKind> kind_named(std::string_view name) {
    for (size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == name) {
            return static_cast<WindowKind>(i);
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<double> Window::coefficients(uint32_t n) const {
    std::vector<double> w(n, 0.0);
    if (n == 1) {
        w[0] = 1.0;
        return w;
    }
    switch (kind) {
        case WindowKind::boxcar:
            w.assign(n, 1.0);
            break;
        case WindowKind::hann:
            cosine_sum(w, {0.5, 0.5});
            break;
        case WindowKind::hamming:
            cosine_sum(w, {0.54, 1.0 - 0.54});
            break;
        case WindowKind::blackman:
            cosine_sum(w, {0.42, 0.50, 0.08});
            break;
        case WindowKind::blackmanharris:
            cosine_sum(w, {0.35875, 0.48829, 0.14128, 0.01168});
            break;
        case WindowKind::flattop:
            cosine_sum(w, {0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368});
            break;
        case WindowKind::kaiser:
            kaiser(w, parameter);
            break;
        case WindowKind::tukey:
            tukey(w, parameter);
            break;
    }
    return w;
}

std::string Window::text() const {
    const auto index = static_cast<size_t>(kind);
    std::string result(index < kNames.size() ? kNames[index] : "unknown");
    if (takes_parameter(kind)) {
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), parameter).ptr;
        result += ',';
        result.append(digits.data(), end);
    }
    return result;
}

Window Window::parse(std::string_view text) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    const auto kind = kind_named(name);
    if (!kind) {
        refuse(text, "is unknown; use one of " + known_windows());
    }
    Window window{*kind, 0.0};
    if (comma == std::string_view::npos) {
        if (*kind == WindowKind::kaiser) {
            refuse(text, "needs its beta; write it as in kaiser,8.6");
        }
        window.parameter = *kind == WindowKind::tukey ? kTukeyDefault : 0.0;
        return window;
    }
    if (!takes_parameter(*kind)) {
        refuse(text, "takes no parameter; write " + std::string(name));
    }
    window.parameter = parse_parameter(text, text.substr(comma + 1));
    const double most = *kind == WindowKind::tukey ? 1.0 : kMostBeta;
    if (window.parameter < 0.0 || window.parameter > most) {
        refuse(text, *kind == WindowKind::tukey ? "has an alpha outside 0 to 1"
                                                : "has a beta outside 0 to 700");
    }
    return window;
}

}  // namespace echelle
