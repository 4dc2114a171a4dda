// The price of pairing two real channels in one complex transform, as docs/welch.md states it.
#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "tests/unit/welch_recording.hpp"
#include "tests/unit/welch_reference.hpp"

namespace echelle::test {
namespace {

constexpr Rational kRate{10'000'000, 1};
constexpr uint64_t kSamples = uint64_t{1024} * 33;
constexpr double kTones[] = {0.0131, 0.0842, 0.1234, 0.25, 0.3449, 0.4634};  // cycles a sample

// A full-scale tone and beside it noise of `sigma` counts RMS, rounded to whole counts.
Recording beside_full_scale(double tone, double sigma) {
    Recording recording{2, kSamples, false, std::vector<int16_t>(2 * kSamples, 0)};
    std::mt19937 random(99);
    std::normal_distribution<double> noise;
    for (uint64_t i = 0; i < kSamples; ++i) {
        const double phase = 2.0 * std::numbers::pi * tone * static_cast<double>(i);
        recording.values[i] = static_cast<int16_t>(std::lrint(32767.0 * std::sin(phase)));
        recording.values[kSamples + i] = static_cast<int16_t>(std::lrint(sigma * noise(random)));
    }
    return recording;
}

std::vector<std::vector<double>> spectra(const Recording& recording, bool pair_channels,
                                         FftKind kind = FftKind::own) {
    WelchParameters parameters;
    parameters.pair_channels = pair_channels;
    const FftPlans plans(1024, false, pair_channels, FftEffort::estimate, kind);
    return BlockwiseWelch(recording, parameters, kRate, plans, {Layout::channel_major, 2048, 17, 2})
        .run()
        .values;
}

double largest(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

// Estimated plans, because they are the same everywhere; the searched plans that the product uses
// are some dB better (docs/welch.md).
TEST(Pairing, ASilentChannelShowsItsNeighbourBelow145dB) {
    for (const double tone : kTones) {
        const Recording recording = beside_full_scale(tone, 0.0);
        for (const FftKind kind : {FftKind::own, FftKind::fftw}) {
            const auto paired = spectra(recording, true, kind);
            EXPECT_LT(10.0 * std::log10(largest(paired[1]) / largest(paired[0])), -145.0)
                << tone << " " << name_of(kind);
        }
        EXPECT_EQ(largest(spectra(recording, false)[1]), 0.0);
    }
}

TEST(Pairing, NoiseOfOneCountIsOffByLessThanHalfAPercent) {
    const std::vector<double> expected =
        DirectWelch(WelchParameters{}, kRate.value()).spectrum(beside_full_scale(0.1, 1.0), 1);
    const auto worst_error_of = [&](const std::vector<double>& seen) {
        double worst = 0.0;
        for (size_t k = 0; k < expected.size(); ++k) {
            worst = std::max(worst, std::abs(seen[k] / expected[k] - 1.0));
        }
        return worst;
    };
    for (const double tone : kTones) {
        const Recording recording = beside_full_scale(tone, 1.0);
        EXPECT_LT(worst_error_of(spectra(recording, true)[1]), 0.005) << tone;
        EXPECT_LT(worst_error_of(spectra(recording, true, FftKind::fftw)[1]), 0.005) << tone;
        EXPECT_LT(worst_error_of(spectra(recording, false)[1]), 1e-5) << tone;
    }
}

}  // namespace
}  // namespace echelle::test
