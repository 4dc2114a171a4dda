#include "common/process.hpp"

#include <atomic>
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

TEST(MainThreadActivity, TellsRunningFromSleepingAndStopped) {
    ChildProcess idle(sleep_for_ever);
    while (main_thread_activity(idle.pid()).state != 'S') {
        usleep(1000);
    }
    EXPECT_LT(main_thread_activity(idle.pid()).cpu_ns, 1'000'000'000);
    idle.send(SIGSTOP);
    while (main_thread_activity(idle.pid()).state != 'T') {
        usleep(1000);
    }

    const ChildProcess busy([] {
        for (std::atomic<unsigned int> turns{0};; ++turns) {
        }
        return 0;
    });
    // Its own clock says how much it has used, whatever else runs on this machine.
    clockid_t clock = 0;
    ASSERT_EQ(clock_getcpuclockid(busy.pid(), &clock), 0);
    while (clock_ns(clock) < 100'000'000) {
        usleep(1000);
    }
    const ThreadActivity seen = main_thread_activity(busy.pid());
    EXPECT_EQ(seen.state, 'R');
    EXPECT_GE(seen.cpu_ns, 80'000'000);
    EXPECT_LE(seen.cpu_ns, clock_ns(clock) + 20'000'000);
}

TEST(MainThreadActivity, IsUnknownForTheDeadAndReaped) {
    ChildProcess child([] { return 0; });
    const pid_t pid = child.pid();
    child.wait();
    EXPECT_EQ(main_thread_activity(pid).state, '?');
    EXPECT_EQ(main_thread_activity(pid).cpu_ns, 0);
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
