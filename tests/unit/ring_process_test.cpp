// The ring between processes: who is alive, and who may overwrite what.
#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/error.hpp"
#include "common/process.hpp"
#include "common/ring.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/ring_region.hpp"

namespace echelle {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t long_ns = 20'000 * ms;

Stream small_stream() {
    Stream stream;
    stream.geometry = {.channels = 2, .samples = 512};
    stream.rate = {10'000'000, 1};
    return stream;
}

bool exists(const std::string& ring_name) {
    struct stat status {};
    return stat(("/dev/shm/echelle-" + ring_name).c_str(), &status) == 0;
}

int wait_to_be_killed() {
    for (;;) {
        pause();
    }
}

void write_frame(RingWriter& writer) {
    const uint64_t position = writer.position();
    std::ranges::fill(writer.begin(), static_cast<int16_t>(position * 7));
    writer.commit({.frame_index = position, .first_sample = position * 512, .valid_samples = 512});
}

bool is_frame(const Ring& ring, uint64_t position) {
    return ring.holds(position) && ring.slot(position).frame_index == position &&
           std::ranges::count(ring.frame(position), static_cast<int16_t>(position * 7)) == 1024 &&
           ring.holds_after_reading(position);
}

TEST(RingProcess, AKilledProducerIsDeadBeforeItIsReaped) {
    const Ring ring = Ring::anonymous(small_stream(), 4);
    ChildProcess producer([&ring] {
        Ring& ours = const_cast<Ring&>(ring);
        RingWriter writer(ours);
        write_frame(writer);
        return wait_to_be_killed();
    });
    ASSERT_TRUE(ring.wait_for_frame(0, long_ns));
    EXPECT_TRUE(is_frame(ring, 0));
    EXPECT_TRUE(ring.producer_alive());
    producer.send(SIGKILL);
    producer.wait_until_zombie();
    EXPECT_FALSE(ring.producer_alive());
    EXPECT_EQ(producer.wait(), -SIGKILL);
    EXPECT_FALSE(ring.producer_alive());
    EXPECT_FALSE(ring.ended());  // it died; it did not end
    EXPECT_TRUE(is_frame(ring, 0));
    EXPECT_FALSE(ring.wait_for_frame(1, ms));
}

// A child that makes a named ring, writes one frame and waits.
class NamedProducer {
  public:
    explicit NamedProducer(const std::string& name)
        : child_([&name] {
              Ring ring = Ring::create_named(name, small_stream(), 4);
              RingWriter writer(ring);
              write_frame(writer);
              return wait_to_be_killed();
          }) {}
    ChildProcess& child() { return child_; }

  private:
    ChildProcess child_;
};

Ring attach_when_there(const std::string& name) {
    for (int tries = 0; tries < 2000; ++tries) {
        try {
            return Ring::attach(name);
        } catch (const UsageError&) {
            usleep(5000);
        }
    }
    throw std::runtime_error("the producer made no ring");
}

TEST(RingProcess, ANamedRingIsTheLiveProducersUntilItDies) {
    const std::string name = unused_ring_name();
    NamedProducer producer(name);
    const Ring ring = attach_when_there(name);
    ASSERT_TRUE(ring.wait_for_frame(0, long_ns));
    EXPECT_TRUE(ring.producer_alive());
    EXPECT_THROW(Ring::create_named(name, small_stream(), 4), UsageError);
    EXPECT_TRUE(exists(name));

    producer.child().send(SIGKILL);
    producer.child().wait_until_zombie();
    EXPECT_FALSE(ring.producer_alive());
    EXPECT_TRUE(exists(name));  // nobody was left to remove it
    try {
        Ring::attach(name);
        FAIL() << "the producer is dead";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("is gone"), std::string::npos) << error.what();
    }
    {
        Ring replacement = Ring::create_named(name, small_stream(), 8);
        const RingWriter writer(replacement);
        EXPECT_EQ(Ring::attach(name).slot_count(), 8U);
        EXPECT_TRUE(is_frame(ring, 0));  // who still has the old one mapped keeps it
    }
    EXPECT_FALSE(exists(name));
}

TEST(RingProcess, AnEndedRingIsRefusedAndRemoved) {
    const std::string name = unused_ring_name();
    ChildProcess producer([&name] {
        Ring ring = Ring::create_named(name, small_stream(), 4);
        RingWriter writer(ring);
        writer.end();
        try {
            Ring::attach(name);
        } catch (const UsageError& error) {
            return std::string(error.what()).find("not running") != std::string::npos ? 0 : 1;
        }
        return 2;
    });
    EXPECT_EQ(producer.wait(), 0);
    EXPECT_FALSE(exists(name));
}

