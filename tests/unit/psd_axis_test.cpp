// Literal values are numpy 1.24's and scipy 1.10's: numpy.fft.rfftfreq, fftshift(fftfreq), median,
// and scipy.signal's _median_bias; scipy's exact sums for the bias were checked with fractions.
#include "common/psd_axis.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace echelle {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

float median_of(std::vector<float> values) {
    return median_in_place(values);
}

TEST(BinSpacing, IsNumpys) {
    EXPECT_DOUBLE_EQ(bin_spacing_hz(1024, {10'000'000, 1}), 9765.625);
    EXPECT_DOUBLE_EQ(bin_spacing_hz(8, {200, 3}), 8.333333333333334);
    EXPECT_DOUBLE_EQ(bin_spacing_hz(7, {48'000, 1}), 6857.142857142858);
    EXPECT_DOUBLE_EQ(bin_spacing_hz(2, {1000, 1}), 500.0);
    EXPECT_DOUBLE_EQ(bin_spacing_hz(1, {1000, 1}), 1000.0);
}

TEST(BinSpacing, IsRoundedOnce) {
    // The doubles nearest to the exact fractions; dividing twice gives their neighbours.
    EXPECT_EQ(bin_spacing_hz(1000, {100'000'000, 3}), 33333.333333333336);
    EXPECT_EQ(bin_spacing_hz(1536, {66'666, 1000}), 0.04340234375);
    EXPECT_EQ(bin_spacing_hz(3072, {200, 3}), 0.021701388888888888);
}

TEST(FirstBin, IsZeroForRealChannels) {
    EXPECT_EQ(first_bin_hz(1024, false, {10'000'000, 1}), 0.0);
    EXPECT_EQ(first_bin_hz(7, false, {48'000, 1}), 0.0);
}

TEST(FirstBin, IsFftshiftsForComplexChannels) {
    EXPECT_DOUBLE_EQ(first_bin_hz(1024, true, {10'000'000, 1}), -5000000.0);
    EXPECT_DOUBLE_EQ(first_bin_hz(8, true, {200, 3}), -33.333333333333336);
    EXPECT_DOUBLE_EQ(first_bin_hz(7, true, {48'000, 1}), -20571.428571428572);
    EXPECT_DOUBLE_EQ(first_bin_hz(2, true, {1000, 1}), -500.0);
}

TEST(FirstBin, OfOneBinIsPositiveZero) {
    EXPECT_EQ(first_bin_hz(1, true, {1000, 1}), 0.0);
    EXPECT_FALSE(std::signbit(first_bin_hz(1, true, {1000, 1})));
}

TEST(FirstBin, PutsDcAtExactlyZero) {
    for (const Rational rate : {Rational{200, 3}, Rational{66'666, 1000}, Rational{44'100, 1}}) {
        for (uint32_t nperseg = 1; nperseg < 2000; ++nperseg) {
            const uint32_t dc = nperseg / 2;
            const double to_dc = dc * bin_spacing_hz(nperseg, rate);
            ASSERT_EQ(first_bin_hz(nperseg, true, rate) + to_dc, 0.0) << nperseg;
        }
    }
}

TEST(MedianBias, IsScipys) {
    EXPECT_DOUBLE_EQ(median_bias(1), 1.0);
    EXPECT_DOUBLE_EQ(median_bias(2), 1.0);
    EXPECT_DOUBLE_EQ(median_bias(3), 0.8333333333333333);
    EXPECT_DOUBLE_EQ(median_bias(4), 0.8333333333333333);
    EXPECT_DOUBLE_EQ(median_bias(5), 0.7833333333333333);
    EXPECT_DOUBLE_EQ(median_bias(8), 0.7595238095238095);
    EXPECT_DOUBLE_EQ(median_bias(15), 0.7253718503718505);
    EXPECT_DOUBLE_EQ(median_bias(100), 0.6981721793101952);
}

TEST(MedianBias, IsScipysWhereTheSumGivesWayToTheExpansion) {
    EXPECT_DOUBLE_EQ(median_bias(510), 0.6941285338837416);
    EXPECT_DOUBLE_EQ(median_bias(511), 0.6941246967324427);
    EXPECT_DOUBLE_EQ(median_bias(512), 0.6941246967324427);
    EXPECT_DOUBLE_EQ(median_bias(513), 0.6941208894712342);
    EXPECT_DOUBLE_EQ(median_bias(514), 0.6941208894712342);
    EXPECT_DOUBLE_EQ(median_bias(1001), 0.6936464315588213);
    EXPECT_DOUBLE_EQ(median_bias(1'000'000), 0.6931476805601953);
    EXPECT_DOUBLE_EQ(median_bias(1'000'001), 0.6931476805591953);
}

TEST(MedianBias, OfAnyCountIsQuicklyNearItsLimit) {
    EXPECT_DOUBLE_EQ(median_bias(std::numeric_limits<uint64_t>::max()), std::numbers::ln2);
    EXPECT_DOUBLE_EQ(median_bias(uint64_t{1} << 40), 0.6931471805604000);  // ln 2 + 2^-41
}

TEST(Median, IsNumpys) {
    EXPECT_EQ(median_of({1}), 1.0F);
    EXPECT_EQ(median_of({1, 2}), 1.5F);
    EXPECT_EQ(median_of({3, 1, 2}), 2.0F);
    EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5F);
    EXPECT_EQ(median_of({1e-30F, 5e10F, 7, 7, 7, -2}), 7.0F);
    EXPECT_EQ(median_of({0.1F, 0.2F}), 0.15F);
    EXPECT_EQ(median_of({16777216.0F, 16777218.0F}), 16777216.0F);
}

TEST(Median, RoundsDenormalsAsNumpy) {
    const float least = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(median_of({least, 2 * least}), 2 * least);
}

TEST(Median, OfManyShuffledValues) {
    for (const uint32_t count : {1001U, 1000U}) {
        std::vector<float> values(count);
        for (uint32_t index = 0; index < count; ++index) {
            values[index] = static_cast<float>(index * 37 % count);  // a permutation of 0 … count-1
        }
        EXPECT_EQ(median_of(values), static_cast<float>(count - 1) / 2);
    }
}

TEST(Median, OfEqualValuesIsTheirValue) {
    EXPECT_EQ(median_of(std::vector<float>(64, 2.5F)), 2.5F);
}

TEST(Median, OfHugeValuesDoesNotOverflow) {
    EXPECT_EQ(median_of({3e38F, 3e38F}), 3e38F);
}

TEST(Median, OfInfinities) {
    EXPECT_EQ(median_of({infinity, 1}), infinity);
    EXPECT_EQ(median_of({infinity, infinity, 1, 2}), infinity);
    EXPECT_EQ(median_of({-infinity, 0, infinity}), 0.0F);
    EXPECT_TRUE(std::isnan(median_of({infinity, -infinity})));
}

TEST(Median, WithANanAnywhereIsNan) {
    for (size_t at = 0; at < 33; ++at) {
        std::vector<float> values(33, 1.0F);
        values[at] = not_a_number;
        EXPECT_TRUE(std::isnan(median_of(values))) << at;
    }
}

TEST(PsdAxisDeathTest, RefusesWhatHasNoAnswer) {
    std::vector<float> none;
    EXPECT_DEATH(median_in_place(none), "broken invariant");
    EXPECT_DEATH(median_bias(0), "broken invariant");
    EXPECT_DEATH(bin_spacing_hz(0, {1, 1}), "broken invariant");
}

}  // namespace
}  // namespace echelle
