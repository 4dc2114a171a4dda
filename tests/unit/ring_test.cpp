#include "common/ring.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/futex.hpp"
#include "tests/unit/ring_region.hpp"

namespace echelle {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t long_ns = 20'000 * ms;  // only a wait that is not ended early lasts so long

Stream small_stream() {
    Stream stream;
    stream.geometry = {.channels = 3,
                       .samples = 100,
                       .format = SampleFormat::ci16,
                       .layout = Layout::sample_major};
    stream.rate = {200, 3};
    stream.epoch_ns = 1'234'567'890'123'456'789;
    stream.over_range_low = -2048;
    stream.over_range_high = 2047;
    return stream;
}

void write_frame(RingWriter& writer, int16_t value) {
    const uint64_t position = writer.position();
    std::ranges::fill(writer.begin(), value);
    writer.commit({.frame_index = position, .first_sample = position * 100, .valid_samples = 100});
}

TEST(RingLayout, RegionIsHeaderTableAndWholePagesPerFrame) {
    // 256 + 4 x 64 bytes take one page; 3 x 100 x 4 = 1200 bytes take another.
    EXPECT_EQ(ring_region_bytes(small_stream().geometry, 4), 4096U + 4 * 4096);
    // 256 + 61 x 64 = 4160 bytes take two pages; the usual frame takes 512 KiB.
    EXPECT_EQ(ring_region_bytes({}, 61), 8192U + 61 * 524'288);
    EXPECT_EQ(ring_region_bytes({}, 60), 4096U + 60 * 524'288);
}

TEST(RingLayout, MarginsLieBetweenFramesThatStayOnTheirPages) {
    Stream stream;
    stream.geometry = {.channels = 2, .samples = 1024};  // one page
    const RingMargin margin{64, 128};
    Ring ring = Ring::anonymous(stream, 60, margin);  // the table ends where the first page does
    const auto* const region = reinterpret_cast<const std::byte*>(&ring.header());
    EXPECT_EQ(region + 8192, reinterpret_cast<const std::byte*>(ring.frame(0).data()));
    EXPECT_EQ(ring.frame(1).data() - ring.frame(0).data(), 8192 / 2);
    EXPECT_GE(ring_region_bytes(stream.geometry, 60, margin), 8192U + 59 * 8192 + 4096 + 128);
    // Whole pages hold the margins as well where a frame leaves room.
    EXPECT_EQ(ring_region_bytes(small_stream().geometry, 4, margin), 4096U + 4 * 4096);
}

TEST(RingLayout, HeaderIsWhatTheDocumentSays) {
    const std::string name = unused_ring_name();
    Ring ring = Ring::create_named(name, small_stream(), 4);
    const SharedMemory seen = SharedMemory::open_named("/dev/shm/echelle-" + name);
    const auto u32 = [&seen](size_t offset) {
        uint32_t value = 0;
        std::memcpy(&value, seen.data() + offset, sizeof value);
        return value;
    };
    const auto u64 = [&seen](size_t offset) {
        uint64_t value = 0;
        std::memcpy(&value, seen.data() + offset, sizeof value);
        return value;
    };
    EXPECT_EQ(std::memcmp(seen.data(), "ECHRING\0", 8), 0);
    EXPECT_EQ(u32(8), 0x00010000U);
    EXPECT_EQ(u32(12), 256U);
    EXPECT_EQ(u32(16), 3U);
    EXPECT_EQ(u32(20), 100U);
    EXPECT_EQ(u32(24), 2U);
    EXPECT_EQ(u32(28), 2U);
    EXPECT_EQ(u64(32), 200U);
    EXPECT_EQ(u64(40), 3U);
    EXPECT_EQ(u64(48), 1'234'567'890'123'456'789U);
    EXPECT_EQ(u64(56), 4U);
    EXPECT_EQ(u64(64), 4096U);
    EXPECT_EQ(u64(72), 4096U);
    EXPECT_EQ(u64(80), 4096U + 4 * 4096);
    EXPECT_EQ(u32(88), static_cast<uint32_t>(-2048));
    EXPECT_EQ(u32(92), 2047U);
    EXPECT_EQ(u64(112) | u64(120), 0U);
    EXPECT_EQ(u32(140), 0U);

    RingWriter writer(ring);
    EXPECT_EQ(u32(96), static_cast<uint32_t>(getpid()));
    EXPECT_EQ(u32(100), 1U);
    EXPECT_NE(u64(104), 0U);
    EXPECT_EQ(u32(140), 1U);
    for (int16_t i = 0; i < 6; ++i) {
        write_frame(writer, i);
    }
    const uint32_t tail_futex = u32(200);
    ring.release_before(5);
    EXPECT_EQ(u64(128), 6U);
    EXPECT_EQ(u32(136), 6U);
    EXPECT_EQ(u64(192), 5U);
    EXPECT_NE(u32(200), tail_futex);
    writer.end();
    EXPECT_EQ(u32(140), 2U);
}

TEST(RingLayout, SlotAndFrameAreWhatTheDocumentSays) {
    const std::string name = unused_ring_name();
    Ring ring = Ring::create_named(name, small_stream(), 4);
    const SharedMemory seen = SharedMemory::open_named("/dev/shm/echelle-" + name);
    RingWriter writer(ring);
    for (int16_t i = 0; i < 5; ++i) {
        write_frame(writer, i);
    }
    const int64_t before_ns = monotonic_ns();
    const auto frame = writer.begin();
    ASSERT_EQ(frame.size(), 600U);
    frame.front() = 0x1234;
    frame.back() = 0x5678;
    // Position 5 lies in slot 1.
    const std::byte* slot = seen.data() + 256 + 64;
    uint64_t field = 0;
    std::memcpy(&field, slot, 8);
    EXPECT_EQ(field, 11U);
    writer.commit({.frame_index = 0xABCDEF0123456789,
                   .first_sample = 0x1122334455667788,
                   .valid_samples = 77,
                   .flags = frame_gap_before});
    const int64_t after_ns = monotonic_ns();
    std::memcpy(&field, slot, 8);
    EXPECT_EQ(field, 12U);
    std::memcpy(&field, slot + 8, 8);
    EXPECT_EQ(field, 0xABCDEF0123456789U);
    std::memcpy(&field, slot + 16, 8);
    EXPECT_EQ(field, 0x1122334455667788U);
    int64_t complete_ns = 0;
    std::memcpy(&complete_ns, slot + 24, 8);
    EXPECT_GE(complete_ns, before_ns);
    EXPECT_LE(complete_ns, after_ns);
    std::memcpy(&field, slot + 32, 8);
    EXPECT_EQ(field, uint64_t{1} << 32 | 77U);
    const std::byte* samples = seen.data() + 4096 + 4096;
    EXPECT_EQ(std::to_integer<int>(samples[0]), 0x34);  // little-endian
    EXPECT_EQ(std::to_integer<int>(samples[1]), 0x12);
    EXPECT_EQ(std::to_integer<int>(samples[1199]), 0x56);
    EXPECT_EQ(std::to_integer<int>(samples[1200]), 0);
}

TEST(Ring, KeepsTheStreamItWasMadeFor) {
    const Stream stream = Ring::anonymous(small_stream(), 2).stream();
    EXPECT_EQ(stream.geometry, small_stream().geometry);
    EXPECT_EQ(stream.rate, small_stream().rate);
    EXPECT_EQ(stream.epoch_ns, small_stream().epoch_ns);
    EXPECT_EQ(stream.over_range_low, -2048);
    EXPECT_EQ(stream.over_range_high, 2047);
}

TEST(Ring, RefusesSlotCountsThatCannotBe) {
    for (const uint64_t slots : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 20) + 1, UINT64_MAX}) {
        EXPECT_THROW(Ring::anonymous(small_stream(), slots), UsageError) << slots;
        EXPECT_THROW(Ring::create_named(unused_ring_name(), small_stream(), slots), UsageError);
    }
}

TEST(Ring, HoldsAFrameFromItsCommitUntilItBeginsToBeOverwritten) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    RingWriter writer(ring);
    EXPECT_FALSE(ring.holds(0));
    writer.begin();
    EXPECT_FALSE(ring.holds(0));
    EXPECT_FALSE(ring.holds_after_reading(0));
    writer.commit({});
    EXPECT_TRUE(ring.holds(0));
    EXPECT_TRUE(ring.holds_after_reading(0));
    for (int16_t i = 1; i < 4; ++i) {
        write_frame(writer, i);
    }
    EXPECT_TRUE(ring.holds(0));
    EXPECT_FALSE(ring.holds(4));
    writer.begin();  // position 4, in slot 0
    EXPECT_FALSE(ring.holds(0));
    EXPECT_FALSE(ring.holds_after_reading(0));
    EXPECT_FALSE(ring.holds(4));
    EXPECT_TRUE(ring.holds(1));
    writer.commit({});
    EXPECT_FALSE(ring.holds(0));
    EXPECT_TRUE(ring.holds(4));
    EXPECT_FALSE(ring.holds(8));
}

