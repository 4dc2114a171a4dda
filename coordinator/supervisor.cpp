#include "coordinator/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr uint64_t nursery_key = UINT64_MAX;
constexpr int64_t quick_death_ns = 1'000'000'000;
constexpr uint32_t deaths_before_pause = 3;
constexpr int64_t longest_pause_ns = 2'000'000'000;

double microseconds(int64_t ns) {
    return static_cast<double>(ns) / 1000.0;
}

// A worker that dies at once again and again is given more and more time: 20 ms, 40, 80 ... 2 s.
int64_t pause_before_respawn(uint32_t quick_deaths) {
    if (quick_deaths < deaths_before_pause) {
        return 0;
    }
    const uint32_t doublings = std::min(quick_deaths - deaths_before_pause, 10U);
    return std::min(int64_t{20'000'000} << doublings, longest_pause_ns);
}

}  // namespace

std::string_view name_of(WorkerState state) {
    switch (state) {
        case WorkerState::absent:
            return "absent";
        case WorkerState::starting:
            return "starting";
        case WorkerState::running:
            return "running";
        case WorkerState::waiting_to_respawn:
            return "waiting_to_respawn";
        case WorkerState::left:
            return "left";
    }
    return "unknown";
}

std::string describe_wait_status(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const char* name = sigabbrev_np(signal);
        return "killed by signal " + std::to_string(signal) +
               (name != nullptr ? std::string(" (SIG") + name + ")" : "");
    }
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

Supervisor::Supervisor(Setup setup, uint32_t workers)
    : setup_(std::move(setup)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      slots_(workers),
      started_ns_(monotonic_ns()) {
    if (!epoll_) {
        throw RunError("cannot make an epoll descriptor: " + errno_text());
    }
    watch(setup_.nursery->socket(), nursery_key);
    for (uint32_t i = 0; i < workers; ++i) {
        slots_[i].id = static_cast<uint16_t>(i);
        spawn(slots_[i]);
    }
}

void Supervisor::watch(int fd, uint64_t key) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        throw RunError("cannot watch a worker: " + errno_text());
    }
}

std::optional<Cpu> Supervisor::cpu_for(uint16_t id) const {
    if (setup_.cpus.empty()) {
        return std::nullopt;
    }
    return setup_.cpus[id % setup_.cpus.size()];
}

void Supervisor::spawn(Slot& slot) {
    // From a counter, never the pid: a life is told from every other one of that worker.
    slot.incarnation = static_cast<uint16_t>(slot.incarnation + 1);
    slot.state = WorkerState::starting;
    slot.spawned_ns = monotonic_ns();
    WorkerIdentity identity{slot.id, slot.incarnation, std::nullopt};
    if (const auto cpu = cpu_for(slot.id)) {
        identity.cpu = cpu->number;
    }
    if (!setup_.nursery->request_spawn(identity)) {
        slot.state = WorkerState::absent;
        nursery_died();
    }
}

void Supervisor::handle_events() {
    std::array<epoll_event, 64> events{};
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
        const uint64_t key = events[static_cast<size_t>(i)].data.u64;
        if (key != nursery_key) {
            worker_died(slots_[key]);
        }
    }
    while (nursery_alive_) {
        auto answer = setup_.nursery->receive();
        if (!answer) {
            break;
        }
        handle_message(std::move(*answer));
    }
    if (nursery_alive_ && !setup_.nursery->alive()) {
        nursery_died();
    }
}

void Supervisor::handle_message(Nursery::Answer answer) {
    const NurseryMessage& message = answer.message;
    if (message.kind == NurseryMessage::Kind::ended) {
        set_cause(message.pid, message.status);
        return;
    }
    if (message.id >= slots_.size()) {
        return;
    }
    Slot& slot = slots_[message.id];
    if (message.kind == NurseryMessage::Kind::spawned) {
        worker_started(slot, message, std::move(answer.pidfd));
    } else if (message.kind == NurseryMessage::Kind::spawn_failed) {
        setup_.warn("worker " + std::to_string(slot.id) +
                    " could not be started: " + errno_text(message.status) +
                    "; trying again (limits on processes: ulimit -u, pids.max)");
        slot.quick_deaths += 1;
        slot.state = WorkerState::waiting_to_respawn;
        slot.respawn_at_ns =
            monotonic_ns() + std::max<int64_t>(pause_before_respawn(slot.quick_deaths), 20'000'000);
    }
}

void Supervisor::worker_started(Slot& slot, const NurseryMessage& message, FileDescriptor pidfd) {
    slot.pid = message.pid;
    slot.pidfd = std::move(pidfd);
    slot.incarnations = static_cast<uint16_t>(slot.incarnations + 1);
    slot.state = WorkerState::running;
    if (slot.pidfd) {
        watch(slot.pidfd.get(), slot.id);
    }
    if (slot.open_recovery) {
        Recovery& recovery = recoveries_[*slot.open_recovery];
        recovery.respawned_us = microseconds(monotonic_ns() - started_ns_) - recovery.detected_us;
        slot.open_recovery.reset();
    }
    count_alive();
}

