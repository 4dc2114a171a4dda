// The CPU time of one of the coordinator's threads, for the report. Owned by whoever owns the
// thread; the thread begins and ends the count, any other may read it meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <pthread.h>

#include "common/clock.hpp"

namespace echelle {

class ThreadClock {
  public:
    // `name`, of 15 characters at most, is also what the system calls the thread (ps -L, top -H).
    explicit ThreadClock(std::string name) : name_(std::move(name)) {}
    const std::string& name() const { return name_; }

    // Counts the thread that made it, for as long as it stands.
    class Counting {
      public:
        explicit Counting(ThreadClock& clock) : clock_(clock) {
            pthread_setname_np(pthread_self(), clock_.name_.c_str());
            clockid_t id{};
            if (pthread_getcpuclockid(pthread_self(), &id) == 0) {
                clock_.id_.store(id, std::memory_order_release);
            }
        }
        Counting(const Counting&) = delete;
        Counting& operator=(const Counting&) = delete;
        ~Counting() {
            clock_.total_ns_.store(thread_cpu_ns(), std::memory_order_relaxed);
            // Release: whoever sees that the thread counts no longer sees its total.
            clock_.id_.store(none, std::memory_order_release);
        }

      private:
        ThreadClock& clock_;
    };

    int64_t cpu_ns() const {
        const clockid_t id = id_.load(std::memory_order_acquire);
        timespec used{};
        // A thread that ended just now has no clock any more, but a total.
        if (id == none || clock_gettime(id, &used) != 0) {
            return total_ns_.load(std::memory_order_relaxed);
        }
        return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
    }

  private:
    static constexpr clockid_t none = CLOCK_MONOTONIC;  // no thread's

    std::string name_;
    std::atomic<clockid_t> id_{none};
    std::atomic<int64_t> total_ns_{0};
};

}  // namespace echelle
