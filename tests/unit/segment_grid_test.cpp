#include "common/segment_grid.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace echelle {
namespace {

TEST(SegmentGrid, CountsByHand) {
    const SegmentGrid grid{4, 2};  // segments [0,4) [2,6) [4,8) ...
    EXPECT_EQ(grid.segments_before(0), 0U);
    EXPECT_EQ(grid.segments_before(3), 0U);
    EXPECT_EQ(grid.segments_before(4), 1U);
    EXPECT_EQ(grid.segments_before(5), 1U);
    EXPECT_EQ(grid.segments_before(6), 2U);
    EXPECT_EQ(grid.segments_before(2600), 1299U);
}

TEST(SegmentGrid, ASegmentBelongsWhereItsLastSampleLies) {
    const SegmentGrid grid{4, 2};
    EXPECT_EQ(grid.segments_ending_in(0, 4).count, 1U);  // ends with sample 3
    EXPECT_EQ(grid.segments_ending_in(0, 3).count, 0U);
    const SegmentRange range = grid.segments_ending_in(4, 8);  // last samples 5 and 7
    EXPECT_EQ(range.first, 1U);
    EXPECT_EQ(range.count, 2U);
    EXPECT_EQ(grid.segments_ending_in(4, 5).count, 0U);
}

TEST(SegmentGrid, FirstSampleNeededByHand) {
    const SegmentGrid grid{4, 2};
    EXPECT_EQ(grid.first_sample_needed(0), 0U);
    EXPECT_EQ(grid.first_sample_needed(3), 0U);
    EXPECT_EQ(grid.first_sample_needed(4), 2U);  // segment 1 begins at 2
    EXPECT_EQ(grid.first_sample_needed(5), 2U);
    EXPECT_EQ(grid.first_sample_needed(6), 4U);
    const SegmentGrid apart{3, 3};
    EXPECT_EQ(apart.first_sample_needed(3), 3U);
    EXPECT_EQ(apart.first_sample_needed(4), 3U);
}

// Every segment is in exactly one block, however the stretch is cut, and no block reaches further
// back than nperseg - 1 samples or than it says.
TEST(SegmentGrid, AnyCutPartitionsTheSegments) {
    std::mt19937 random(11);
    for (int trial = 0; trial < 300; ++trial) {
        const auto nperseg = static_cast<uint32_t>(1 + random() % 40);
        const SegmentGrid grid{nperseg, 1 + static_cast<uint32_t>(random() % nperseg)};
        const uint64_t end = random() % 300;
        uint64_t next_segment = 0;
        for (uint64_t begin = 0; begin < end;) {
            const uint64_t stop = std::min<uint64_t>(end, begin + 1 + random() % 50);
            const SegmentRange range = grid.segments_ending_in(begin, stop);
            ASSERT_EQ(range.first, next_segment);
            for (uint64_t j = range.first; j < range.first + range.count; ++j) {
                const uint64_t last = j * grid.hop + nperseg - 1;
                ASSERT_TRUE(last >= begin && last < stop);
                ASSERT_GE(j * grid.hop, grid.first_sample_needed(begin));
            }
            ASSERT_LE(grid.first_sample_needed(begin), begin);
            ASSERT_LT(begin - grid.first_sample_needed(begin), nperseg);
            next_segment += range.count;
            begin = stop;
        }
        uint64_t counted = 0;
        while (counted * grid.hop + nperseg <= end) {
            ++counted;
        }
        ASSERT_EQ(next_segment, counted);
    }
}

}  // namespace
}  // namespace echelle
