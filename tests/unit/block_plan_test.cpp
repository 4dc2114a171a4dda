#include "coordinator/block_plan.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

Stream usual_stream() {
    Stream stream;
    stream.rate = {10'000'000, 1};
    return stream;
}

TEST(BlockPlan, CutsTimeWithoutLookingAtWorkers) {
    BlockPlanRequest request;
    WelchParameters welch;
    for (const uint64_t average : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{16}}) {
        request.frames_per_integration = average;
        request.most_workers = 1;
        const BlockPlan one = plan_blocks(usual_stream(), welch, request);
        request.most_workers = 40;
        const BlockPlan forty = plan_blocks(usual_stream(), welch, request);
        EXPECT_EQ(one.group_frames, forty.group_frames);
        EXPECT_EQ(one.group_frames, average == 0 ? 16U : average);
    }
}

TEST(BlockPlan, GivesAGroupSomeMillisecondsOfWorkInEqualParts) {
    BlockPlanRequest request;
    WelchParameters welch;
    Stream stream = usual_stream();
    request.frames_per_integration = 100;
    EXPECT_EQ(plan_blocks(stream, welch, request).group_frames, 15U);  // 7 groups of at most 16
    welch.noverlap = 768;                                              // twice the work
    EXPECT_EQ(plan_blocks(stream, welch, request).group_frames, 8U);   // 13 groups of at most 8
    stream.geometry.channels = 1;
    EXPECT_EQ(plan_blocks(stream, welch, request).group_frames, 15U);  // 16 at most
    stream.geometry.channels = 65536;
    EXPECT_EQ(plan_blocks(stream, welch, request).group_frames, 1U);
}

TEST(BlockPlan, KeepsChannelPairsTogetherAndCoversAllChannels) {
    BlockPlanRequest request;
    Stream stream = usual_stream();
    for (const uint32_t channels : {1U, 2U, 3U, 7U, 16U, 128U, 129U}) {
        for (const uint32_t workers : {1U, 2U, 5U, 64U, 1000U}) {
            stream.geometry.channels = channels;
            request.most_workers = workers;
            const BlockPlan plan = plan_blocks(stream, WelchParameters{}, request);
            EXPECT_TRUE(plan.block_channels % 2 == 0 || plan.blocks_per_group == 1);
            EXPECT_GE(plan.block_channels * plan.blocks_per_group, channels);
            EXPECT_LT(plan.block_channels * (plan.blocks_per_group - 1), channels);
        }
    }
}

TEST(BlockPlan, HasRoomForTheHistoryThatNpersegNeeds) {
    WelchParameters welch;
    welch.nperseg = 1'000'000;
    welch.noverlap = 500'000;
    const BlockPlan plan = plan_blocks(usual_stream(), welch, {});
    EXPECT_EQ(plan.history_frames, 489U);  // ceil(999,999 / 2048)
    EXPECT_GT(plan.ring_frames, 489U + 2 * plan.group_frames);
}

TEST(BlockPlan, RefusesARingThatIsTooShort) {
    BlockPlanRequest request;
    request.ring_frames = 4;  // 3 groups, one frame of history, one to spare
    EXPECT_THROW(plan_blocks(usual_stream(), WelchParameters{}, request), UsageError);
    request.ring_frames.reset();
    request.given_ring_frames = 8;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).group_frames, 2U);
    request.block_frames = 3;
    EXPECT_THROW(plan_blocks(usual_stream(), WelchParameters{}, request), UsageError);
}

TEST(BlockPlan, TakesALongerRingWhereTheSourceDoesNotWait) {
    BlockPlanRequest request;
    request.live = true;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 512U);
    request.ring_frames = 200;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 200U);
}

TEST(BlockPlan, TakesAShorterRingWhereMemoryIsShort) {
    BlockPlanRequest request;
    const size_t frame_bytes = size_t{128} * 2048 * 2;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 256U);
    request.most_ring_bytes = 100 * frame_bytes;
    const BlockPlan shorter = plan_blocks(usual_stream(), WelchParameters{}, request);
    EXPECT_EQ(shorter.ring_frames, 100U);
    EXPECT_EQ(shorter.usual_ring_frames, 256U);
    // 3 groups of 16, one frame of history and one to spare are the least.
    request.most_ring_bytes = 1;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 50U);
    // What was asked for, or is another's, is not changed.
    request.ring_frames = 200;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 200U);
    request.ring_frames.reset();
    request.given_ring_frames = 300;
    EXPECT_EQ(plan_blocks(usual_stream(), WelchParameters{}, request).ring_frames, 300U);
}

TEST(BlockPlan, RefusesAMedianThatMemoryCannotHold) {
    BlockPlanRequest request;
    WelchParameters welch;
    welch.average_mode = AverageMode::median;
    request.frames_per_integration = 0;
    EXPECT_THROW(plan_blocks(usual_stream(), welch, request), UsageError);  // no end known
    request.total_samples = uint64_t{1} << 40;
    EXPECT_THROW(plan_blocks(usual_stream(), welch, request), UsageError);
    request.total_samples = 1'000'000;
    EXPECT_NO_THROW(plan_blocks(usual_stream(), welch, request));
    request.frames_per_integration = 16;
    EXPECT_EQ(plan_blocks(usual_stream(), welch, request).group_frames, 16U);
}

}  // namespace
}  // namespace echelle
