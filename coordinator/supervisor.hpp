// The supervisor: keeps the wanted workers alive. It asks the nursery for them, watches a pidfd for
// each, and when one dies gives its work back to the ledger before anything else, then has it
// replaced. It kills workers that hold a block beyond its lease, has a dead or silent nursery
// replaced, and changes the number of workers: new ones are placed on the CPU with the fewest,
// those too many are asked to leave after the block in their hands. Called by the coordinator's
// main thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/file_descriptor.hpp"
#include "common/ledger.hpp"
#include "common/topology.hpp"
#include "coordinator/accounts.hpp"
#include "coordinator/lease_watch.hpp"
#include "coordinator/nursery.hpp"

namespace echelle {

enum class WorkerState { absent, starting, running, draining, waiting_to_respawn, left };
std::string_view name_of(WorkerState state);

struct WorkerStatus {
    uint16_t id = 0;
    uint16_t incarnations = 0;
    WorkerState state = WorkerState::absent;
    pid_t pid = 0;
    std::optional<Cpu> wanted_cpu;
};

// One change of the wanted number of workers.
struct ScalingDecision {
    double at_s = 0;  // since the run's start
    uint32_t from = 0;
    uint32_t to = 0;
    std::string reason;
};

// One death and what was done about it. Times are microseconds: of the detection since the run's
// start, of the rest since the detection.
struct Recovery {
    uint16_t worker = 0;
    pid_t pid = 0;  // of the life that ended
    std::string cause;
    double detected_us = 0;
    double requeued_us = 0;
    double respawned_us = 0;  // 0 while it has not been
    uint32_t blocks_requeued = 0;
    std::optional<uint64_t> block;  // the one that was requeued
};

class Supervisor {
  public:
    struct Setup {
        Nursery* nursery = nullptr;             // replaced when it dies
        std::function<Nursery()> make_nursery;  // a new one, safe beside live threads and contexts
        Ledger* ledger = nullptr;
        Accounts* accounts = nullptr;
        std::vector<Cpu> cpus;  // in the order in which they are to be used; empty: not bound
        std::function<std::vector<Cpu>()> read_cpus;  // them again, when workers are added
        std::function<void()> work_was_requeued;      // tells ingest to wake workers
    };
    Supervisor(Setup setup, uint32_t workers);

    // Readable when there is something for handle_events(): poll it.
    int events() const { return epoll_.get(); }
    void handle_events();
    // Respawns that were put off until now, and workers that hold a block for too long. To be
    // called every few milliseconds.
    void handle_timers();
    // From now on `workers` are wanted (at least 1, at most most_workers()).
    void scale(uint32_t workers, const std::string& reason);
    // One worker leaves when it has finished its block and is not replaced. False when there is no
    // such worker at work.
    bool drain(uint16_t id, const std::string& reason);
    uint32_t wanted() const { return wanted_; }
    uint32_t most_workers() const { return setup_.ledger->shape().workers; }
    // A child of this process ended (SIGCHLD): the nursery, or a worker orphaned by its death.
    void child_ended(pid_t pid, int status);

    // From now on workers that end are not replaced: they were asked to leave.
    void let_workers_leave() { leaving_ = true; }
    void kill_all();

    uint32_t alive() const;
    bool nursery_alive() const { return nursery_alive_; }
    // No worker, and nobody who could make one.
    bool is_helpless() const { return !nursery_alive_ && nursery_retry_ns_ == 0 && alive() == 0; }
    // How many workers tokens are for; read by ingest.
    const std::atomic<uint32_t>& alive_count() const { return alive_count_; }
    std::vector<WorkerStatus> status() const;
    const std::vector<Recovery>& recoveries() const { return recoveries_; }
    const std::vector<ScalingDecision>& scaling() const { return scaling_; }
    int64_t started_ns() const { return started_ns_; }  // monotonic: what recoveries count from
    uint32_t nursery_restarts() const { return nursery_restarts_; }

  private:
    struct Slot {
        uint16_t id = 0;
        uint16_t incarnation = 0;  // of the present or last life
        uint16_t incarnations = 0;
        WorkerState state = WorkerState::absent;
        pid_t pid = 0;
        FileDescriptor pidfd;
        int64_t spawned_ns = 0;
        uint64_t blocks_at_birth = 0;  // of its record, when this life began
        int64_t respawn_at_ns = 0;
        uint32_t quick_deaths = 0;            // in a row
        uint64_t late_wait = UINT64_MAX;      // what it was first seen to be late with
        int64_t late_cpu_ns = 0;              // CPU time that it had used by then
        std::optional<Cpu> cpu;               // where it was put
        std::string kill_reason;              // set when we killed it ourselves
        std::optional<size_t> open_recovery;  // waiting for its respawn
    };

    void spawn(Slot& slot);
    void handle_message(Nursery::Answer answer);
    void worker_started(Slot& slot, const NurseryMessage& message, FileDescriptor pidfd);
    void worker_died(Slot& slot);
    void set_cause(pid_t pid, int wait_status);
    void respawn_those_due(int64_t now_ns);
    void nursery_died();
    void replace_nursery();
    void end_silent_nursery(int64_t now_ns);
    void bury_workers_of_the_nursery();
    void kill_unknown_children();
    void kill_hung_workers();
    void kill_workers_that_do_not_start(int64_t now_ns);
    void kill_workers_that_look_for_nothing(int64_t now_ns);
    static bool is_starved(Slot& slot, uint64_t wait, int64_t lease_ns);
    void kill_worker(const Slot& slot) const;
    void ask_to_leave(Slot& slot);
    void note_scaling(uint32_t from, uint32_t to, const std::string& reason);
    uint32_t at_work() const;
    static bool is_alive(const Slot& slot) {
        return slot.state == WorkerState::running || slot.state == WorkerState::draining ||
               slot.state == WorkerState::starting;
    }
    static bool is_awaited(const Slot& slot) { return slot.state == WorkerState::starting; }
    void watch(int fd, uint64_t key);
    std::optional<Cpu> least_used_cpu() const;
    void count_alive();

    Setup setup_;
    FileDescriptor epoll_;
    std::vector<Slot> slots_;
    std::vector<Recovery> recoveries_;
    std::vector<std::pair<pid_t, size_t>> causes_wanted_;  // dead pid -> recovery
    std::atomic<uint32_t> alive_count_{0};
    std::vector<ScalingDecision> scaling_;
    LeaseWatch leases_;
    int64_t started_ns_;
    int64_t leases_looked_ns_ = 0;
    int64_t nursery_retry_ns_ = 0;       // when to try to replace a dead nursery
    int64_t nursery_busy_until_ns_ = 0;  // its socket was full: when to ask again
    int64_t nursery_made_ns_ = 0;
    int64_t nursery_heard_ns_ = 0;       // last answer, or the first request since nothing was open
    uint32_t nursery_quick_deaths_ = 0;  // in a row
    uint32_t nursery_restarts_ = 0;
    uint32_t wanted_ = 0;
    bool leaving_ = false;
    bool nursery_alive_ = true;
};

// "killed by signal 9 (Killed)", "exit code 1".
std::string describe_wait_status(int status);

}  // namespace echelle
