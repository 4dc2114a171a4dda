#include "coordinator/group_builder.hpp"

#include <random>

#include <gtest/gtest.h>

#include "common/ring.hpp"

namespace echelle {
namespace {

constexpr uint32_t samples = 100;

FrameArrival frame_at(uint64_t index) {
    return {index, index, index * samples, samples, 0, static_cast<int64_t>(index)};
}

TEST(GroupBuilder, FillsGroupsAndGivesTheHistoryThatSegmentsReachBack) {
    GroupBuilder builder(samples, {150, 75}, 2, 0);
    std::vector<Group> groups;
    for (uint64_t i = 0; i < 6; ++i) {
        builder.add(frame_at(i), groups);
    }
    ASSERT_EQ(groups.size(), 3U);
    EXPECT_EQ(groups[0].positions, (std::vector<uint64_t>{0, 1}));
    EXPECT_EQ(groups[0].block.segments, 1U);  // [0,150) only: [75,225) ends in the next group
    // The next segment begins at sample 75, inside frame 0.
    EXPECT_EQ(groups[1].positions, (std::vector<uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(groups[1].block.grid_sample, 0U);
    EXPECT_EQ(groups[1].block.segments, 3U);  // ends at 225, 300 and 375
    // Then the segment from 300 on begins in frame 3.
    EXPECT_EQ(groups[2].positions, (std::vector<uint64_t>{3, 4, 5}));
    EXPECT_EQ(groups[2].block.grid_sample, 300U);
}

TEST(GroupBuilder, EverySegmentBelongsToExactlyOneGroupHoweverTheStreamIsCut) {
    std::mt19937 engine(7);
    const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
    for (int trial = 0; trial < 200; ++trial) {
        const uint32_t nperseg = 1 + random() % 500;
        const uint32_t hop = 1 + random() % nperseg;
        const uint64_t frames = 1 + random() % 40;
        GroupBuilder builder(samples, {nperseg, hop}, 1 + random() % 5, random() % 7);
        std::vector<Group> groups;
        for (uint64_t i = 0; i < frames; ++i) {
            builder.add(frame_at(i), groups);
        }
        if (auto last = builder.flush()) {
            groups.push_back(*last);
        }
        uint64_t segments = 0;
        uint64_t own = 0;
        for (const Group& group : groups) {
            segments += group.block.segments;
            own += group.block.own_frames;
            EXPECT_LE(group.positions.size(), builder.most_listed_frames());
            EXPECT_EQ(group.block.grid_sample, group.positions.front() * samples);
        }
        const uint64_t total = frames * samples;
        EXPECT_EQ(own, frames);
        EXPECT_EQ(segments, total < nperseg ? 0 : (total - nperseg) / hop + 1);
    }
}

TEST(GroupBuilder, EndsGroupsAtIntegrationBorders) {
    GroupBuilder builder(samples, {10, 10}, 4, 6);
    std::vector<Group> groups;
    for (uint64_t i = 0; i < 12; ++i) {
        builder.add(frame_at(i), groups);
    }
    ASSERT_EQ(groups.size(), 4U);
    EXPECT_EQ(groups[1].block.own_frames, 2U);
    EXPECT_TRUE(groups[0].block.first_of_integration);
    EXPECT_FALSE(groups[0].block.last_of_integration);
    EXPECT_TRUE(groups[1].block.last_of_integration);
    EXPECT_EQ(groups[2].block.integration, 1U);
}

TEST(GroupBuilder, KnowsHowManyFramesCompleteTheGroup) {
    GroupBuilder builder(samples, {100, 50}, 4, 10);  // groups of 4, 4, 2
    std::vector<Group> groups;
    for (uint64_t i = 0; i < 40; ++i) {
        const uint64_t wanted = builder.frames_wanted();
        const size_t before = groups.size();
        for (uint64_t k = 1; k <= wanted; ++k) {
            EXPECT_EQ(groups.size(), before);
            builder.add(frame_at(i), groups);
            i += k < wanted ? 1 : 0;
        }
        EXPECT_EQ(groups.size(), before + 1);
    }
    EXPECT_EQ(groups.size(), 12U);
    EXPECT_EQ(GroupBuilder(samples, {100, 50}, 5, 0).frames_wanted(), 5U);
    EXPECT_EQ(GroupBuilder(samples, {100, 50}, 5, 3).frames_wanted(), 3U);
}

TEST(GroupBuilder, LostFramesRestartTheGridAndAreCountedAsTheSources) {
    GroupBuilder builder(samples, {150, 75}, 4, 0);
    std::vector<Group> groups;
    builder.add(frame_at(10), groups);
    builder.add(frame_at(11), groups);
    FrameArrival late = frame_at(15);
    late.position = 12;
    const auto outcome = builder.add(late, groups);
    EXPECT_EQ(outcome.verdict, GroupBuilder::Verdict::accepted);
    EXPECT_EQ(outcome.lost_by_source, 3U);
    ASSERT_EQ(groups.size(), 1U);
    const auto last = builder.flush();
    ASSERT_TRUE(last);
    EXPECT_TRUE(last->block.gap_before);
    EXPECT_EQ(last->block.grid_sample, 0U);
    EXPECT_EQ(last->block.segments_lost, 4U);  // 300 samples, hop 75
    EXPECT_EQ(last->positions, (std::vector<uint64_t>{12}));
}

TEST(GroupBuilder, FramesThatWeOverwroteAreNotTheSourcesLoss) {
    GroupBuilder builder(samples, {100, 50}, 1, 0);
    std::vector<Group> groups;
    builder.add(frame_at(0), groups);
    builder.skip(5);
    const auto outcome = builder.add(frame_at(8), groups);
    EXPECT_EQ(outcome.lost_by_source, 2U);
    EXPECT_TRUE(groups.back().block.gap_before);
}

TEST(GroupBuilder, RepeatedFramesLeaveTheGridUnbroken) {
    GroupBuilder builder(samples, {150, 75}, 4, 0);
    std::vector<Group> groups;
    builder.add(frame_at(0), groups);
    FrameArrival again = frame_at(0);
    again.position = 1;
    EXPECT_EQ(builder.add(again, groups).verdict, GroupBuilder::Verdict::repeated);
    FrameArrival next = frame_at(1);
    next.position = 2;
    EXPECT_EQ(builder.add(next, groups).verdict, GroupBuilder::Verdict::accepted);
    const auto group = builder.flush();
    ASSERT_TRUE(group);
    EXPECT_EQ(group->positions, (std::vector<uint64_t>{0, 2}));
    EXPECT_FALSE(group->block.gap_before);
    EXPECT_EQ(group->block.segments, 1U);
}

TEST(GroupBuilder, RefusesStampsThatCannotBe) {
    GroupBuilder builder(samples, {10, 5}, 4, 0);
    std::vector<Group> groups;
    builder.add(frame_at(7), groups);
    EXPECT_EQ(builder.add(frame_at(3), groups).verdict, GroupBuilder::Verdict::out_of_order);
    FrameArrival wrong = frame_at(8);
    wrong.valid_samples = samples + 1;
    EXPECT_EQ(builder.add(wrong, groups).verdict, GroupBuilder::Verdict::malformed);
    wrong.valid_samples = 0;
    EXPECT_EQ(builder.add(wrong, groups).verdict, GroupBuilder::Verdict::malformed);
    EXPECT_EQ(builder.add(frame_at(UINT64_MAX), groups).verdict, GroupBuilder::Verdict::malformed);
    // The three malformed frames stood where 8, 9 and 10 belong: nothing of the source's is
    // missing.
    EXPECT_EQ(builder.add(frame_at(11), groups).lost_by_source, 0U);
}

TEST(GroupBuilder, APartialFrameEndsItsGroupAndTheStretch) {
    GroupBuilder builder(samples, {60, 30}, 4, 0);
    std::vector<Group> groups;
    FrameArrival partial = frame_at(0);
    partial.valid_samples = 70;
    builder.add(partial, groups);
    EXPECT_TRUE(groups.empty());  // what follows tells whether it was cut short
    EXPECT_EQ(builder.frames_wanted(), 1U);
    FrameArrival next = frame_at(1);
    next.first_sample = 70;
    builder.add(next, groups);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].block.own_samples, 70U);
    const auto last = builder.flush();
    ASSERT_TRUE(last);
    EXPECT_TRUE(last->block.gap_before);  // rows end before the frame does: the grid restarts
    EXPECT_EQ(last->block.grid_sample, 0U);
}

// Segments [0,60), [30,90) and [60,120): the second one ends in the 30 samples cut off. The same
// frame at the end of a group, of an integration and of the stream.
TEST(GroupBuilder, WhatAGapCutsOffAFrameIsMissingAndWhatTheEndCutsOffIsNot) {
    for (const uint32_t frames_per_group : {1U, 4U}) {
        for (const uint64_t frames_per_integration : {uint64_t{0}, uint64_t{1}}) {
            GroupBuilder builder(samples, {60, 30}, frames_per_group, frames_per_integration);
            std::vector<Group> groups;
            FrameArrival cut = frame_at(0);
            cut.valid_samples = 70;
            builder.add(cut, groups);
            FrameArrival next = frame_at(1);
            next.flags = frame_gap_before;
            next.valid_samples = 70;
            builder.add(next, groups);
            const auto last = builder.flush();
            ASSERT_EQ(groups.size(), 1U);
            EXPECT_EQ(groups[0].block.segments, 1U);
            EXPECT_EQ(groups[0].block.segments_cut, 1U);
            EXPECT_FALSE(groups[0].block.ends_stream);
            ASSERT_TRUE(last);
            EXPECT_EQ(last->block.segments_cut, 0U);
            EXPECT_TRUE(last->block.ends_stream);
        }
    }
}

TEST(GroupBuilder, KeepsWhatLaterGroupsNeed) {
    GroupBuilder builder(samples, {250, 125}, 1, 0);
    std::vector<Group> groups;
    EXPECT_EQ(builder.first_position_needed(0), 0U);
    for (uint64_t i = 0; i < 10; ++i) {
        builder.add(frame_at(i), groups);
    }
    // nperseg - 1 = 249 samples back from frame 10: frames 7, 8 and 9.
    EXPECT_EQ(builder.first_position_needed(10), 7U);
}

}  // namespace
}  // namespace echelle