void Supervisor::worker_died(Slot& slot) {
    if (slot.state != WorkerState::running) {
        return;
    }
    const int64_t detected_ns = monotonic_ns();
    // The process is gone, so it can write no more: what it held may be handed on.
    const auto reclaimed = setup_.ledger->reclaim(slot.id, slot.incarnation);
    const int64_t requeued_ns = monotonic_ns();
    slot.pidfd.close();
    if (reclaimed.requeued + reclaimed.failed > 0) {
        setup_.accounts->blocks_requeued(reclaimed.requeued);
        setup_.work_was_requeued();
    }
    if (leaving_) {
        slot.state = WorkerState::left;
        count_alive();
        return;
    }
    Recovery recovery;
    recovery.worker = slot.id;
    recovery.cause = "unknown";
    recovery.detected_us = microseconds(detected_ns - started_ns_);
    recovery.requeued_us = microseconds(requeued_ns - detected_ns);
    recovery.blocks_requeued = reclaimed.requeued;
    slot.open_recovery = recoveries_.size();
    causes_wanted_.emplace_back(slot.pid, recoveries_.size());
    recoveries_.push_back(recovery);

    slot.quick_deaths = detected_ns - slot.spawned_ns < quick_death_ns ? slot.quick_deaths + 1 : 0;
    slot.state = WorkerState::waiting_to_respawn;
    slot.respawn_at_ns = detected_ns + pause_before_respawn(slot.quick_deaths);
    count_alive();
    handle_timers();
}

void Supervisor::handle_timers() {
    if (leaving_ || !nursery_alive_) {
        return;
    }
    const int64_t now_ns = monotonic_ns();
    for (Slot& slot : slots_) {
        if (slot.state == WorkerState::waiting_to_respawn && slot.respawn_at_ns <= now_ns) {
            spawn(slot);
        }
    }
}

void Supervisor::set_cause(pid_t pid, int wait_status) {
    const std::string cause = describe_wait_status(wait_status);
    // Where pidfds are refused, the nursery's word is what tells us of a death.
    for (Slot& slot : slots_) {
        if (slot.pid == pid && slot.state == WorkerState::running) {
            worker_died(slot);
        }
    }
    const auto wanted =
        std::find_if(causes_wanted_.begin(), causes_wanted_.end(),
                     [pid](const auto& candidate) { return candidate.first == pid; });
    if (wanted != causes_wanted_.end()) {
        Recovery& recovery = recoveries_[wanted->second];
        recovery.cause = cause;
        setup_.warn("worker " + std::to_string(recovery.worker) + " ended (" + cause + "); " +
                    std::to_string(recovery.blocks_requeued) +
                    " of its blocks go to others, it is being replaced");
        causes_wanted_.erase(wanted);
    }
}

void Supervisor::child_ended(pid_t pid, int status) {
    if (pid == setup_.nursery->pid()) {
        nursery_died();
    } else {
        set_cause(pid, status);
    }
}

void Supervisor::nursery_died() {
    if (!nursery_alive_) {
        return;
    }
    nursery_alive_ = false;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, setup_.nursery->socket(), nullptr);
    for (Slot& slot : slots_) {
        if (slot.state == WorkerState::starting || slot.state == WorkerState::waiting_to_respawn) {
            slot.state = WorkerState::absent;
        }
    }
    count_alive();
    if (!leaving_) {
        setup_.warn("the nursery (pid " + std::to_string(setup_.nursery->pid()) +
                    ") has died: going on with the " + std::to_string(alive()) +
                    " workers there are; none can be replaced until the coordinator is restarted");
    }
}

void Supervisor::kill_all() {
    for (const Slot& slot : slots_) {
        if (slot.state != WorkerState::running) {
            continue;
        }
        if (slot.pidfd) {
            syscall(SYS_pidfd_send_signal, slot.pidfd.get(), SIGKILL, nullptr, 0);
        } else {
            kill(slot.pid, SIGKILL);
        }
    }
}

uint32_t Supervisor::alive() const {
    return static_cast<uint32_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
        return slot.state == WorkerState::running || slot.state == WorkerState::starting;
    }));
}

void Supervisor::count_alive() {
    alive_count_.store(alive(), std::memory_order_relaxed);
}

std::vector<WorkerStatus> Supervisor::status() const {
    std::vector<WorkerStatus> all;
    for (const Slot& slot : slots_) {
        all.push_back({slot.id, slot.incarnations, slot.state,
                       slot.state == WorkerState::running ? slot.pid : 0, cpu_for(slot.id)});
    }
    return all;
}

}  // namespace echelle
