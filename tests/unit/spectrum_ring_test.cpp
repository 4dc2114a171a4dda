#include "common/spectrum_ring.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "common/error.hpp"
#include "common/spectrum_ring_door.hpp"

namespace echelle {
namespace {

constexpr size_t mib = size_t{1} << 20;

// A "packet" whose every byte tells which one it is.
std::vector<std::byte> filled(size_t bytes, uint64_t number) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(number % 251));
}

bool is_filled(std::span<const std::byte> packet, uint64_t number) {
    return std::all_of(packet.begin(), packet.end(), [number](std::byte byte) {
        return byte == static_cast<std::byte>(number % 251);
    });
}

TEST(SpectrumRing, GivesPacketsInOrderAndAlignedAsDocumented) {
    SpectrumRingWriter writer(2, 1000);
    SpectrumRingReader reader(writer.region());
    EXPECT_FALSE(reader.next());
    for (uint64_t i = 0; i < 5; ++i) {
        writer.write(filled(200 * i, i), static_cast<uint32_t>(i % 2), 10 + i);
    }
    for (uint64_t i = 0; i < 5; ++i) {
        const auto entry = reader.next();
        ASSERT_TRUE(entry);
        EXPECT_EQ(entry->position, i);
        EXPECT_EQ(entry->channel, i % 2);
        EXPECT_EQ(entry->spectrum, 10 + i);
        EXPECT_EQ(entry->packet.size(), 200 * i);
        EXPECT_TRUE(is_filled(entry->packet, i));
        EXPECT_EQ((reinterpret_cast<uintptr_t>(entry->packet.data()) + 20) % 64, 0U);
        EXPECT_TRUE(reader.confirm(*entry));
    }
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.ended());
    writer.end();
    EXPECT_TRUE(reader.ended());
    EXPECT_EQ(reader.missed(), 0U);
}

// Read with nothing but the offsets of docs/feed.md.
TEST(SpectrumRing, HasTheLayoutOfItsPage) {
    SpectrumRingWriter writer(1, 164);
    writer.write(filled(164, 7), 0, 42);
    const auto region = writer.region();
    const auto u32 = [&](size_t at) {
        uint32_t value = 0;
        std::memcpy(&value, region.data() + at, sizeof value);
        return value;
    };
    const auto u64 = [&](size_t at) {
        uint64_t value = 0;
        std::memcpy(&value, region.data() + at, sizeof value);
        return value;
    };
    EXPECT_EQ(std::memcmp(region.data(), "ECHSPEC\0", 8), 0);
    EXPECT_EQ(u32(8), 0x00010000U);
    EXPECT_EQ(u32(12), 256U);
    EXPECT_EQ(u64(24), 320U);  // 108 + 164, rounded up to a multiple of 64
    EXPECT_EQ(u64(32), region.size());
    EXPECT_EQ(u32(40), 108U);
    EXPECT_EQ(u32(44), 164U);
    EXPECT_EQ(u64(128), 1U);
    EXPECT_EQ(u32(136), 1U);
    EXPECT_EQ(u64(256), 2U);
    EXPECT_EQ(u64(264), 42U);
    EXPECT_EQ(u32(284), 164U);
    EXPECT_TRUE(is_filled(region.subspan(256 + 108, 164), 7));
    EXPECT_GE(region.size(), 16 * mib);
    EXPECT_LT(region.size(), 17 * mib);
}

TEST(SpectrumRing, TellsASlowReaderExactlyWhatItMissed) {
    SpectrumRingWriter writer(1, 4 * mib);  // four slots
    SpectrumRingReader reader(writer.region());
    uint64_t written = 0;
    const auto write = [&](int count) {
        for (int i = 0; i < count; ++i, ++written) {
            writer.write(filled(8, written), 0, written);
        }
    };
    write(3);
    const auto first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_TRUE(reader.confirm(*first));
    const auto second = reader.next();
    ASSERT_TRUE(second);
    write(60);  // over the second one, while it is in the reader's hands
    EXPECT_FALSE(reader.confirm(*second));
    EXPECT_EQ(reader.missed(), 1U);
    uint64_t taken = 1;
    uint64_t last = 0;
    while (const auto entry = reader.next()) {
        ASSERT_TRUE(reader.confirm(*entry));
        EXPECT_TRUE(is_filled(entry->packet, entry->spectrum));
        last = entry->position;
        ++taken;
    }
    EXPECT_EQ(last, written - 1);
    EXPECT_EQ(taken + reader.missed(), written);
}

