#include "coordinator/latency_histogram.hpp"

#include <gtest/gtest.h>

namespace echelle {
namespace {

TEST(LatencyHistogram, KnowsPercentilesWithinItsBuckets) {
    LatencyHistogram histogram;
    for (int64_t us = 1; us <= 1000; ++us) {
        histogram.add(us * 1000);
    }
    EXPECT_EQ(histogram.count(), 1000U);
    EXPECT_NEAR(histogram.percentile_us(0.5), 500, 500 * 0.017);
    EXPECT_NEAR(histogram.percentile_us(0.99), 990, 990 * 0.017);
    EXPECT_DOUBLE_EQ(histogram.max_us(), 1000);
    EXPECT_LE(histogram.percentile_us(1.0), histogram.max_us());
}

TEST(LatencyHistogram, CountsWhatIsBelowAnEdge) {
    LatencyHistogram histogram;
    for (int64_t us = 1; us <= 1000; ++us) {
        histogram.add(us * 1000);
    }
    EXPECT_DOUBLE_EQ(histogram.sum_s(), 1000 * 1001 / 2 * 1e-6);
    for (const int64_t edge_us : {10, 100, 300, 700}) {
        const auto counted = static_cast<double>(histogram.count_up_to(edge_us * 1000));
        EXPECT_LE(counted, static_cast<double>(edge_us));
        EXPECT_GE(counted, static_cast<double>(edge_us) * 0.983 - 1);
    }
    EXPECT_EQ(histogram.count_up_to(0), 0U);
    EXPECT_EQ(histogram.count_up_to(2'000'000), 1000U);
    EXPECT_EQ(histogram.count_up_to(INT64_MAX), 1000U);
}

TEST(LatencyHistogram, TakesEveryValue) {
    LatencyHistogram histogram;
    EXPECT_EQ(histogram.percentile_us(0.5), 0.0);
    histogram.add(-5);
    histogram.add(0);
    histogram.add(INT64_MAX);
    EXPECT_EQ(histogram.count(), 3U);
    EXPECT_GT(histogram.percentile_us(1.0), 9e15);
}

}  // namespace
}  // namespace echelle