TEST(Ring, WrapsAroundManyTimes) {
    Ring ring = Ring::anonymous(small_stream(), 3);
    RingWriter writer(ring);
    for (uint64_t position = 0; position < 1000; ++position) {
        ASSERT_EQ(writer.position(), position);
        write_frame(writer, static_cast<int16_t>(position));
        ASSERT_EQ(ring.head(), position + 1);
        for (uint64_t back = 0; back < 6 && back <= position; ++back) {
            const uint64_t old = position - back;
            ASSERT_EQ(ring.holds(old), back < 3);
            if (back < 3) {
                ASSERT_EQ(ring.frame(old)[299], static_cast<int16_t>(old));
                ASSERT_EQ(ring.slot(old).first_sample, old * 100);
            }
        }
    }
}

TEST(Ring, CommitWithoutWritingKeepsWhatTheSlotHeld) {
    Ring ring = Ring::anonymous(small_stream(), 2);
    RingWriter writer(ring);
    write_frame(writer, 11);
    write_frame(writer, 22);
    writer.begin();
    writer.commit({.frame_index = 2, .first_sample = 200, .valid_samples = 100});
    EXPECT_TRUE(ring.holds(2));
    EXPECT_EQ(ring.frame(2)[0], 11);
}

// A live producer never waits: what a reader saw between two successful checks is one frame.
TEST(Ring, ReadersNeverBelieveATornFrame) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "overwriting under a reader's eyes is this ring's purpose, and a race by name";
#endif
    Ring ring = Ring::anonymous(small_stream(), 2);
    std::atomic<bool> stop{false};
    std::thread producer([&ring, &stop] {
        RingWriter writer(ring);
        while (!stop.load()) {
            write_frame(writer, static_cast<int16_t>(writer.position()));
            if (writer.position() % 64 == 0) {
                std::this_thread::yield();  // so that the reader catches some frames whole
            }
        }
    });
    uint64_t whole = 0;
    std::vector<int16_t> copy;
    const int64_t deadline = monotonic_ns() + long_ns;
    while (whole < 2000 && monotonic_ns() < deadline) {
        const uint64_t head = ring.head();
        if (head == 0 || !ring.holds(head - 1)) {
            continue;
        }
        const auto frame = ring.frame(head - 1);
        copy.assign(frame.begin(), frame.end());
        if (ring.holds_after_reading(head - 1)) {
            ++whole;
            ASSERT_EQ(std::ranges::count(copy, static_cast<int16_t>(head - 1)), 600);
        }
    }
    stop.store(true);
    producer.join();
    EXPECT_EQ(whole, 2000U);
}

