#include "common/punctual_sleep.hpp"

#include <algorithm>
#include <ctime>

#include <sys/prctl.h>

#include "common/clock.hpp"

namespace echelle {

bool sleep_until(int64_t deadline_ns, const std::atomic<bool>& stop) {
    constexpr int64_t look_at_stop_ns = 50'000'000;
    for (;;) {
        const int64_t now = monotonic_ns();
        if (stop.load(std::memory_order_relaxed)) {
            return false;
        }
        if (now >= deadline_ns) {
            return true;
        }
        const int64_t until = std::min(deadline_ns, now + look_at_stop_ns);
        const timespec wake{until / 1'000'000'000, until % 1'000'000'000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
    }
}

PunctualThread::PunctualThread() : usual_slack_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
}

PunctualThread::~PunctualThread() {
    if (usual_slack_ > 0) {
        prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(usual_slack_), 0, 0, 0);
    }
}

}  // namespace echelle
