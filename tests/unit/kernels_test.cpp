// Every SIMD target that this CPU can run, against the kernels in plain loops; and those against
// values by hand.
#include "worker/kernels.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include "worker/kernels_scalar.hpp"

namespace echelle {
namespace {

using Complex = std::complex<float>;

// Lengths around every vector width, and misaligned starts.
constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257, 1024};
constexpr size_t kOffsets[] = {0, 1, 3};

class Random {
  public:
    int16_t sample() {
        // The rails often: they are where integer arithmetic overflows.
        const auto draw = static_cast<uint32_t>(engine_());
        return draw % 4 == 0   ? int16_t{-32768}
               : draw % 4 == 1 ? int16_t{32767}
                               : static_cast<int16_t>(draw >> 16);
    }
    float value() { return std::normal_distribution<float>(0.0F, 1000.0F)(engine_); }
    std::vector<int16_t> samples(size_t count) {
        std::vector<int16_t> result(count);
        for (int16_t& s : result) {
            s = sample();
        }
        return result;
    }
    std::vector<float> values(size_t count) {
        std::vector<float> result(count);
        for (float& v : result) {
            v = value();
        }
        return result;
    }
    std::vector<Complex> complexes(size_t count) {
        std::vector<Complex> result(count);
        for (Complex& v : result) {
            v = {value(), value()};
        }
        return result;
    }

  private:
    std::mt19937 engine_{5};
};

// Runs each test body once for every target.
class Kernels : public ::testing::TestWithParam<int64_t> {
  protected:
    void SetUp() override {
        hwy::SetSupportedTargetsForTest(GetParam());
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        ASSERT_STREQ(kernels::target(), hwy::TargetName(GetParam()));
    }
    void TearDown() override {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }

    Random random_;
};

INSTANTIATE_TEST_SUITE_P(AllTargets, Kernels,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& each) { return std::string(hwy::TargetName(each.param)); });

// Float results may differ in the last place where a target multiplies and adds in one rounding.
void expect_close(const std::vector<float>& seen, const std::vector<float>& expected) {
    ASSERT_EQ(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) {
        ASSERT_NEAR(seen[i], expected[i], 4e-7 * std::abs(double{expected[i]})) << "value " << i;
    }
}

void expect_same(const std::vector<Complex>& seen, const std::vector<Complex>& expected) {
    ASSERT_EQ(seen, expected);
}

TEST_P(Kernels, LoadPair) {
    const SegmentMean mean_a{-7.0F, 0.25F};
    const SegmentMean mean_b{20001.0F, -0.4F};
    for (const size_t count : kCounts) {
        for (const size_t offset : kOffsets) {
            const auto a = random_.samples(count + offset);
            const auto b = random_.samples(count + offset);
            const auto window = random_.values(count + offset);
            std::vector<Complex> seen(count + 1, {9.0F, 9.0F});
            std::vector<Complex> expected = seen;
            kernels::load_pair(a.data() + offset, b.data() + offset, window.data() + offset, mean_a,
                               mean_b, count, seen.data());
            kernels::scalar::load_pair(a.data() + offset, b.data() + offset, window.data() + offset,
                                       mean_a, mean_b, count, expected.data());
            expect_same(seen, expected);
        }
    }
}

TEST_P(Kernels, LoadReal) {
    for (const size_t count : kCounts) {
        const auto a = random_.samples(count + 1);
        const auto window = random_.values(count);
        std::vector<float> seen(count + 1, 9.0F);
        std::vector<float> expected = seen;
        kernels::load_real(a.data() + 1, window.data(), {300.0F, 0.1F}, count, seen.data());
        kernels::scalar::load_real(a.data() + 1, window.data(), {300.0F, 0.1F}, count,
                                   expected.data());
        ASSERT_EQ(seen, expected);
    }
}