TEST(RingWaiting, ForAFrameEndsByItsTimeout) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    RingWriter writer(ring);
    const int64_t start = monotonic_ns();
    EXPECT_FALSE(ring.wait_for_frame(0, 30 * ms));
    EXPECT_GE(monotonic_ns() - start, 30 * ms);
    EXPECT_FALSE(ring.wait_for_frame(0, 0));
    EXPECT_FALSE(ring.wait_for_frame(0, -5));
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    write_frame(writer, 1);
    EXPECT_TRUE(ring.wait_for_frame(0, 0));
    EXPECT_FALSE(ring.wait_for_frame(1, 0));
}

TEST(RingWaiting, ForAFrameEndsWithTheRing) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    RingWriter writer(ring);
    write_frame(writer, 1);
    EXPECT_FALSE(ring.ended());
    std::thread ender([&writer] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        writer.end();
    });
    const int64_t start = monotonic_ns();
    EXPECT_FALSE(ring.wait_for_frame(1, long_ns));
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    ender.join();
    EXPECT_TRUE(ring.ended());
    EXPECT_TRUE(ring.wait_for_frame(0, long_ns));  // what was written before the end is there
}

// Waits as an outside program would. Nobody but the other side ends it: were it not woken, it would
// last for `long_ns`, however soon the word changes.
int64_t wait_for_change(std::atomic<uint32_t>& word, const std::function<void()>& change) {
    const uint32_t seen = word.load();
    std::thread other([&change] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        change();
    });
    const int64_t start = monotonic_ns();
    futex_wait(word, seen, long_ns);
    const int64_t waited = monotonic_ns() - start;
    other.join();
    return waited;
}

