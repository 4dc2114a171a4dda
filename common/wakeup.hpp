// Wake-ups between coordinator and workers: tokens ("there may be a READY block") one way, notices
// ("there may be a DONE block") the other. They carry nothing that counts: the ledger is the truth,
// so any of them may be lost, late or repeated, and every wait ends by itself.
//
// Two kinds, chosen by --notify: ZeroMQ PUSH/PULL over ipc, and futexes in the ledger. The objects
// are made by the process and thread that use them, after the fork, and never cross a fork.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/ledger.hpp"

namespace echelle {

enum class NotifyKind { zmq, futex };
std::string_view name_of(NotifyKind kind);
NotifyKind parse_notify_kind(std::string_view text);  // throws UsageError

// Coordinator, ingest thread.
class TokenSender {
  public:
    virtual ~TokenSender() = default;
    // Wakes up to `count` workers. Never blocks.
    virtual void send(uint32_t count) = 0;
};

// Worker.
class TokenReceiver {
  public:
    virtual ~TokenReceiver() = default;
    // To be called before the ledger is looked at for work: a token sent after it ends the wait.
    virtual void prepare() = 0;
    // Waits for a token, the coordinator's end (`coordinator_end`), or the timeout.
    virtual void wait(int coordinator_end, int64_t timeout_ns) = 0;
};

// Worker.
class NoticeSender {
  public:
    virtual ~NoticeSender() = default;
    virtual void send(uint64_t block_number) = 0;  // never blocks
};

// Coordinator, collector thread.
class NoticeReceiver {
  public:
    virtual ~NoticeReceiver() = default;
    virtual void prepare() = 0;  // as for TokenReceiver
    virtual void wait(int64_t timeout_ns) = 0;
};

// The endpoints of an instance's sockets, below its own directory.
struct WakeupEndpoints {
    std::string tokens;   // ipc://…/tokens
    std::string notices;  // ipc://…/notices
};

// A process's own ZeroMQ context and the wake-ups made from it; for futexes there is no context.
// Outlives what it made. What binds throws RunError when its endpoint cannot be had.
class Wakeups {
  public:
    virtual ~Wakeups() = default;
    virtual std::unique_ptr<TokenSender> token_sender() = 0;        // binds
    virtual std::unique_ptr<TokenReceiver> token_receiver() = 0;    // connects
    virtual std::unique_ptr<NoticeSender> notice_sender() = 0;      // connects
    virtual std::unique_ptr<NoticeReceiver> notice_receiver() = 0;  // binds
};
// `real_time_priority` above 0: of the context's own threads, SCHED_FIFO (which must be allowed).
std::unique_ptr<Wakeups> make_wakeups(NotifyKind kind, Ledger& ledger,
                                      const WakeupEndpoints& endpoints, int real_time_priority = 0);

// The two kinds; each in a file of its own.
std::unique_ptr<Wakeups> make_zmq_wakeups(const WakeupEndpoints& endpoints,
                                          int real_time_priority = 0);
std::unique_ptr<Wakeups> make_futex_wakeups(Ledger& ledger);

}  // namespace echelle
