// Packets of several VITA 49 streams, written by hand, joined by their time.
#include "coordinator/sources/stream_joiner.hpp"

#include <cstring>

#include "tests/unit/byte_builder.hpp"
#include "tests/unit/hex_bytes.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

// Type 1 with a free-running sample count (TSF 3): two samples of one channel, of that value and
// the next.
std::string part(uint32_t stream, uint64_t time, int value, uint64_t trailer = 0) {
    const bool has_trailer = trailer != 0;
    return be(0x10300000 | (has_trailer ? 1U << 26 : 0U) | (has_trailer ? 6U : 5U), 4) +
           be(stream, 4) + be(time, 8) + be(static_cast<uint64_t>(value), 2) +
           be(static_cast<uint64_t>(value) + 1, 2) + (has_trailer ? be(trailer, 4) : "");
}

class StreamJoinerTest : public testing::Test {
  protected:
    DatagramFault add(const std::string& datagram) {
        return joiner_.add(as_bytes(datagram), ++now_ns_, complete_);
    }
    // Big-endian values of the joined packet, channels of a sample side by side.
    std::vector<int> values(size_t packet) const {
        std::vector<int> found;
        const auto samples = complete_.at(packet).place.samples;
        for (size_t at = 0; at < samples.size(); at += 2) {
            found.push_back(static_cast<int>(big_endian(samples, at, 2)));
        }
        return found;
    }

    StreamJoiner joiner_{{3, 1}, {1000, 1}, {7, 5, 9}, 4};
    std::vector<JoinedPacket> complete_;
    int64_t now_ns_ = 0;
};

TEST_F(StreamJoinerTest, PacketsOfTheSameTimeBecomeOneInTheOrderOfTheStreams) {
    EXPECT_EQ(add(part(9, 100, 50)), DatagramFault::none);
    EXPECT_EQ(add(part(5, 100, 30)), DatagramFault::none);
    EXPECT_EQ(add(part(7, 102, 12)), DatagramFault::none);  // of the next time
    EXPECT_TRUE(complete_.empty());
    EXPECT_EQ(add(part(7, 100, 10)), DatagramFault::none);
    ASSERT_EQ(complete_.size(), 1U);
    EXPECT_EQ(values(0), (std::vector<int>{10, 30, 50, 11, 31, 51}));
    EXPECT_EQ(complete_[0].place.sample_time, 100U);
    EXPECT_EQ(complete_[0].arrival_ns, 4);
    add(part(5, 102, 32));
    add(part(9, 102, 52));
    ASSERT_EQ(complete_.size(), 2U);
    EXPECT_EQ(values(1), (std::vector<int>{12, 32, 52, 13, 33, 53}));
    EXPECT_EQ(complete_[1].place.number - complete_[0].place.number, 1);
}

TEST_F(StreamJoinerTest, EachPacketHasOneFate) {
    add(part(7, 0, 1));
    add(part(7, 0, 1));  // twice, while it waits
    add(part(5, 0, 1));  // 9 never comes
    for (uint64_t time = 2; time < 14; time += 2) {
        for (const uint32_t stream : {7U, 5U, 9U}) {
            if (stream != 9 || time > 4) {
                add(part(stream, time, 1));
            }
        }
    }
    EXPECT_EQ(complete_.size(), 4U);  // of the times 6 to 12
    add(part(9, 12, 1));              // twice, when it was complete
    joiner_.flush();
    add(part(9, 2, 1));  // given up by now
    const auto& counts = joiner_.counts();
    for (const JoinedStreamCounts& each : counts) {
        EXPECT_EQ(each.received, each.joined + each.duplicates + each.late + each.alone);
        EXPECT_EQ(each.joined, 4U);
    }
    EXPECT_EQ(counts[0].duplicates, 1U);
    EXPECT_EQ(counts[0].alone, 3U);
    EXPECT_EQ(counts[1].alone, 3U);
    EXPECT_EQ(counts[2].absent, 3U);
    EXPECT_EQ(counts[2].duplicates, 1U);
    EXPECT_EQ(counts[2].late, 1U);
}

TEST_F(StreamJoinerTest, WhatOneStreamSaysHoldsForAll) {
    add(part(7, 0, 1));
    add(part(5, 0, 1, 1U << 30));  // valid data: enabled, and 0
    add(part(9, 0, 1, 1U << 25 | 1U << 13));
    ASSERT_EQ(complete_.size(), 1U);
    EXPECT_TRUE(complete_[0].place.is_invalid);
    EXPECT_TRUE(complete_[0].place.is_over_range);
}

TEST_F(StreamJoinerTest, SaysWhatIsWrongWithADatagram) {
    EXPECT_EQ(add(part(8, 0, 1)), DatagramFault::other_stream);
    EXPECT_EQ(add(hex("10000003 00000007 00010002")), DatagramFault::no_time);
    EXPECT_EQ(add(hex("10300005 00000007")), DatagramFault::size_mismatch);
    EXPECT_EQ(add(part(7, 0, 1)), DatagramFault::none);
    EXPECT_EQ(add(hex("10300006 00000007 0000000000000002 0001000200030004")),
              DatagramFault::changed_size);
    EXPECT_EQ(add(part(7, 3, 1)), DatagramFault::off_step);
    EXPECT_EQ(joiner_.remark(), "");  // the others may only be late
    joiner_.flush();
    expect_mentions(joiner_.remark(), {"0x5, 0x9", "streams="});
    EXPECT_EQ(joiner_.remark(2), "");
}

// Its time lies between the packets that were: believed when all streams go on from there.
TEST_F(StreamJoinerTest, ASenderThatStartsAnewIsBelievedWhenMoreFollows) {
    for (const uint32_t stream : {7U, 5U, 9U}) {
        add(part(stream, 1000, 1));
    }
    add(part(7, 5, 1));  // one alone is noise
    for (const uint32_t stream : {7U, 5U, 9U}) {
        EXPECT_EQ(add(part(stream, 1002, 1)), DatagramFault::none);
    }
    size_t refused = 0;
    for (uint64_t time = 1; time < 21; time += 2) {
        for (const uint32_t stream : {7U, 5U, 9U}) {
            refused += add(part(stream, time, 1)) == DatagramFault::off_step ? 1 : 0;
        }
    }
    EXPECT_EQ(refused, 11U);  // the twelfth is the fourth of its stream
    ASSERT_EQ(complete_.size(), 2U + 6U);
    EXPECT_GT(complete_[2].place.number - complete_[1].place.number, 65'536);
    EXPECT_EQ(complete_[3].place.number - complete_[2].place.number, 1);
}

}  // namespace
}  // namespace echelle
