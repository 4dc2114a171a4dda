// What a ring made by another program must be like to be believed.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/process.hpp"
#include "common/ring.hpp"
#include "tests/unit/ring_region.hpp"

namespace echelle {
namespace {

Stream small_stream() {
    Stream stream;
    stream.geometry = {.channels = 2, .samples = 1024};
    stream.rate = {10'000'000, 1};
    return stream;
}

// "" when the ring is accepted.
std::string refusal(const std::string& name) {
    try {
        Ring::attach(name);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

void expect_refused(const std::string& name, const std::string& because) {
    const std::string message = refusal(name);
    EXPECT_NE(message.find(because), std::string::npos)
        << "expected '" << because << "' in '" << message << "'";
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(RingAttach, ReadsARegionThatWasFilledByteByByte) {
    RingRegion region;
    region.put<uint64_t>(128, 2);        // head
    region.put<uint64_t>(256 + 64, 4);   // slot 1: position 1 complete
    region.put<uint64_t>(256 + 72, 17);  // frame_index
    region.put<int16_t>(4096 + 4096 + 2 * 2047, -77);
    const Ring ring = Ring::attach(region.name());
    const Stream stream = ring.stream();
    EXPECT_EQ(stream.geometry, small_stream().geometry);
    EXPECT_EQ(stream.rate, (Rational{10'000'000, 1}));
    EXPECT_EQ(stream.epoch_ns, 1'600'000'000'000'000'000);
    EXPECT_EQ(stream.over_range_low, -128);
    EXPECT_EQ(stream.over_range_high, 127);
    EXPECT_EQ(ring.slot_count(), 4U);
    EXPECT_EQ(ring.region_bytes(), RingRegion::usual_bytes);
    EXPECT_EQ(ring.head(), 2U);
    EXPECT_TRUE(ring.holds(1));
    EXPECT_FALSE(ring.holds(0));
    EXPECT_EQ(ring.slot(1).frame_index, 17U);
    ASSERT_EQ(ring.frame(1).size(), 2048U);
    EXPECT_EQ(ring.frame(1)[2047], -77);
    EXPECT_TRUE(ring.producer_alive());  // no pid: it cannot be told
    EXPECT_EQ(refusal(region.path()), "");
}

// Positions are 64 bits wide; the futex word holds their low half only.
TEST(RingAttach, PositionsGoOnBeyond32Bits) {
    constexpr uint64_t head = 0x1'0000'0003;
    RingRegion region;
    region.put<uint64_t>(128, head);
    region.put<uint32_t>(136, 3);
    region.put<uint64_t>(256 + 64 * ((head - 1) % 4), 2 * head);
    Ring ring = Ring::attach(region.name());
    EXPECT_TRUE(ring.holds(head - 1));
    EXPECT_FALSE(ring.holds(2));
    EXPECT_TRUE(ring.wait_for_frame(head - 1, 0));
    EXPECT_FALSE(ring.wait_for_frame(head, 1'000'000));
    ring.release_before(head);
    EXPECT_EQ(region.get<uint64_t>(192), head);
}

// Without futex wakes the head is looked at every 50 us: no frame waits for a 10 ms slice.
TEST(RingAttach, AProducerThatCannotWakeIsPolled) {
    RingRegion region;
    const Ring ring = Ring::attach(region.name());
    const int64_t start = monotonic_ns();
    EXPECT_FALSE(ring.wait_for_frame(0, 3'000'000));
    EXPECT_GE(monotonic_ns() - start, 3'000'000);
    region.put<uint64_t>(128, 1);
    EXPECT_TRUE(ring.wait_for_frame(0, 3'000'000));
}

TEST(RingAttach, RefusesWhatIsNotThereOrTooSmall) {
    expect_refused("unit-no-such-ring", "No such file or directory; start its producer first");
    expect_refused(RingRegion(0).name(), "is empty");
    expect_refused(RingRegion(255).name(), "its 255 bytes are less than a header");
    expect_refused("/dev/shm", "Is a directory");
    expect_refused("/dev/null", "is empty");
}

TEST(RingAttach, RefusesNamesThatAreNotNames) {
    for (const std::string name :
         {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\n", "ä", "a%"}) {
        expect_refused(name, "is not usable");
        EXPECT_THROW(Ring::create_named(name, small_stream(), 2), UsageError) << name;
    }
    expect_refused(std::string(65, 'a'), "is not usable");
    expect_refused(std::string("a\0b", 3), "is not usable");
    expect_refused(std::string(64, 'a'), "No such file or directory");
    expect_refused("A-z_0.9", "No such file or directory");
}

struct BadField {
    const char* what;
    size_t offset;
    size_t bytes;
    uint64_t value;
    const char* because;
};

TEST(RingAttach, RefusesEveryFieldThatCannotBe) {
    const std::vector<BadField> table = {
        {"magic", 0, 1, 'e', "magic"},
        {"magic's end", 7, 1, 'X', "magic"},
        {"next major version", 8, 4, 0x00020000, "its version is 2.0"},
        {"next minor version", 8, 4, 0x00010001, "its version is 1.1"},
        {"version 0", 8, 4, 0, "its version is 0.0"},
        {"other header size", 12, 4, 128, "do not fit"},
        {"no channels", 16, 4, 0, "channels"},
        {"too many channels", 16, 4, 65'537, "channels"},
        {"negative channels", 16, 4, 0xFFFFFFFF, "channels"},
        {"no samples", 20, 4, 0, "samples"},
        {"too many samples", 20, 4, 16'777'217, "samples"},
        {"frame larger than its slot", 20, 4, 1025, "do not fit"},
        {"format 0", 24, 4, 0, "sample format number 0"},
        {"format 3", 24, 4, 3, "sample format number 3"},
        {"complex frame larger than its slot", 24, 4, 2, "do not fit"},
        {"layout 0", 28, 4, 0, "layout number 0"},
        {"layout 3", 28, 4, 3, "layout number 3"},
        {"rate 0", 32, 8, 0, "its sample rate is 0/1 Hz"},
        {"rate over 0", 40, 8, 0, "its sample rate is 10000000/0 Hz"},
        {"no slots", 56, 8, 0, "0 slots"},
        {"one slot", 56, 8, 1, "1 slots"},
        {"one slot too many", 56, 8, 5, "5 slots"},
        {"slots beyond all reason", 56, 8, UINT64_MAX, "do not fit"},
        {"slots that wrap to 0 bytes", 56, 8, uint64_t{1} << 52, "do not fit"},
        {"stride 0", 64, 8, 0, "slots of 0 bytes"},
        {"stride off the page", 64, 8, 4104, "slots of 4104 bytes"},
        {"stride too long", 64, 8, 8192, "slots of 8192 bytes"},
        {"stride that wraps to 0 bytes", 64, 8, uint64_t{1} << 62, "do not fit"},
        {"frames over the header", 72, 8, 0, "from byte 0"},
        {"frames off the page", 72, 8, 4100, "from byte 4100"},
        {"frames too late", 72, 8, 8192, "from byte 8192"},
        {"frames behind the end", 72, 8, 1 << 30, "from byte 1073741824"},
        {"frames that wrap around", 72, 8, UINT64_MAX - 4095, "do not fit"},
        {"region larger than its file", 80, 8, RingRegion::usual_bytes + 1, "cut off"},
        {"region smaller than its frames", 80, 8, RingRegion::usual_bytes - 1, "do not fit"},
        {"region 0", 80, 8, 0, "do not fit"},
        {"lower limit above the upper", 88, 4, 128, "over-range limits 128 and 127"},
        {"lower limit at the upper", 88, 4, 127, "over-range limits"},
        {"lower limit below int16", 88, 4, 0xFFFF7FFF, "over-range limits -32769"},
        {"upper limit above int16", 92, 4, 32'768, "over-range limits -128 and 32768"},
        {"state ended", 140, 4, 2, "not running"},
        {"state 3", 140, 4, 3, "not running"},
        {"pid of nobody", 96, 4, 0x7FFFFFFF, "(pid 2147483647) is gone"},
        {"pid beyond pid_t", 96, 4, 0xFFFFFFFF, "is gone"},
    };
    RingRegion region;
    for (const BadField& field : table) {
        region.fill_header();
        ASSERT_EQ(refusal(region.name()), "");
        std::memcpy(region.data() + field.offset, &field.value, field.bytes);
        SCOPED_TRACE(field.what);
        expect_refused(region.name(), field.because);
    }
}

TEST(RingAttach, RefusesASlotTableThatReachesIntoTheFrames) {
    // 61 slots end at byte 256 + 61 x 64 = 4160.
    RingRegion region(size_t{62} * 4096);
    region.put<uint64_t>(56, 60);
    EXPECT_EQ(refusal(region.name()), "");
    region.put<uint64_t>(56, 61);
    expect_refused(region.name(), "61 slots");
}

TEST(RingAttach, RefusesAStrideOffThePageThatWouldFit) {
    RingRegion region(RingRegion::usual_bytes + size_t{4} * 4096);
    region.put<uint64_t>(64, 8192);
    EXPECT_EQ(refusal(region.name()), "");
    region.put<uint64_t>(64, 6144);
    expect_refused(region.name(), "slots of 6144 bytes");
}

TEST(RingAttach, RefusesAFileThatWasCutOff) {
    RingRegion region;
    ASSERT_EQ(truncate(region.path().c_str(), RingRegion::usual_bytes - 4096), 0);
    expect_refused(region.name(), "cut off");
}

TEST(RingAttach, WaitsForAProducerThatIsPreparingButNotForEver) {
    RingRegion region;
    region.put<uint32_t>(140, 0);
    const int64_t start = monotonic_ns();
    expect_refused(region.name(), "not running");
    EXPECT_GE(monotonic_ns() - start, 2'000'000'000);
    EXPECT_LT(monotonic_ns() - start, 20'000'000'000);
}

TEST(RingAttach, TellsAReusedPidByItsStartTime) {
    RingRegion region;
    region.put<uint32_t>(96, static_cast<uint32_t>(getpid()));
    region.put<uint64_t>(104, process_start_ticks(getpid()));
    EXPECT_EQ(refusal(region.name()), "");
    region.put<uint64_t>(104, process_start_ticks(getpid()) + 1);
    expect_refused(region.name(), "is gone");
    region.put<uint64_t>(104, 0);  // not known: the pid alone tells
    EXPECT_EQ(refusal(region.name()), "");
}

// Whatever is accepted lies inside the region.
void use(const RingRegion& region) {
    try {
        const Ring ring = Ring::attach(region.name());
        const auto* begin = reinterpret_cast<const std::byte*>(&ring.header());
        const std::byte* end = begin + ring.region_bytes();
        for (const uint64_t slot : {uint64_t{0}, ring.slot_count() - 1}) {
            const auto frame = std::as_bytes(ring.frame(slot));
            ASSERT_GE(frame.data(), begin + sizeof(RingHeader) + ring.slot_count() * 64);
            ASSERT_LE(frame.data() + frame.size(), end);
            EXPECT_FALSE(ring.holds(slot + (uint64_t{1} << 40)));
        }
        EXPECT_TRUE(ring.stream().rate.is_positive());
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(region.name()), std::string::npos);
    }
}

// Anything else than a refusal (another exception, a crash) fails the test.
TEST(RingAttach, RandomHeadersAreRefusedOrHarmless) {
    std::mt19937_64 engine(20'240'517);
    RingRegion region;
    for (int trial = 0; trial < 3000; ++trial) {
        for (size_t offset = 0; offset < 256; offset += 8) {
            region.put<uint64_t>(offset, engine());
        }
        if (trial % 2 == 0) {
            std::memcpy(region.data(), "ECHRING\0\0\0\1\0", 12);  // past magic and version
        }
        region.put<uint32_t>(140, 1 + engine() % 2);  // preparing would be waited for
        use(region);
    }
}

TEST(RingAttach, HeadersWithAFewBadBytesAreRefusedOrHarmless) {
    std::mt19937_64 engine(77);
    RingRegion region;
    for (int trial = 0; trial < 5000; ++trial) {
        region.fill_header();
        const uint64_t changes = 1 + engine() % 3;
        for (uint64_t i = 0; i < changes; ++i) {
            const size_t offset = engine() % 96;
            const auto byte = static_cast<uint8_t>(engine() % 3 == 0 ? 0xFF : engine());
            region.put<uint8_t>(offset, byte);
        }
        use(region);
    }
}

TEST(RingCreate, RefusesALiveProducersRingAndReplacesAnEndlessOnesRemains) {
    const std::string name = unused_ring_name();
    {
        const Ring ring = Ring::create_named(name, small_stream(), 2);
        // Ours before it runs, too: two producers started at once do not share a name.
        EXPECT_THROW(Ring::create_named(name, small_stream(), 2), UsageError);
    }
    EXPECT_NO_THROW(Ring::create_named(name, small_stream(), 2));
}

TEST(RingCreate, ReplacesTheRingOfADeadProducer) {
    RingRegion region;
    region.put<uint32_t>(96, 0x7FFFFFFF);
    Ring ring = Ring::create_named(region.name(), small_stream(), 3);
    const RingWriter writer(ring);
    EXPECT_EQ(Ring::attach(region.name()).slot_count(), 3U);
}

TEST(RingCreate, RefusesARunningRingWithoutAPidAndReplacesItOnceEnded) {
    RingRegion region;
    EXPECT_THROW(Ring::create_named(region.name(), small_stream(), 2), UsageError);
    region.put<uint32_t>(140, 2);
    EXPECT_NO_THROW(Ring::create_named(region.name(), small_stream(), 2));
}

TEST(RingCreate, LeavesFilesAloneThatAreNoRings) {
    const RingRegion note(100);
    EXPECT_THROW(Ring::create_named(note.name(), small_stream(), 2), UsageError);
    EXPECT_THROW(Ring::create_named(note.path(), small_stream(), 2), UsageError);
    RingRegion other;
    other.put<uint8_t>(0, 'X');
    EXPECT_THROW(Ring::create_named(other.name(), small_stream(), 2), UsageError);
    struct stat status {};
    EXPECT_EQ(stat(note.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_size, 100);
    EXPECT_EQ(stat(other.path().c_str(), &status), 0);
}

TEST(RingCreate, TakesTheNameOfAnEmptyFile) {
    const RingRegion leftover(0);
    EXPECT_NO_THROW(Ring::create_named(leftover.name(), small_stream(), 2));
}

}  // namespace
}  // namespace echelle
