#include "coordinator/sources/blocking_thread.hpp"

#include <pthread.h>

namespace echelle {
namespace {

void do_nothing(int /*signal*/) {}

// Without SA_RESTART, so that the call does not simply go on.
void let_calls_be_interrupted() {
    static const bool installed = [] {
        struct sigaction action {};
        action.sa_handler = do_nothing;
        sigemptyset(&action.sa_mask);
        return sigaction(SIGURG, &action, nullptr) == 0;
    }();
    static_cast<void>(installed);
}

}  // namespace

BlockingThread::BlockingThread(std::function<void()> body) : state_(std::make_shared<State>()) {
    let_calls_be_interrupted();
    thread_ = std::thread([state = state_, body = std::move(body)]() mutable {
        std::exception_ptr failure;
        try {
            body();
        } catch (...) {
            failure = std::current_exception();
        }
        body = nullptr;  // what it kept alive goes before anybody is told
        const std::lock_guard lock(state->mutex);
        state->failure = failure;
        state->ended = true;
        state->ending.notify_all();
    });
}

BlockingThread::~BlockingThread() {
    if (wait_for_end(0)) {
        thread_.join();
    } else {
        thread_.detach();
    }
}

bool BlockingThread::wait_for_end(int64_t timeout_ns) {
    std::unique_lock lock(state_->mutex);
    return state_->ending.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                                   [this] { return state_->ended; });
}

void BlockingThread::interrupt() {
    pthread_kill(thread_.native_handle(), SIGURG);
}

void BlockingThread::rethrow() const {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure) {
        std::rethrow_exception(state_->failure);
    }
}

}  // namespace echelle
