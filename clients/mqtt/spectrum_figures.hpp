// The figures that a dashboard wants of a spectrum: powers in bands, and peaks. Pure functions of
// the values of one spectrum and of its axis. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace echelle::mqtt {

struct SpectrumAxis {  // bin i stands at first_bin_hz + i * bin_spacing_hz
    double first_bin_hz = 0;
    double bin_spacing_hz = 1;
    double frequency(size_t bin) const {
        return first_bin_hz + static_cast<double>(bin) * bin_spacing_hz;
    }
};

struct Band {  // the bins whose centres lie in low_hz <= f < high_hz
    std::string name;
    double low_hz = 0;
    double high_hz = 0;
};

struct BinRange {
    size_t first = 0;
    size_t end = 0;  // one past the last
    bool is_empty() const { return first >= end; }
};

BinRange bins_of(const Band& band, const SpectrumAxis& axis, size_t bins);

// The sum of the bins times their spacing: counts^2 of counts^2/Hz, V^2 of V^2/Hz.
double band_power(std::span<const float> density, const Band& band, const SpectrumAxis& axis);

struct Peak {
    size_t bin = 0;
    double bin_hz = 0;  // the bin's centre
    double hz = 0;      // interpolated; the bin's centre where that cannot be
    double level = 0;   // of the bin, in the spectrum's unit
};

// The `most` highest local maxima, the highest first. Interpolation is by the parabola through the
// logarithms of the bin and its two neighbours.
std::vector<Peak> peaks_of(std::span<const float> values, const SpectrumAxis& axis, size_t most);

}  // namespace echelle::mqtt