TEST(RingWaiting, CommitsAndReleasesWakeTheOtherSide) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    RingWriter writer(ring);
    for (uint64_t position = 0; position < 3; ++position) {
        EXPECT_LT(wait_for_change(ring.header().head_futex, [&] { write_frame(writer, 1); }),
                  long_ns / 2);
        EXPECT_LT(
            wait_for_change(ring.header().tail_futex, [&] { ring.release_before(position + 1); }),
            long_ns / 2);
    }
}

TEST(RingWaiting, ForALaterFrameIsNotEndedByThoseBeforeIt) {
    Ring ring = Ring::anonymous(small_stream(), 8);
    RingWriter writer(ring);
    std::thread producer([&] {
        for (int16_t i = 0; i < 5; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            write_frame(writer, i);
        }
    });
    EXPECT_TRUE(ring.wait_for_frame(4, long_ns));
    EXPECT_EQ(ring.head(), 5U);
    EXPECT_EQ(ring.header().consumer_wants.load(), 5U);
    producer.join();
    EXPECT_FALSE(ring.wait_for_frame(5, 1 * ms));
}

TEST(RingWaiting, ForRoomEndsByItsTimeoutAndWithARelease) {
    Ring ring = Ring::anonymous(small_stream(), 2);
    RingWriter writer(ring);
    EXPECT_TRUE(writer.wait_for_room(0));
    write_frame(writer, 0);
    EXPECT_TRUE(writer.wait_for_room(0));
    write_frame(writer, 1);
    const int64_t start = monotonic_ns();
    EXPECT_FALSE(writer.wait_for_room(20 * ms));
    EXPECT_GE(monotonic_ns() - start, 20 * ms);
    EXPECT_FALSE(writer.wait_for_room(0));
    std::thread consumer([&ring] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ring.release_before(1);
    });
    EXPECT_TRUE(writer.wait_for_room(long_ns));
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    consumer.join();
    write_frame(writer, 2);
    EXPECT_FALSE(writer.wait_for_room(0));
    EXPECT_TRUE(ring.holds(1));
}

TEST(Ring, ReleasesNeverGoBack) {
    Ring ring = Ring::anonymous(small_stream(), 2);
    ring.release_before(9);
    ring.release_before(4);
    EXPECT_EQ(ring.header().tail.load(), 9U);
    ring.release_before(9);
    EXPECT_EQ(ring.header().tail.load(), 9U);
}

// Every frame arrives once, in order and whole, although the ring holds only three. Under
// ThreadSanitizer this shows that samples and stamps need no more than the ring's own ordering.
TEST(RingFlow, AProducerThatWaitsForRoomLosesNothing) {
    constexpr uint64_t frames = 20'000;
    Ring ring = Ring::anonymous(small_stream(), 3);
    std::thread producer([&ring] {
        RingWriter writer(ring);
        while (writer.position() < frames) {
            if (writer.wait_for_room(10 * ms)) {
                write_frame(writer, static_cast<int16_t>(writer.position()));
            }
        }
        writer.end();
    });
    uint64_t wrong = 0;
    uint64_t position = 0;
    for (; ring.wait_for_frame(position, long_ns); ++position) {
        const RingSlot& slot = ring.slot(position);
        wrong += !ring.holds(position);
        wrong += slot.frame_index != position || slot.first_sample != position * 100 ||
                 slot.valid_samples != 100 || slot.flags != 0;
        wrong += std::ranges::count(ring.frame(position), static_cast<int16_t>(position)) != 600;
        wrong += !ring.holds_after_reading(position);
        ring.release_before(position + 1);
    }
    producer.join();
    EXPECT_EQ(position, frames);
    EXPECT_EQ(wrong, 0U);
    EXPECT_TRUE(ring.ended());
}

}  // namespace
}  // namespace echelle
