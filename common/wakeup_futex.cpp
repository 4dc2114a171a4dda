// Wake-ups by futexes in the ledger: the lowest latency, no sockets.
#include <poll.h>

#include "common/futex.hpp"
#include "common/wakeup.hpp"

namespace echelle {
namespace {

// Release: whoever sees the new count also sees the ledger's change before it.
void bump_and_wake(std::atomic<uint32_t>& word, uint32_t waiters) {
    word.fetch_add(1, std::memory_order_release);
    futex_wake(word, static_cast<int>(waiters));
}

class FutexTokenSender : public TokenSender {
  public:
    explicit FutexTokenSender(Ledger& ledger) : word_(ledger.work_futex()) {}
    void send(uint32_t count) override { bump_and_wake(word_, count); }

  private:
    std::atomic<uint32_t>& word_;
};

class FutexTokenReceiver : public TokenReceiver {
  public:
    explicit FutexTokenReceiver(Ledger& ledger) : word_(ledger.work_futex()) {}
    void prepare() override { seen_ = word_.load(std::memory_order_acquire); }
    void wait(int coordinator_end, int64_t timeout_ns) override {
        futex_wait(word_, seen_, timeout_ns);
        // A futex cannot be polled beside a descriptor: the caller looks at the coordinator after
        // every wait, so the timeout bounds how long a worker outlives it.
        static_cast<void>(coordinator_end);
    }

  private:
    std::atomic<uint32_t>& word_;
    uint32_t seen_ = 0;
};

class FutexNoticeSender : public NoticeSender {
  public:
    explicit FutexNoticeSender(Ledger& ledger) : word_(ledger.results_futex()) {}
    void send(uint64_t) override { bump_and_wake(word_, 1); }

  private:
    std::atomic<uint32_t>& word_;
};

class FutexNoticeReceiver : public NoticeReceiver {
  public:
    explicit FutexNoticeReceiver(Ledger& ledger) : word_(ledger.results_futex()) {}
    void prepare() override { seen_ = word_.load(std::memory_order_acquire); }
    void wait(int64_t timeout_ns) override { futex_wait(word_, seen_, timeout_ns); }

  private:
    std::atomic<uint32_t>& word_;
    uint32_t seen_ = 0;
};

class FutexWakeups : public Wakeups {
  public:
    explicit FutexWakeups(Ledger& ledger) : ledger_(ledger) {}
    std::unique_ptr<TokenSender> token_sender() override {
        return std::make_unique<FutexTokenSender>(ledger_);
    }
    std::unique_ptr<TokenReceiver> token_receiver() override {
        return std::make_unique<FutexTokenReceiver>(ledger_);
    }
    std::unique_ptr<NoticeSender> notice_sender() override {
        return std::make_unique<FutexNoticeSender>(ledger_);
    }
    std::unique_ptr<NoticeReceiver> notice_receiver() override {
        return std::make_unique<FutexNoticeReceiver>(ledger_);
    }

  private:
    Ledger& ledger_;
};

}  // namespace

std::unique_ptr<Wakeups> make_futex_wakeups(Ledger& ledger) {
    return std::make_unique<FutexWakeups>(ledger);
}

}  // namespace echelle
