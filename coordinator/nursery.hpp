// The nursery: the single-threaded process from which workers are forked. It is forked itself
// before the coordinator has any thread or ZeroMQ context, so a worker inherits the plans, the ring
// and the ledger and is at work in about a millisecond, and no fork ever happens beside a live
// context (libzmq#4131, #3223, #1193).
//
// It talks to the coordinator over a socketpair of fixed-size messages; a spawned worker's pidfd
// comes with the answer, where pidfds are allowed. When the coordinator vanishes it kills its
// workers, removes the instance's files and ends. SIGINT and SIGTERM are ignored here and in
// workers: stopping is the coordinator's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include <sys/types.h>

#include "common/file_descriptor.hpp"
#include "common/instance.hpp"
#include "coordinator/life_line.hpp"
#include "worker/worker_loop.hpp"

namespace echelle {

struct NurseryMessage {
    enum class Kind : uint32_t {
        spawn = 1,         // coordinator -> nursery: fork worker `id`
        spawned = 2,       // nursery -> coordinator: it is `pid`; its pidfd comes along, if any
        spawn_failed = 3,  // nursery -> coordinator: fork failed with errno `status`
        ended = 4,         // nursery -> coordinator: `pid` ended with wait status `status`
        dismiss = 5,       // coordinator -> nursery: end; I am not dying and clear up myself
    };
    Kind kind = Kind::spawn;
    uint16_t id = 0;
    uint16_t incarnation = 0;
    int32_t cpu = -1;  // -1: not bound
    int32_t pid = 0;
    int32_t status = 0;
};

class Nursery {
  public:
    // Forks the nursery process. To be called while this process has one thread. The
    // arguments are used by the child, which never returns from here; `let_go` closes there what
    // is this process's alone. Throws RunError.
    static Nursery start(const WorkerSetup& setup, Instance& instance, LifeLine& life_line,
                         const std::function<void()>& let_go);
    // A nursery that runs already: its process and our end of its socket.
    Nursery(pid_t pid, FileDescriptor socket) : pid_(pid), socket_(std::move(socket)) {}

    Nursery(Nursery&&) noexcept = default;
    Nursery& operator=(Nursery&& other) noexcept;  // ends this one first
    // Ends the nursery, which kills whatever workers are left, and waits for it; kills it when it
    // has not ended after five seconds.
    ~Nursery();

    pid_t pid() const { return pid_; }
    // Readable when a message has come or the nursery is gone.
    int socket() const { return socket_.get(); }
    bool alive() const { return alive_; }

    // Never waits: a nursery that answers a thousand requests must not meet a coordinator that
    // waits to ask the next one. `busy`: ask again later.
    enum class Request { sent, busy, gone };
    Request request_spawn(const WorkerIdentity& identity);
    struct Answer {
        NurseryMessage message;
        FileDescriptor pidfd;  // with `spawned`
    };
    // The next message; nothing when there is none now. Notices here that the nursery is gone.
    std::optional<Answer> receive();

  private:
    void end();

    pid_t pid_ = -1;
    FileDescriptor socket_;
    bool alive_ = true;
};

// A connected pair of the kind that a nursery talks over.
struct NurserySockets {
    FileDescriptor ours;
    FileDescriptor theirs;
};
NurserySockets make_nursery_sockets();

// The nursery's own life; never returns.
[[noreturn]] void run_nursery(const WorkerSetup& setup, Instance& instance, FileDescriptor socket);

}  // namespace echelle