TEST(SpectrumRing, GivesOnlyWholePacketsWhileTheyAreWritten) {
    SpectrumRingWriter writer(1, mib);
    constexpr uint64_t count = 20'000;
    std::thread writing([&writer] {
        for (uint64_t i = 0; i < count; ++i) {
            writer.write(filled(4096 + i % 64, i), 0, i);
        }
        writer.end();
    });
    SpectrumRingReader reader(writer.region());
    uint64_t taken = reader.position();  // before the reader was there
    std::vector<std::byte> copy;
    while (!reader.ended()) {
        while (const auto entry = reader.next()) {
            copy.assign(entry->packet.begin(), entry->packet.end());
            if (reader.confirm(*entry)) {
                ++taken;
                ASSERT_EQ(copy.size(), 4096 + entry->position % 64);
                ASSERT_TRUE(is_filled(copy, entry->position));
            }
        }
    }
    writing.join();
    EXPECT_EQ(taken + reader.missed(), count);
}

TEST(SpectrumRing, RefusesWhatIsNotOne) {
    const SpectrumRingWriter writer(1, 64);
    // A small one, so that its copies are quick: four slots of 192 bytes.
    const auto region = writer.region().first(256 + 4 * 192);
    std::vector<std::byte> good(region.begin(), region.end());
    good[16] = std::byte{4};
    std::fill_n(good.begin() + 17, 7, std::byte{0});
    const SpectrumRingReader accepted{std::span<const std::byte>(good)};
    EXPECT_EQ(accepted.channels(), 1U);
    struct Case {
        size_t at;
        uint64_t value;
        size_t bytes;
    };
    for (const Case& bad :
         {Case{0, 'X', 1}, Case{8, 0x00020000, 4}, Case{12, 255, 4}, Case{12, 0xFFFFFFC0, 4},
          Case{16, 0, 8}, Case{16, 5, 8}, Case{16, uint64_t{1} << 60, 8}, Case{24, 0, 8},
          Case{24, 100, 8}, Case{24, uint64_t{1} << 63, 8}, Case{40, 8, 4},
          Case{44, 0xFFFFFFFF, 4}}) {
        auto bytes = good;
        std::memcpy(bytes.data() + bad.at, &bad.value, bad.bytes);
        EXPECT_THROW(SpectrumRingReader{std::span<const std::byte>(bytes)}, UsageError)
            << bad.value << " at " << bad.at;
    }
    EXPECT_THROW(SpectrumRingReader{region.first(255)}, UsageError);
}

class Door : public ::testing::Test {
  protected:
    std::string path_ = "/tmp/echelle-unit-door-" + std::to_string(getpid());
    ~Door() override { unlink(path_.c_str()); }

    // The taking end waits for the giving one, which is another thread's.
    static void serve_one(SpectrumRingDoor& door, const SpectrumRingWriter* ring) {
        for (bool served = false; !served;) {
            door.serve([&] {
                served = true;
                return ring;
            });
        }
    }
};

TEST_F(Door, GivesTheRingForReadingOnly) {
    SpectrumRingWriter writer(1, 64);
    SpectrumRingDoor door(path_);
    std::thread giving([&] { serve_one(door, &writer); });
    const AttachedSpectrumRing ring(path_);
    giving.join();
    SpectrumRingReader reader(ring.region());
    writer.write(filled(64, 3), 0, 5);
    const auto entry = reader.next();
    ASSERT_TRUE(entry);
    EXPECT_TRUE(is_filled(entry->packet, 3));
    const FileDescriptor descriptor = writer.read_only_descriptor();
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0),
              MAP_FAILED);
}

TEST_F(Door, SaysWhenThereIsNoRing) {
    EXPECT_THROW(AttachedSpectrumRing{path_}, UsageError);  // nobody listens
    SpectrumRingDoor door(path_);
    std::thread giving([&] { serve_one(door, nullptr); });
    try {
        const AttachedSpectrumRing ring(path_);
        ADD_FAILURE() << "a ring came from nowhere";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("no memory"), std::string::npos) << error.what();
    }
    giving.join();
}

}  // namespace
}  // namespace echelle
