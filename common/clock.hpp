// The two clocks. Monotonic times are for durations inside one machine (all processes share it);
// realtime is for the timestamps that leave with the spectra. Both in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace echelle {

inline int64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline int64_t monotonic_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

inline int64_t realtime_ns() {
    return clock_ns(CLOCK_REALTIME);
}

// CPU time used by the calling thread.
inline int64_t thread_cpu_ns() {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace echelle