TEST_P(Kernels, LoadComplex) {
    for (const size_t count : kCounts) {
        const auto samples = random_.samples(2 * count + 1);
        const auto window = random_.values(count);
        std::vector<Complex> seen(count + 1, {9.0F, 9.0F});
        std::vector<Complex> expected = seen;
        kernels::load_complex(samples.data() + 1, window.data(), {5.0F, -0.5F}, {-3.0F, 0.1F},
                              count, seen.data());
        kernels::scalar::load_complex(samples.data() + 1, window.data(), {5.0F, -0.5F},
                                      {-3.0F, 0.1F}, count, expected.data());
        expect_same(seen, expected);
    }
}

TEST_P(Kernels, SumsAndStatistics) {
    for (const size_t count : kCounts) {
        for (const size_t offset : kOffsets) {
            const auto samples = random_.samples(2 * count + offset);
            const int16_t* at = samples.data() + offset;
            EXPECT_EQ(kernels::sum_real(at, count), kernels::scalar::sum_real(at, count));
            EXPECT_EQ(kernels::sum_complex(at, count), kernels::scalar::sum_complex(at, count));
            for (const auto& [low, high] : {std::pair<int16_t, int16_t>{-32768, 32767},
                                            {-128, 127},
                                            {-1, 0},
                                            {INT16_MAX, INT16_MIN}}) {
                EXPECT_EQ(kernels::statistics_real(at, count, low, high),
                          kernels::scalar::statistics_real(at, count, low, high));
                EXPECT_EQ(kernels::statistics_complex(at, count, low, high),
                          kernels::scalar::statistics_complex(at, count, low, high));
            }
        }
    }
}

// Long enough to overflow any 32-bit sum, of the value whose squares overflow in pairs.
TEST_P(Kernels, StatisticsOfALongRunAtTheRail) {
    const size_t count = 3000001;
    const std::vector<int16_t> samples(2 * count, -32768);
    const auto n = static_cast<int64_t>(count);
    const uint64_t square = uint64_t{1} << 30;
    const RunSums real{-32768 * n, 0, count * square, count};
    EXPECT_EQ(kernels::statistics_real(samples.data(), count, -32768, 32767), real);
    const RunSums complex{-32768 * n, -32768 * n, 2 * count * square, count};
    EXPECT_EQ(kernels::statistics_complex(samples.data(), count, -32768, 32767), complex);
    EXPECT_EQ(kernels::sum_real(samples.data(), count), (RunSums{-32768 * n, 0, 0, 0}));
    EXPECT_EQ(kernels::sum_complex(samples.data(), count), (RunSums{-32768 * n, -32768 * n, 0, 0}));
}

TEST_P(Kernels, PairPower) {
    for (uint32_t nperseg = 1; nperseg < 140; ++nperseg) {
        auto z = random_.complexes(nperseg + 1);
        z[nperseg] = z[0];
        const size_t values = size_t{2} * (nperseg / 2 + 1);
        std::vector<float> seen(values + 1, 3.0e6F);
        std::vector<float> expected = seen;
        kernels::add_pair_power(z.data(), nperseg, seen.data());
        kernels::scalar::add_pair_power(z.data(), nperseg, expected.data());
        expect_close(seen, expected);
        seen.assign(values + 1, 3.0e6F);
        expected = seen;
        kernels::max_pair_power(z.data(), nperseg, seen.data());
        kernels::scalar::max_pair_power(z.data(), nperseg, expected.data());
        expect_close(seen, expected);
    }
}

TEST_P(Kernels, Power) {
    for (const size_t count : kCounts) {
        const auto z = random_.complexes(count);
        std::vector<float> seen(count + 1, 1.0e6F);
        std::vector<float> expected = seen;
        kernels::add_power(z.data(), count, seen.data());
        kernels::scalar::add_power(z.data(), count, expected.data());
        expect_close(seen, expected);
        seen.assign(count + 1, 1.0e6F);
        expected = seen;
        kernels::max_power(z.data(), count, seen.data());
        kernels::scalar::max_power(z.data(), count, expected.data());
        expect_close(seen, expected);
    }
}

