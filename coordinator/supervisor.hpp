// The supervisor: keeps the wanted workers alive. It asks the nursery for them, watches a pidfd for
// each, and when one dies gives its work back to the ledger before anything else, then has it
// replaced. Called by the coordinator's main thread only.
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
#include "coordinator/nursery.hpp"

namespace echelle {

enum class WorkerState { absent, starting, running, waiting_to_respawn, left };
std::string_view name_of(WorkerState state);

struct WorkerStatus {
    uint16_t id = 0;
    uint16_t incarnations = 0;
    WorkerState state = WorkerState::absent;
    pid_t pid = 0;
    std::optional<Cpu> wanted_cpu;
};

// One death and what was done about it. Times are microseconds: of the detection since the run's
// start, of the rest since the detection.
struct Recovery {
    uint16_t worker = 0;
    std::string cause;
    double detected_us = 0;
    double requeued_us = 0;
    double respawned_us = 0;  // 0 while it has not been
    uint32_t blocks_requeued = 0;
};

class Supervisor {
  public:
    struct Setup {
        Nursery* nursery = nullptr;
        Ledger* ledger = nullptr;
        Accounts* accounts = nullptr;
        std::vector<Cpu> cpus;                    // workers take them in turn; empty: not bound
        std::function<void()> work_was_requeued;  // tells ingest to wake workers
        std::function<void(const std::string&)> warn;
    };
    Supervisor(Setup setup, uint32_t workers);

    // Readable when there is something for handle_events(): poll it.
    int events() const { return epoll_.get(); }
    void handle_events();
    // Respawns that were put off until now. To be called now and then.
    void handle_timers();
    // A child of this process ended (SIGCHLD): the nursery, or a worker orphaned by its death.
    void child_ended(pid_t pid, int status);

    // From now on workers that end are not replaced: they were asked to leave.
    void let_workers_leave() { leaving_ = true; }
    void kill_all();

    uint32_t alive() const;
    bool nursery_alive() const { return nursery_alive_; }
    // How many workers tokens are for; read by ingest.
    const std::atomic<uint32_t>& alive_count() const { return alive_count_; }
    std::vector<WorkerStatus> status() const;
    const std::vector<Recovery>& recoveries() const { return recoveries_; }

  private:
    struct Slot {
        uint16_t id = 0;
        uint16_t incarnation = 0;  // of the present or last life
        uint16_t incarnations = 0;
        WorkerState state = WorkerState::absent;
        pid_t pid = 0;
        FileDescriptor pidfd;
        int64_t spawned_ns = 0;
        int64_t respawn_at_ns = 0;
        uint32_t quick_deaths = 0;            // in a row
        std::optional<size_t> open_recovery;  // waiting for its respawn
    };

    void spawn(Slot& slot);
    void handle_message(Nursery::Answer answer);
    void worker_started(Slot& slot, const NurseryMessage& message, FileDescriptor pidfd);
    void worker_died(Slot& slot);
    void set_cause(pid_t pid, int wait_status);
    void nursery_died();
    void watch(int fd, uint64_t key);
    std::optional<Cpu> cpu_for(uint16_t id) const;
    void count_alive();

    Setup setup_;
    FileDescriptor epoll_;
    std::vector<Slot> slots_;
    std::vector<Recovery> recoveries_;
    std::vector<std::pair<pid_t, size_t>> causes_wanted_;  // dead pid -> recovery
    std::atomic<uint32_t> alive_count_{0};
    int64_t started_ns_;
    bool leaving_ = false;
    bool nursery_alive_ = true;
};

// "killed by signal 9 (Killed)", "exit code 1".
std::string describe_wait_status(int status);

}  // namespace echelle
