#include "common/futex.hpp"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/time.h>

#include "common/clock.hpp"
#include "common/shared_memory.hpp"
#include "tests/unit/child_process.hpp"

namespace echelle {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t long_ns = 20'000 * ms;  // only a wait that is not ended early lasts so long

TEST(Futex, DoesNotWaitWhenTheWordDiffers) {
    std::atomic<uint32_t> word{7};
    const int64_t start = monotonic_ns();
    futex_wait(word, 6, long_ns);
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
}

TEST(Futex, EndsByItsTimeout) {
    std::atomic<uint32_t> word{7};
    const int64_t start = monotonic_ns();
    futex_wait(word, 7, 20 * ms);
    EXPECT_GE(monotonic_ns() - start, 20 * ms);
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    futex_wait(word, 7, 0);
    futex_wait(word, 7, -1);  // the kernel refuses it: no wait
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
}

TEST(Futex, IsWokenByAThread) {
    std::atomic<uint32_t> word{0};
    const int64_t start = monotonic_ns();
    std::thread waker([&word] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        word.store(1);
        futex_wake(word);
    });
    while (word.load() == 0) {
        futex_wait(word, 0, long_ns);
    }
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    waker.join();
}

TEST(Futex, IsWokenByAnotherProcess) {
    const SharedMemory memory = SharedMemory::anonymous("a word", 4096, false);
    auto& word = *reinterpret_cast<std::atomic<uint32_t>*>(memory.data());
    const int64_t start = monotonic_ns();
    ChildProcess child([&word] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        word.store(1);
        futex_wake(word);
        return 0;
    });
    while (word.load() == 0) {
        futex_wait(word, 0, long_ns);
    }
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    EXPECT_EQ(child.wait(), 0);
}

void do_nothing(int) {}

TEST(Futex, ReturnsOnASignal) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = do_nothing;
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    // Repeated: the first may come before the wait begins.
    const itimerval every_20_ms{{0, 20'000}, {0, 20'000}};
    const itimerval never{};
    ASSERT_EQ(setitimer(ITIMER_REAL, &every_20_ms, nullptr), 0);
    std::atomic<uint32_t> word{0};
    const int64_t start = monotonic_ns();
    futex_wait(word, 0, long_ns);
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace echelle