TEST_P(Kernels, Scale) {
    const double tiny = 3.3e-42;  // a subnormal as float
    for (const size_t count : kCounts) {
        auto power = random_.values(2 * count);
        for (float& p : power) {
            p *= 1e25F;
        }
        std::vector<float> a(count + 1, 9.0F);
        std::vector<float> b = a;
        std::vector<float> out = a;
        kernels::scale_pair_power(power.data(), count, tiny, a.data(), b.data());
        kernels::scale_power(power.data(), count, tiny, out.data());
        for (size_t k = 0; k < count; ++k) {
            EXPECT_EQ(a[k], static_cast<float>(double{power[2 * k]} * tiny));
            EXPECT_EQ(b[k], static_cast<float>(double{power[2 * k + 1]} * tiny));
            EXPECT_EQ(out[k], static_cast<float>(double{power[k]} * tiny));
        }
        EXPECT_EQ(a[count] + b[count] + out[count], 27.0F);
    }
}

TEST_P(Kernels, Transpose) {
    for (const size_t channels : {1U, 2U, 3U, 4U, 7U, 8U, 9U, 16U, 31U, 32U}) {
        for (const size_t count : {0U, 1U, 3U, 4U, 8U, 15U, 33U}) {
            const size_t sample_stride = 2 * channels + 3;
            const auto samples = random_.samples(sample_stride * (count + 1));
            const size_t row_stride = 2 * count + 1;
            std::vector<int16_t> seen(row_stride * channels + 1, 77);
            std::vector<int16_t> expected = seen;
            kernels::transpose_real(samples.data() + 1, sample_stride, channels, count, seen.data(),
                                    row_stride);
            kernels::scalar::transpose_real(samples.data() + 1, sample_stride, channels, count,
                                            expected.data(), row_stride);
            ASSERT_EQ(seen, expected) << channels << " channels, " << count << " samples";
            kernels::transpose_complex(samples.data() + 1, sample_stride, channels, count,
                                       seen.data(), row_stride);
            kernels::scalar::transpose_complex(samples.data() + 1, sample_stride, channels, count,
                                               expected.data(), row_stride);
            ASSERT_EQ(seen, expected) << channels << " channels, " << count << " samples";
        }
    }
}

TEST(ScalarKernels, ByHand) {
    const int16_t samples[] = {-32768, 1, 2, 32767};
    EXPECT_EQ(kernels::scalar::statistics_real(samples, 4, -32768, 32767),
              (RunSums{2, 0, 1073741824ULL + 1 + 4 + 1073676289ULL, 2}));
    EXPECT_EQ(kernels::scalar::statistics_complex(samples, 2, -32768, 32767),
              (RunSums{-32766, 32768, 1073741824ULL + 1 + 4 + 1073676289ULL, 2}));

    // a = (1, 0), b = (0, 2): Z = (1 + 2i, 1 - 2i); A = (1, 1), B = (2, -2).
    const Complex z[] = {{1.0F, 2.0F}, {1.0F, -2.0F}, {1.0F, 2.0F}};
    float power[] = {100.0F, 100.0F, 0.0F, 0.0F};
    kernels::scalar::add_pair_power(z, 2, power);
    EXPECT_EQ(power[0], 104.0F);
    EXPECT_EQ(power[1], 116.0F);
    EXPECT_EQ(power[2], 4.0F);
    EXPECT_EQ(power[3], 16.0F);

    const int16_t interleaved[] = {1, 2, 3, 4, 5, 6};  // three samples of two channels
    int16_t rows[6] = {};
    kernels::scalar::transpose_real(interleaved, 2, 2, 3, rows, 3);
    EXPECT_EQ(std::vector<int16_t>(rows, rows + 6), (std::vector<int16_t>{1, 3, 5, 2, 4, 6}));
}

TEST(ScalarKernels, MeanKeepsWhatAFloatWouldLose) {
    const SegmentMean mean = SegmentMean::of(int64_t{20000} * 1024 + 3, 1024);
    EXPECT_EQ(mean.whole, 20000.0F);
    EXPECT_EQ(mean.fraction, 3.0F / 1024.0F);
    const SegmentMean low = SegmentMean::of(int64_t{-32768} * 7, 7);
    EXPECT_EQ(low.whole, -32768.0F);
    EXPECT_EQ(low.fraction, 0.0F);
}

}  // namespace
}  // namespace echelle
