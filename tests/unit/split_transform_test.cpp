// The split transform and its kernels on every SIMD target that this CPU can run, against the
// definition of the transform in double.
#include "worker/split_transform.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace echelle {
namespace {

using Values = std::vector<std::complex<double>>;

// By the definition, but for the factors' table: nperseg^2 operations.
Values direct_transform(const Values& x) {
    const size_t n = x.size();
    Values factors(n);
    for (size_t i = 0; i < n; ++i) {
        factors[i] = std::polar(
            1.0, -2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
    }
    Values result(n);
    for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < n; ++i) {
            result[k] += x[i] * factors[i * k % n];
        }
    }
    return result;
}

struct Segment {
    explicit Segment(uint32_t nperseg) : a(nperseg), b(nperseg), window(nperseg) {
        std::mt19937 random(nperseg);
        std::uniform_int_distribution<int> sample(-32768, 32767);
        std::uniform_real_distribution<float> weight(0.0F, 1.0F);
        for (uint32_t i = 0; i < nperseg; ++i) {
            a[i] = static_cast<int16_t>(sample(random));
            b[i] = static_cast<int16_t>(sample(random));
            window[i] = weight(random);
        }
        a[0] = -32768;
        b[nperseg - 1] = 32767;
    }

    Values windowed() const {
        Values x;
        for (size_t i = 0; i < a.size(); ++i) {
            const double w = double{window[i]};
            x.emplace_back(w * (static_cast<double>(a[i]) - 123.25),
                           w * (static_cast<double>(b[i]) + 45.5));
        }
        return x;
    }
    std::vector<int16_t> interleaved() const {
        std::vector<int16_t> samples;
        for (size_t i = 0; i < a.size(); ++i) {
            samples.push_back(a[i]);
            samples.push_back(b[i]);
        }
        return samples;
    }

    static constexpr SegmentMean mean_a{123.0F, 0.25F};
    static constexpr SegmentMean mean_b{-45.0F, -0.5F};
    std::vector<int16_t> a;
    std::vector<int16_t> b;
    std::vector<float> window;
};

class Split : public ::testing::TestWithParam<int64_t> {
  protected:
    void SetUp() override {
        hwy::SetSupportedTargetsForTest(GetParam());
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        if (kernels::split_lanes() == 0) {
            GTEST_SKIP() << "not for this target";
        }
    }
    void TearDown() override {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
};

INSTANTIATE_TEST_SUITE_P(AllTargets, Split,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& each) { return std::string(hwy::TargetName(each.param)); });

// The rounding of single precision grows with the logarithm of the size (N. Higham, "Accuracy and
// Stability of Numerical Algorithms", 2nd ed., section 24.1); the bound is 6e-8 for each pass of 2,
// relative to the root of the mean square.
double allowed_error(const Values& expected) {
    double squares = 0.0;
    for (const auto& value : expected) {
        squares += std::norm(value);
    }
    const auto n = static_cast<double>(expected.size());
    return 4.0 * 6e-8 * std::log2(n) * std::sqrt(squares / n);
}

void expect_equal(const kernels::SplitRows& seen, const Values& expected, const char* what) {
    double worst = 0.0;
    for (size_t k = 0; k < expected.size(); ++k) {
        const std::complex<double> value(double{seen.re[k]}, double{seen.im[k]});
        worst = std::max(worst, std::abs(value - expected[k]));
    }
    EXPECT_LT(worst, allowed_error(expected)) << what << " of " << expected.size();
}

TEST_P(Split, TransformsEqualTheDefinition) {
    for (uint32_t n = SplitTransform::smallest; n <= SplitTransform::largest; n *= 2) {
        ASSERT_TRUE(SplitTransform::supports(n));
        const Segment segment(n);
        const SplitTransform transform(n);
        SplitWorkspace workspace(n);
        const Values expected = direct_transform(segment.windowed());
        expect_equal(transform.of_pair(segment.a.data(), segment.b.data(), segment.window.data(),
                                       Segment::mean_a, Segment::mean_b, workspace),
                     expected, "pair");
        expect_equal(transform.of_complex(segment.interleaved().data(), segment.window.data(),
                                          Segment::mean_a, Segment::mean_b, workspace),
                     expected, "complex");
    }
}

// Rows with values of their own, and the powers expected of them by the formula.
struct Powers {
    explicit Powers(uint32_t nperseg) : workspace(nperseg), z(nperseg) {
        std::mt19937 random(nperseg + 1);
        std::normal_distribution<float> value(0.0F, 1000.0F);
        for (uint32_t k = 0; k < nperseg; ++k) {
            workspace.rows(0).re[k] = value(random);
            workspace.rows(0).im[k] = value(random);
            z[k] = {double{workspace.rows(0).re[k]}, double{workspace.rows(0).im[k]}};
        }
    }
    // 4 |A[k]|^2 and 4 |B[k]|^2, of Z = A + iB where a and b are real.
    double of_a(size_t k) const {
        return std::norm(z[k] + std::conj(z[(z.size() - k) % z.size()]));
    }
    double of_b(size_t k) const {
        return std::norm(z[k] - std::conj(z[(z.size() - k) % z.size()]));
    }

    SplitWorkspace workspace;
    Values z;
};

TEST_P(Split, PowersOfAPairAreSeparatedAndAddedOrCompared) {
    for (const uint32_t n : {64U, 128U, 1024U}) {
        Powers powers(n);
        const size_t bins = n / 2 + 1;
        // One value more than is written, at each end of both.
        std::vector<float> sum(2 * bins + 2, 5.0F);
        std::vector<float> larger(2 * bins + 2, 1e6F);
        kernels::add_split_pair_power(powers.workspace.rows(0), n, sum.data() + 1,
                                      sum.data() + 1 + bins);
        kernels::max_split_pair_power(powers.workspace.rows(0), n, larger.data() + 1,
                                      larger.data() + 1 + bins);
        for (size_t k = 0; k < 2 * bins; ++k) {
            const double expected = k < bins ? powers.of_a(k) : powers.of_b(k - bins);
            EXPECT_NEAR(double{sum[k + 1]}, expected + 5.0, 1e-6 * (expected + 5e6)) << k;
            EXPECT_NEAR(double{larger[k + 1]}, std::max(expected, 1e6), 1e-6 * (expected + 5e6));
        }
        EXPECT_EQ(sum.front(), 5.0F);
        EXPECT_EQ(sum.back(), 5.0F);
        EXPECT_EQ(larger.front(), 1e6F);
        EXPECT_EQ(larger.back(), 1e6F);
    }
}

TEST_P(Split, PowersOfAComplexChannelAreAddedOrCompared) {
    for (const uint32_t n : {64U, 512U}) {
        Powers powers(n);
        std::vector<float> sum(n + 1, 5.0F);
        std::vector<float> larger(n + 1, 1e6F);
        kernels::add_split_power(powers.workspace.rows(0), n, sum.data());
        kernels::max_split_power(powers.workspace.rows(0), n, larger.data());
        for (size_t k = 0; k < n; ++k) {
            const double expected = std::norm(powers.z[k]);
            EXPECT_NEAR(double{sum[k]}, expected + 5.0, 1e-6 * (expected + 5.0)) << k;
            EXPECT_NEAR(double{larger[k]}, std::max(expected, 1e6), 1e-6 * (expected + 1e6)) << k;
        }
        EXPECT_EQ(sum.back(), 5.0F);
        EXPECT_EQ(larger.back(), 1e6F);
    }
}

}  // namespace
}  // namespace echelle
