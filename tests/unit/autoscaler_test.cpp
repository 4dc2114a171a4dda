#include "coordinator/autoscaler.hpp"

#include <gtest/gtest.h>

namespace echelle {
namespace {

TEST(Autoscaler, GoesUpWhenTheBacklogStays) {
    Autoscaler scaler(1, 4);
    EXPECT_FALSE(scaler.look({2, 0.5, 0.5}));  // one look is no evidence
    const auto decision = scaler.look({2, 0.5, 0.5});
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->workers, 3U);
    EXPECT_EQ(decision->reason, "ring backlog 50 %");
    EXPECT_FALSE(scaler.look({3, 0.5, 0.5}));  // settling
}

TEST(Autoscaler, GoesUpWhenWorkersHaveNoTimeLeft) {
    Autoscaler scaler(1, 4);
    scaler.look({2, 0.0, 0.95});
    const auto decision = scaler.look({2, 0.0, 0.95});
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->workers, 3U);
}

TEST(Autoscaler, GoesDownSlowlyAndOnlyWhenTheRestCanCarryIt) {
    Autoscaler scaler(1, 4);
    uint32_t looks = 0;
    std::optional<Autoscaler::Decision> decision;
    while (!decision && looks < 100) {
        decision = scaler.look({3, 0.01, 0.3});
        ++looks;
    }
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->workers, 2U);
    EXPECT_GE(looks * Autoscaler::interval_s, 3.0);
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(scaler.look({3, 0.01, 0.6}));  // 0.6 x 3 / 2 = 0.9: two would be too few
    }
}

TEST(Autoscaler, KeepsToItsBounds) {
    Autoscaler scaler(2, 3);
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(scaler.look({3, 1.0, 1.0}));
        EXPECT_FALSE(scaler.look({2, 0.0, 0.0}));
    }
}

TEST(Autoscaler, OneCalmLookRestartsTheEvidence) {
    Autoscaler scaler(1, 4);
    for (int i = 0; i < 50; ++i) {
        EXPECT_FALSE(scaler.look({2, 0.5, 0.5}));
        EXPECT_FALSE(scaler.look({2, 0.1, 0.8}));
    }
}

}  // namespace
}  // namespace echelle
