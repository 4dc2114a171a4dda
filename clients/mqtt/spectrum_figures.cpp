#include "clients/mqtt/spectrum_figures.hpp"

#include <algorithm>
#include <cmath>

namespace echelle::mqtt {
namespace {

// The first bin at `hz` or above it; by comparison, since a quotient may be rounded across.
size_t first_bin_at(double hz, const SpectrumAxis& axis, size_t bins) {
    size_t low = 0;
    size_t high = bins;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (axis.frequency(middle) < hz) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool is_peak(std::span<const float> values, size_t bin) {
    const bool above_left = bin == 0 || values[bin] > values[bin - 1];
    const bool above_right = bin + 1 == values.size() || values[bin] >= values[bin + 1];
    return above_left && above_right && values[bin] > 0;
}

// In bins from the highest one: -0.5 to 0.5.
double offset_of_summit(std::span<const float> values, size_t bin) {
    if (bin == 0 || bin + 1 == values.size() || !(values[bin - 1] > 0) || !(values[bin + 1] > 0)) {
        return 0;
    }
    const double left = std::log(static_cast<double>(values[bin - 1]));
    const double middle = std::log(static_cast<double>(values[bin]));
    const double right = std::log(static_cast<double>(values[bin + 1]));
    const double curvature = left - 2 * middle + right;
    return curvature < 0 ? std::clamp((left - right) / (2 * curvature), -0.5, 0.5) : 0;
}

}  // namespace

BinRange bins_of(const Band& band, const SpectrumAxis& axis, size_t bins) {
    return {first_bin_at(band.low_hz, axis, bins), first_bin_at(band.high_hz, axis, bins)};
}

double band_power(std::span<const float> density, const Band& band, const SpectrumAxis& axis) {
    const BinRange range = bins_of(band, axis, density.size());
    double sum = 0;
    for (size_t bin = range.first; bin < range.end; ++bin) {
        sum += static_cast<double>(density[bin]);
    }
    return sum * axis.bin_spacing_hz;
}

std::vector<Peak> peaks_of(std::span<const float> values, const SpectrumAxis& axis, size_t most) {
    std::vector<size_t> bins;
    for (size_t bin = 0; bin < values.size(); ++bin) {
        if (is_peak(values, bin)) {
            bins.push_back(bin);
        }
    }
    const size_t count = std::min(most, bins.size());
    const auto higher = [&values](size_t a, size_t b) {
        return values[a] > values[b] || (values[a] == values[b] && a < b);
    };
    const auto end = bins.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(bins.begin(), end, bins.end(), higher);
    std::vector<Peak> peaks;
    for (auto at = bins.begin(); at != end; ++at) {
        const double summit = static_cast<double>(*at) + offset_of_summit(values, *at);
        peaks.push_back({*at, axis.frequency(*at), axis.first_bin_hz + summit * axis.bin_spacing_hz,
                         static_cast<double>(values[*at])});
    }
    return peaks;
}

}  // namespace echelle::mqtt
