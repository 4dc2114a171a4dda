// A thread whose body may be held in a system call for ever by a faulty driver. It can be
// interrupted (the call returns EINTR, where the driver lets it), and in the worst case left
// behind: what its body uses must therefore be kept alive by the body itself.
//
// Owned by one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace echelle {

class BlockingThread {
  public:
    explicit BlockingThread(std::function<void()> body);
    // Joins the thread if it has ended, and leaves it behind if not.
    ~BlockingThread();
    BlockingThread(const BlockingThread&) = delete;
    BlockingThread& operator=(const BlockingThread&) = delete;

    bool wait_for_end(int64_t timeout_ns);
    // Makes the system call that it is in return EINTR. To be repeated until the thread has
    // noticed: a signal that comes just before the call is lost. SIGURG, which nobody else minds.
    void interrupt();
    // After the end: what the body threw comes out here.
    void rethrow() const;

  private:
    struct State {
        std::mutex mutex;  // guards the rest
        std::condition_variable ending;
        bool ended = false;
        std::exception_ptr failure;
    };

    std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace echelle
