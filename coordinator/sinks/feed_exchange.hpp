// What the collector, the main thread and the feed's thread share. Whoever writes here never waits
// for the feed's thread: the collector writes into the ring of spectra and a queue of marks, both
// bounded and without locks; the main thread leaves short texts behind a mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "common/feed_interest.hpp"
#include "common/file_descriptor.hpp"
#include "common/spectrum_ring.hpp"
#include "coordinator/sinks/feed_marks.hpp"

namespace echelle {

// The feed's part of the report (docs/feed.md tells what each counts).
struct FeedBooks {
    uint64_t subscribers = 0;
    uint64_t subscribers_most = 0;
    uint64_t subscriptions = 0;
    uint64_t published = 0;
    uint64_t missed = 0;
    uint64_t queue_full = 0;
    uint64_t events_lost = 0;
    uint64_t refused = 0;
};

class FeedExchange {
  public:
    FeedExchange(uint32_t channels, const FeedLimits& limits)
        : interest(channels, limits), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    FeedInterest interest;
    // Made by the feed's thread when somebody first wants spectra, and there until the end, since
    // the collector writes into it.
    SpectrumRingWriter& make_ring(uint32_t channels, size_t packet_bytes) {
        made_ring_ = std::make_unique<SpectrumRingWriter>(channels, packet_bytes);
        ring_.store(made_ring_.get(), std::memory_order_release);
        return *made_ring_;
    }
    SpectrumRingWriter* ring() const { return ring_.load(std::memory_order_acquire); }
    FeedMarkQueue marks;
    std::atomic<bool> stopping{false};

    // ---- the main thread's texts: topic and JSON
    void leave_text(std::string topic, std::string text) {
        {
            const std::lock_guard lock(mutex_);
            if (texts_.size() >= most_texts) {
                texts_.pop_front();
                ++texts_lost_;
            }
            texts_.emplace_back(std::move(topic), std::move(text));
        }
        wake();
    }
    std::deque<std::pair<std::string, std::string>> take_texts() {
        const std::lock_guard lock(mutex_);
        return std::exchange(texts_, {});
    }

    // ---- waking the feed's thread: one system call for a burst of spectra, none while it is awake
    void wake() {
        // Pairs with the fence in about_to_sleep(): either it sees what was written before this, or
        // this sees that it sleeps.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (asleep_.load(std::memory_order_relaxed) && asleep_.exchange(false)) {
            const uint64_t one = 1;
            static_cast<void>(!::write(bell_.get(), &one, sizeof one));
        }
    }
    void about_to_sleep() {
        asleep_.store(true, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    void awake() {
        asleep_.store(false, std::memory_order_relaxed);
        uint64_t count = 0;
        static_cast<void>(!::read(bell_.get(), &count, sizeof count));
    }
    int bell() const { return bell_.get(); }
    bool has_texts() {
        const std::lock_guard lock(mutex_);
        return !texts_.empty();
    }

    // ---- the books, kept by the feed's thread
    void set_books(const FeedBooks& books) {
        const std::lock_guard lock(mutex_);
        books_ = books;
    }
    FeedBooks books() {
        const std::lock_guard lock(mutex_);
        FeedBooks books = books_;
        books.events_lost = marks.lost() + texts_lost_;
        return books;
    }

  private:
    static constexpr size_t most_texts = 1024;

    std::unique_ptr<SpectrumRingWriter> made_ring_;
    std::atomic<SpectrumRingWriter*> ring_{nullptr};
    FileDescriptor bell_;
    std::atomic<bool> asleep_{false};
    std::mutex mutex_;  // guards the following
    std::deque<std::pair<std::string, std::string>> texts_;
    uint64_t texts_lost_ = 0;
    FeedBooks books_;
};

}  // namespace echelle
