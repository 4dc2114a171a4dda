// Waiting for a moment of the monotonic clock, for producers that keep a pace.
#pragma once

#include <atomic>
#include <cstdint>

namespace echelle {

// Sleeps until the monotonic clock reads `deadline_ns`; false when stopped before. `stop` is looked
// at every 50 ms; a signal that interrupts the sleep only makes that earlier. Any thread.
bool sleep_until(int64_t deadline_ns, const std::atomic<bool>& stop);

// The kernel may let a sleeper lie 50 us longer than it asked, a quarter of a frame period. Holds
// for the calling thread, and only as long as this object lives.
class PunctualThread {
  public:
    PunctualThread();
    ~PunctualThread();
    PunctualThread(const PunctualThread&) = delete;
    PunctualThread& operator=(const PunctualThread&) = delete;

  private:
    int usual_slack_;
};

}  // namespace echelle
