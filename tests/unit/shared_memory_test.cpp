#include "common/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/error.hpp"
#include "tests/unit/child_process.hpp"

namespace echelle {
namespace {

constexpr size_t mib = size_t{1} << 20;

std::string unused_name() {
    static int count = 0;
    return "echelle-unit-memory-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

bool exists(const std::string& file_name) {
    struct stat status {};
    return stat(("/dev/shm/" + file_name).c_str(), &status) == 0;
}

bool all_zero(const SharedMemory& memory) {
    return std::all_of(memory.bytes().begin(), memory.bytes().end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
}

std::string message_of(const auto& action) {
    try {
        action();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(SharedMemory, AnonymousIsZeroRoundedUpAndResident) {
    const SharedMemory memory = SharedMemory::anonymous("a test", 3 * mib + 1, false);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory.size(), 3 * mib + 4096);
    EXPECT_EQ(memory.page_kind(), PageKind::small_4k);
    std::vector<unsigned char> resident(memory.size() / 4096);
    ASSERT_EQ(mincore(memory.data(), memory.size(), resident.data()), 0);
    EXPECT_TRUE(std::all_of(resident.begin(), resident.end(),
                            [](unsigned char page) { return (page & 1) != 0; }));
    EXPECT_TRUE(all_zero(memory));
}

TEST(SharedMemory, AskedForHugePagesGivesWhatThereIs) {
    const SharedMemory memory = SharedMemory::anonymous("a test", 2 * mib + 1, true);
    EXPECT_EQ(memory.size(), 4 * mib);
    EXPECT_TRUE(all_zero(memory));
    std::memset(memory.data(), 0x5A, memory.size());
    EXPECT_NE(name_of(memory.page_kind()), "unknown");
}

TEST(SharedMemory, AnonymousIsSharedWithChildren) {
    const SharedMemory memory = SharedMemory::anonymous("a test", 100, false);
    ChildProcess child([&memory] {
        memory.data()[99] = std::byte{42};
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(memory.data()[99], std::byte{42});
}

size_t mapped_shared_pages_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("RssShmem:", 0) == 0) {
            return std::stoul(line.substr(9));
        }
    }
    return 0;
}

// A fork does not take over the page table of shared memory: each process meets each page anew.
TEST(SharedMemory, TouchedPagesAreMappedInThisProcessAndKeepTheirBytes) {
    constexpr int64_t never = INT64_MAX;
    constexpr int64_t long_ago = 0;
    const SharedMemory memory = SharedMemory::anonymous("a test", 5 * mib, false);
    std::memset(memory.data(), 0x5A, memory.size());
    ChildProcess child([&memory] {
        const size_t before = mapped_shared_pages_kib();
        if (memory.touch_pages(long_ago) || mapped_shared_pages_kib() - before > 1024) {
            return 1;
        }
        return memory.touch_pages(never) && mapped_shared_pages_kib() - before >= 5 * 1024 ? 0 : 2;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(std::all_of(memory.bytes().begin(), memory.bytes().end(),
                            [](std::byte byte) { return byte == std::byte{0x5A}; }));
}

TEST(SharedMemory, AnonymousRefusesMoreThanThereIs) {
    for (const bool huge : {false, true}) {
        const std::string message =
            message_of([huge] { SharedMemory::anonymous("the test", size_t{1} << 50, huge); });
        EXPECT_NE(message.find("the test"), std::string::npos) << message;
        EXPECT_NE(message.find("1073741824 MiB asked for"), std::string::npos) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
}

TEST(SharedMemory, MovesLeaveOneOwner) {
    SharedMemory first = SharedMemory::anonymous("a test", 100, false);
    first.data()[5] = std::byte{9};
    SharedMemory second = std::move(first);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    EXPECT_EQ(second.data()[5], std::byte{9});
    SharedMemory third = SharedMemory::anonymous("a test", 100, false);
    third = std::move(second);
    EXPECT_EQ(third.data()[5], std::byte{9});
    EXPECT_EQ(third.size(), 4096U);
}

TEST(SharedMemory, IsTakenOverByItsDescriptor) {
    const SharedMemory memory = SharedMemory::anonymous("a test", 5000, false);
    const SharedMemory other =
        SharedMemory::from_descriptor(FileDescriptor(dup(memory.descriptor())), "a test");
    EXPECT_EQ(other.size(), 8192U);
    EXPECT_NE(other.data(), memory.data());
    other.data()[8191] = std::byte{8};
    EXPECT_EQ(memory.data()[8191], std::byte{8});
    EXPECT_THROW(SharedMemory::from_descriptor(FileDescriptor(), "a test"), UsageError);
}

TEST(SharedMemory, NamedIsPrivateReservedAndRemovedByItsMaker) {
    const std::string name = unused_name();
    {
        const SharedMemory memory = SharedMemory::create_named(name, mib + 1);
        struct stat status {};
        ASSERT_EQ(stat(("/dev/shm/" + name).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0600U);
        EXPECT_EQ(status.st_size, static_cast<off_t>(mib + 4096));
        EXPECT_GE(status.st_blocks * 512, status.st_size);
        EXPECT_TRUE(all_zero(memory));
        const SharedMemory seen = SharedMemory::open_named(name);
        EXPECT_EQ(seen.size(), memory.size());
        seen.data()[mib] = std::byte{3};
        EXPECT_EQ(memory.data()[mib], std::byte{3});
    }
    EXPECT_FALSE(exists(name));
}

TEST(SharedMemory, NamedIsOpenedByPathToo) {
    const std::string name = unused_name();
    const SharedMemory memory = SharedMemory::create_named(name, 100);
    memory.data()[7] = std::byte{7};
    EXPECT_EQ(SharedMemory::open_named("/dev/shm/" + name).data()[7], std::byte{7});
    EXPECT_TRUE(exists(name));  // opening does not make an owner
}

TEST(SharedMemory, NamedReplacesAndTheOldOwnerLeavesTheNewAlone) {
    const std::string name = unused_name();
    SharedMemory old = SharedMemory::create_named(name, 100);
    old.data()[0] = std::byte{1};
    const SharedMemory replacement = SharedMemory::create_named(name, 100);
    EXPECT_EQ(replacement.data()[0], std::byte{0});
    EXPECT_EQ(old.data()[0], std::byte{1});
    old = SharedMemory();
    EXPECT_TRUE(exists(name));
}

TEST(SharedMemory, NamedOutlivesTheChildrenOfItsMaker) {
    const std::string name = unused_name();
    auto memory = std::make_unique<SharedMemory>(SharedMemory::create_named(name, 100));
    ChildProcess child([&memory] {
        memory.reset();
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(exists(name));
    memory.reset();
    EXPECT_FALSE(exists(name));
}

TEST(SharedMemory, NamedRefusesMoreThanThereIsAndLeavesNothing) {
    const std::string name = unused_name();
    const std::string message =
        message_of([&name] { SharedMemory::create_named(name, size_t{1} << 50); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("asked for"), std::string::npos) << message;
    EXPECT_FALSE(exists(name));
}

TEST(SharedMemory, NamedNeedsAPlaceForItsFile) {
    EXPECT_THROW(SharedMemory::create_named("no-such-directory/x", 100), UsageError);
}

TEST(SharedMemory, OpeningRefusesWhatIsNoRegion) {
    const std::string name = unused_name();
    const std::string missing = message_of([&name] { SharedMemory::open_named(name); });
    EXPECT_NE(missing.find(name), std::string::npos) << missing;
    EXPECT_NE(missing.find("start its producer first"), std::string::npos) << missing;

    std::ofstream("/dev/shm/" + name).close();
    const std::string empty = message_of([&name] { SharedMemory::open_named(name); });
    EXPECT_NE(empty.find("is empty"), std::string::npos) << empty;
    unlink(("/dev/shm/" + name).c_str());

    EXPECT_THROW(SharedMemory::open_named("/dev/shm"), UsageError);
    EXPECT_THROW(SharedMemory::open_named("/dev/null"), UsageError);
}

TEST(PageKind, HasNamesForTheReport) {
    EXPECT_EQ(name_of(PageKind::huge_2m), "2M");
    EXPECT_EQ(name_of(PageKind::transparent_huge), "THP");
    EXPECT_EQ(name_of(PageKind::small_4k), "4K");
}

}  // namespace
}  // namespace echelle
