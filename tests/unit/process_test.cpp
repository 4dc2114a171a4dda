#include "common/process.hpp"

#include <cmath>
#include <ctime>

#include <gtest/gtest.h>

#include "common/clock.hpp"
#include "tests/unit/child_process.hpp"

namespace echelle {
namespace {

int sleep_for_ever() {
    for (;;) {
        pause();
    }
}

TEST(ProcessStartTicks, AgreesWithTheClockSinceBoot) {
    const double before_s = static_cast<double>(clock_ns(CLOCK_BOOTTIME)) * 1e-9;
    const ChildProcess child(sleep_for_ever);
    const double after_s = static_cast<double>(clock_ns(CLOCK_BOOTTIME)) * 1e-9;
    const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    const double started_s = static_cast<double>(process_start_ticks(child.pid())) * tick_s;
    EXPECT_GE(started_s, before_s - 2 * tick_s);
    EXPECT_LE(started_s, after_s + 2 * tick_s);
}

TEST(ProcessStartTicks, IsTheSameEveryTime) {
    EXPECT_NE(process_start_ticks(getpid()), 0U);
    EXPECT_EQ(process_start_ticks(getpid()), process_start_ticks(getpid()));
}

TEST(ProcessStartTicks, IsReadPastANameThatLooksLikeFields) {
    int named[2];
    ASSERT_EQ(pipe(named), 0);
    ChildProcess child([&named] {
        prctl(PR_SET_NAME, "a) Z 1 (b) 2 3");
        const char byte = 1;
        return write(named[1], &byte, 1) == 1 ? sleep_for_ever() : 1;
    });
    const uint64_t first = process_start_ticks(child.pid());
    char byte = 0;
    ASSERT_EQ(read(named[0], &byte, 1), 1);
    EXPECT_NE(first, 0U);
    EXPECT_EQ(process_start_ticks(child.pid()), first);
    close(named[0]);
    close(named[1]);
}

TEST(ProcessStartTicks, IsNothingForTheDeadReapedOrNot) {
    ChildProcess child(sleep_for_ever);
    const pid_t pid = child.pid();
    ASSERT_NE(process_start_ticks(pid), 0U);
    child.send(SIGKILL);
    child.wait_until_zombie();
    EXPECT_EQ(process_start_ticks(pid), 0U);
    EXPECT_EQ(child.wait(), -SIGKILL);
    EXPECT_EQ(process_start_ticks(pid), 0U);
}

TEST(ProcessStartTicks, IsNothingForPidsThatCannotBe) {
    EXPECT_EQ(process_start_ticks(0), 0U);
    EXPECT_EQ(process_start_ticks(-5), 0U);
    EXPECT_EQ(process_start_ticks(0x7FFFFFFF), 0U);
}

}  // namespace
}  // namespace echelle
