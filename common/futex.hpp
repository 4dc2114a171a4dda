// Futexes between processes, on 32-bit words in shared memory. Never FUTEX_PRIVATE_FLAG; every wait
// has a timeout, and returns early when woken, when the word differs or on a signal: callers loop.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace echelle {

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
    const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>& word, int waiters = INT_MAX) {
    syscall(SYS_futex, &word, FUTEX_WAKE, waiters, nullptr, nullptr, 0);
}

}  // namespace echelle
