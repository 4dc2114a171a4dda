#include "common/welch_parameters.hpp"

#include <array>
#include <cmath>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr uint32_t kMostNperseg = 1U << 24;

constexpr std::array<std::string_view, 2> kDetrendNames{"none", "constant"};
constexpr std::array<std::string_view, 2> kScalingNames{"density", "spectrum"};
constexpr std::array<std::string_view, 3> kAverageNames{"mean", "median", "max"};

// Each enum counts its names from 0.
template <typename Enum, size_t kCount>
Enum parse_name(std::string_view what, const std::array<std::string_view, kCount>& names,
                std::string_view text) {
    std::string known;
    for (size_t i = 0; i < kCount; ++i) {
        if (names[i] == text) {
            return static_cast<Enum>(i);
        }
        known += (i == 0 ? "" : i + 1 == kCount ? " or " : ", ") + std::string(names[i]);
    }
    throw UsageError("unknown " + std::string(what) + " '" + std::string(text) + "'; use " + known);
}

template <typename Enum, size_t kCount>
std::string_view name_in(const std::array<std::string_view, kCount>& names, Enum value) {
    const auto index = static_cast<size_t>(value);
    return index < kCount ? names[index] : "unknown";
}

}  // namespace

void WelchParameters::validate() const {
    if (nperseg < 1 || nperseg > kMostNperseg) {
        throw UsageError("nperseg is " + std::to_string(nperseg) + "; use 1 to " +
                         std::to_string(kMostNperseg));
    }
    if (noverlap >= nperseg) {
        throw UsageError("noverlap is " + std::to_string(noverlap) +
                         "; it must be less than nperseg, " + std::to_string(nperseg));
    }
    if (!std::isfinite(volts_per_count) || volts_per_count < 0.0) {
        throw UsageError("volts-per-count is " + std::to_string(volts_per_count) +
                         "; use a positive number, or 0 for counts");
    }
    if (Window::parse(window.text()) != window) {
        throw UsageError("the window's parameter belongs to another window than " + window.text() +
                         "; only kaiser and tukey take one");
    }
}

std::string_view name_of(Detrend detrend) {
    return name_in(kDetrendNames, detrend);
}

std::string_view name_of(Scaling scaling) {
    return name_in(kScalingNames, scaling);
}

std::string_view name_of(AverageMode mode) {
    return name_in(kAverageNames, mode);
}

Detrend parse_detrend(std::string_view text) {
    return parse_name<Detrend>("detrend", kDetrendNames, text);
}

Scaling parse_scaling(std::string_view text) {
    return parse_name<Scaling>("scaling", kScalingNames, text);
}

AverageMode parse_average_mode(std::string_view text) {
    return parse_name<AverageMode>("average-mode", kAverageNames, text);
}

}  // namespace echelle
