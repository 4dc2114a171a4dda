// Welch's method in double precision by its definition, with a plain discrete Fourier transform:
// an independent reference for the engine on any shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

#include "common/welch_parameters.hpp"
#include "tests/unit/welch_recording.hpp"

namespace echelle::test {

class DirectWelch {
  public:
    DirectWelch(const WelchParameters& parameters, double rate_hz)
        : parameters_(parameters),
          window_(parameters.window.coefficients(parameters.nperseg)),
          rate_hz_(rate_hz) {
        const uint32_t n = parameters.nperseg;
        for (uint32_t i = 0; i < n; ++i) {
            turns_.push_back(std::polar(1.0, -2.0 * std::numbers::pi * i / n));
        }
    }

    // Empty when no segment fits.
    std::vector<double> spectrum(const Recording& recording, uint32_t channel) const {
        std::vector<std::vector<double>> rows;
        for (uint64_t begin = 0; begin + parameters_.nperseg <= recording.samples;
             begin += parameters_.hop()) {
            rows.push_back(periodogram(recording, channel, begin));
        }
        std::vector<double> result;
        for (size_t k = 0; !rows.empty() && k < rows[0].size(); ++k) {
            std::vector<double> column;
            for (const auto& row : rows) {
                column.push_back(row[k]);
            }
            result.push_back(reduce(column));
        }
        return result;
    }

  private:
    std::vector<double> periodogram(const Recording& recording, uint32_t channel,
                                    uint64_t begin) const {
        const uint32_t n = parameters_.nperseg;
        std::vector<std::complex<double>> x;
        std::complex<double> mean = 0.0;
        for (uint32_t i = 0; i < n; ++i) {
            const double re = recording.at(channel, begin + i, 0);
            const double im = recording.is_complex ? recording.at(channel, begin + i, 1) : 0;
            x.emplace_back(re, im);
            mean += x.back() / static_cast<double>(n);
        }
        for (uint32_t i = 0; i < n; ++i) {
            x[i] = window_[i] * (x[i] - (parameters_.detrend == Detrend::constant ? mean : 0.0));
        }
        const uint32_t bins = parameters_.bins(recording.is_complex);
        std::vector<double> values;
        for (uint32_t bin = 0; bin < bins; ++bin) {
            // Complex: value 0 is bin -floor(n / 2).
            const uint32_t k = recording.is_complex ? (bin + n - n / 2) % n : bin;
            std::complex<double> sum = 0.0;
            for (uint32_t i = 0; i < n; ++i) {
                sum += x[i] * turns_[uint64_t{k} * i % n];
            }
            const bool alone = k == 0 || 2 * k == n || recording.is_complex;
            values.push_back(std::norm(sum) * scale() * (alone ? 1.0 : 2.0));
        }
        return values;
    }

    double scale() const {
        double sum = 0.0;
        double squares = 0.0;
        for (const double w : window_) {
            sum += w;
            squares += w * w;
        }
        const double volts = parameters_.volts_per_count;
        return (volts > 0.0 ? volts * volts : 1.0) /
               (parameters_.scaling == Scaling::density ? rate_hz_ * squares : sum * sum);
    }

    double reduce(std::vector<double>& column) const {
        std::sort(column.begin(), column.end());
        const size_t n = column.size();
        if (parameters_.average_mode == AverageMode::max) {
            return column.back();
        }
        if (parameters_.average_mode == AverageMode::median) {
            double bias = 1.0;  // Allen et al., gr-qc/0509116, appendix B
            for (size_t i = 1; i <= (n - 1) / 2; ++i) {
                const auto even = static_cast<double>(2 * i);
                bias += 1.0 / (even + 1.0) - 1.0 / even;
            }
            return (column[(n - 1) / 2] + column[n / 2]) / 2.0 / bias;
        }
        double sum = 0.0;
        for (const double value : column) {
            sum += value;
        }
        return sum / static_cast<double>(n);
    }

    WelchParameters parameters_;
    std::vector<double> window_;
    double rate_hz_;
    std::vector<std::complex<double>> turns_;
};

}  // namespace echelle::test