TEST(RingProcess, HasOneReaderAtATimeAndAKilledOneMakesRoom) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    ChildProcess reader([&ring] {
        ring.begin_reading(3);
        return wait_to_be_killed();
    });
    while (ring.header().tail.load() != 3) {
        usleep(1000);
    }
    EXPECT_EQ(ring.header().consumer_pid.load(), static_cast<uint32_t>(reader.pid()));
    try {
        ring.begin_reading(9);
        FAIL() << "somebody reads it";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(std::to_string(reader.pid())), std::string::npos)
            << error.what();
    }
    ring.end_reading();  // of another's reading: nothing happens
    EXPECT_THROW(ring.begin_reading(9), UsageError);
    EXPECT_EQ(ring.header().tail.load(), 3U);
    reader.send(SIGKILL);
    reader.wait_until_zombie();
    ring.begin_reading(5);
    EXPECT_EQ(ring.header().consumer_pid.load(), static_cast<uint32_t>(getpid()));
    EXPECT_EQ(ring.header().tail.load(), 5U);
    ring.end_reading();
    EXPECT_EQ(ring.header().consumer_pid.load(), 0U);
    EXPECT_EQ(ring.header().tail.load(), 5U);
}

TEST(RingProcess, AReusedPidIsNotTakenForAReader) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    ChildProcess somebody([] { return wait_to_be_killed(); });
    const auto pid = static_cast<uint32_t>(somebody.pid());
    RingHeader& header = ring.header();
    header.consumer_pid.store(pid);
    header.consumer_start.store(process_start_ticks(somebody.pid()));
    EXPECT_TRUE(ring.consumer_alive());
    EXPECT_THROW(ring.begin_reading(0), UsageError);
    header.consumer_start.store(0);  // not known: the pid alone tells
    EXPECT_TRUE(ring.consumer_alive());
    EXPECT_THROW(ring.begin_reading(0), UsageError);
    header.consumer_start.store(process_start_ticks(somebody.pid()) - 1);
    EXPECT_FALSE(ring.consumer_alive());
    ring.begin_reading(2);
    EXPECT_TRUE(ring.consumer_alive());
    // Bytes 204 and 208, as docs/ring.md has them.
    const auto* bytes = reinterpret_cast<const char*>(&header);
    uint32_t reader = 0;
    uint64_t start = 0;
    std::memcpy(&reader, bytes + 204, sizeof reader);
    std::memcpy(&start, bytes + 208, sizeof start);
    EXPECT_EQ(reader, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(start, process_start_ticks(getpid()));
    ring.end_reading();
    EXPECT_EQ(header.consumer_pid.load(), 0U);
    EXPECT_EQ(header.consumer_start.load(), 0U);
    EXPECT_FALSE(ring.consumer_alive());
}

TEST(RingProcess, AForkedChildThatEndsLeavesItsParentsRing) {
    const std::string name = unused_ring_name();
    Ring ring = Ring::create_named(name, small_stream(), 4);
    RingWriter writer(ring);
    ChildProcess child([&ring] {
        const Ring mine = std::move(ring);
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(exists(name));
    write_frame(writer);
    EXPECT_TRUE(is_frame(Ring::attach(name), 0));
}

TEST(RingProcess, IsTakenOverByItsDescriptor) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    ChildProcess child([&ring] {
        const Ring mine = Ring::from_descriptor(FileDescriptor(dup(ring.descriptor())));
        return mine.slot_count() == 4 && mine.stream().geometry == small_stream().geometry &&
                       mine.wait_for_frame(1, long_ns) && is_frame(mine, 0) && is_frame(mine, 1)
                   ? 0
                   : 1;
    });
    RingWriter writer(ring);
    write_frame(writer);
    write_frame(writer);
    EXPECT_EQ(child.wait(), 0);
}

// 4 frames of room, 5000 to hand over: the consumer sees each of them whole.
TEST(RingProcess, AWaitingProducerLosesNothingAcrossProcesses) {
    constexpr uint64_t frames = 5000;
    const std::string name = unused_ring_name();
    Ring ring = Ring::create_named(name, small_stream(), 4);
    RingWriter writer(ring);
    ChildProcess consumer([&name] {
        Ring seen = Ring::attach(name);
        uint64_t position = 0;
        for (; seen.wait_for_frame(position, long_ns); ++position) {
            if (!is_frame(seen, position)) {
                return 1;
            }
            seen.release_before(position + 1);
        }
        return position == frames && seen.ended() ? 0 : 2;
    });
    while (writer.position() < frames && writer.wait_for_room(long_ns)) {
        write_frame(writer);
    }
    EXPECT_EQ(writer.position(), frames);
    writer.end();
    EXPECT_EQ(consumer.wait(), 0);
    EXPECT_EQ(ring.header().tail.load(), frames);
}

// A consumer that is stopped makes a waiting producer wait, and nothing is overwritten meanwhile.
TEST(RingProcess, AStoppedConsumerStopsAWaitingProducer) {
    Ring ring = Ring::anonymous(small_stream(), 4);
    RingWriter writer(ring);
    ChildProcess consumer([&ring] {
        ring.release_before(2);
        return wait_to_be_killed();
    });
    while (writer.position() < 6) {
        ASSERT_TRUE(writer.wait_for_room(long_ns));
        write_frame(writer);
    }
    EXPECT_FALSE(writer.wait_for_room(20 * ms));
    for (uint64_t position = 2; position < 6; ++position) {
        EXPECT_TRUE(is_frame(ring, position));
    }
    consumer.send(SIGKILL);
    EXPECT_EQ(consumer.wait(), -SIGKILL);
    EXPECT_FALSE(writer.wait_for_room(20 * ms));  // its death releases nothing
}

}  // namespace
}  // namespace echelle
