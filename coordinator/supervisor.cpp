#include "coordinator/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/fault_point.hpp"
#include "common/process.hpp"
#include "coordinator/log.hpp"
#include "coordinator/orphans.hpp"

namespace echelle {
namespace {

constexpr uint64_t nursery_key = UINT64_MAX;
constexpr int64_t quick_death_ns = 1'000'000'000;
constexpr uint32_t deaths_before_pause = 4;
constexpr int64_t longest_pause_ns = 2'000'000'000;
constexpr int64_t busy_nursery_pause_ns = 1'000'000;
constexpr int64_t lease_look_ns = 10'000'000;
constexpr int64_t silent_ns = 1'000'000'000;  // ten of a worker's waits
// A worker starts in about a millisecond, a thousand at once on the same CPUs in a minute.
constexpr int64_t longest_start_ns = 3'000'000'000;
constexpr int64_t longer_start_for_each_ns = 50'000'000;
// A nursery that dies at once so often in a row has something wrong with it for good.
constexpr uint32_t most_quick_nursery_deaths = 8;
constexpr int64_t nursery_retry_pause_ns = 100'000'000;
// A fork takes it about a millisecond.
constexpr int64_t nursery_silence_ns = 2'000'000'000;

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

// By a signal that no computation raises by itself. A block is not to blame for it: where workers
// are killed again and again and CPUs are scarce, the same innocent block meets it three times.
bool was_killed_from_outside(int wait_status) {
    if (!WIFSIGNALED(wait_status)) {
        return false;
    }
    switch (WTERMSIG(wait_status)) {
        case SIGKILL:
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
        case SIGQUIT:
            return true;
        default:
            return false;
    }
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
        case WorkerState::draining:
            return "draining";
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
      leases_(*setup_.ledger),
      started_ns_(monotonic_ns()),
      wanted_(workers) {
    if (!epoll_) {
        throw RunError("cannot make an epoll descriptor: " + errno_text());
    }
    watch(setup_.nursery->socket(), nursery_key);
    slots_.resize(workers);
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

// The first of those CPUs, in the order given, that have the fewest workers.
std::optional<Cpu> Supervisor::least_used_cpu() const {
    if (setup_.cpus.empty()) {
        return std::nullopt;
    }
    std::map<unsigned int, uint32_t> workers_on;
    for (const Slot& slot : slots_) {
        if (slot.cpu && is_alive(slot)) {
            workers_on[slot.cpu->number] += 1;
        }
    }
    return *std::min_element(setup_.cpus.begin(), setup_.cpus.end(),
                             [&workers_on](const Cpu& a, const Cpu& b) {
                                 return workers_on[a.number] < workers_on[b.number];
                             });
}

void Supervisor::spawn(Slot& slot) {
    if (!nursery_alive_ || monotonic_ns() < nursery_busy_until_ns_) {
        slot.state = WorkerState::waiting_to_respawn;
        return;
    }
    if (std::none_of(slots_.begin(), slots_.end(), is_awaited)) {
        nursery_heard_ns_ = monotonic_ns();
    }
    slot.cpu = least_used_cpu();
    // From a counter, never the pid: a life is told from every other one of that worker.
    slot.incarnation = static_cast<uint16_t>(slot.incarnation + 1);
    slot.state = WorkerState::starting;
    slot.spawned_ns = monotonic_ns();
    slot.pid = 0;
    slot.kill_reason.clear();
    slot.late_wait = UINT64_MAX;
    WorkerRecord& record = setup_.ledger->worker(slot.id);
    record.leave.store(0, std::memory_order_relaxed);
    slot.blocks_at_birth = record.blocks.load(std::memory_order_relaxed);
    record.stage.store(static_cast<uint32_t>(WorkerStage::starting), std::memory_order_relaxed);
    WorkerIdentity identity{slot.id, slot.incarnation, std::nullopt};
    if (slot.cpu) {
        identity.cpu = slot.cpu->number;
    }
    switch (setup_.nursery->request_spawn(identity)) {
        case Nursery::Request::sent:
            break;
        case Nursery::Request::busy:
            // Its life has not begun: the next attempt has another incarnation.
            slot.state = WorkerState::waiting_to_respawn;
            nursery_busy_until_ns_ = slot.spawned_ns + busy_nursery_pause_ns;
            break;
        case Nursery::Request::gone:
            nursery_died();
            break;
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
    nursery_heard_ns_ = monotonic_ns();
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
        warn("worker " + std::to_string(slot.id) +
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
    // It may have been told to go before it had come.
    const bool unwanted = setup_.ledger->worker(slot.id).leave.load(std::memory_order_relaxed) != 0;
    slot.state = unwanted ? WorkerState::draining : WorkerState::running;
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
    if (slot.state != WorkerState::running && slot.state != WorkerState::draining) {
        return;
    }
    const bool was_draining = slot.state == WorkerState::draining;
    const int64_t detected_ns = monotonic_ns();
    // The process is gone, so it can write no more: what it held may be handed on.
    const auto reclaimed = setup_.ledger->reclaim(slot.id, slot.incarnation);
    const int64_t requeued_ns = monotonic_ns();
    ECHELLE_FAULT_POINT("supervisor.reclaimed");
    slot.pidfd.close();
    if (reclaimed.requeued + reclaimed.failed > 0) {
        setup_.accounts->blocks_requeued(reclaimed.requeued);
        setup_.work_was_requeued();
    }
    if (reclaimed.failed > 0) {
        warn("a block has killed " + std::to_string(Ledger::deaths_until_failed) +
             " workers and is given up: its spectra are marked incomplete");
    }
    if (leaving_ || was_draining) {
        slot.state = WorkerState::left;
        count_alive();
        return;
    }
    Recovery recovery;
    recovery.worker = slot.id;
    recovery.pid = slot.pid;
    recovery.cause = slot.kill_reason.empty() ? "unknown" : slot.kill_reason;
    recovery.detected_us = microseconds(detected_ns - started_ns_);
    recovery.requeued_us = microseconds(requeued_ns - detected_ns);
    recovery.blocks_requeued = reclaimed.requeued;
    recovery.block = reclaimed.block;
    slot.open_recovery = recoveries_.size();
    causes_wanted_.emplace_back(slot.pid, recoveries_.size());
    recoveries_.push_back(recovery);

    // A worker that got work done is sound, however often it is killed.
    const bool was_useless = detected_ns - slot.spawned_ns < quick_death_ns &&
                             setup_.ledger->worker(slot.id).blocks.load(
                                 std::memory_order_relaxed) == slot.blocks_at_birth;
    slot.quick_deaths = was_useless ? slot.quick_deaths + 1 : 0;
    slot.state = WorkerState::waiting_to_respawn;
    slot.respawn_at_ns = detected_ns + pause_before_respawn(slot.quick_deaths);
    count_alive();
    respawn_those_due(detected_ns);
}

void Supervisor::handle_timers() {
    if (leaving_) {
        return;
    }
    const int64_t now_ns = monotonic_ns();
    if (!nursery_alive_ && nursery_retry_ns_ != 0 && now_ns >= nursery_retry_ns_) {
        replace_nursery();
    }
    end_silent_nursery(now_ns);
    respawn_those_due(now_ns);
    if (now_ns - leases_looked_ns_ >= lease_look_ns) {
        leases_looked_ns_ = now_ns;
        kill_hung_workers();
    }
}

void Supervisor::respawn_those_due(int64_t now_ns) {
    for (Slot& slot : slots_) {
        if (nursery_alive_ && slot.state == WorkerState::waiting_to_respawn &&
            slot.respawn_at_ns <= now_ns) {
            spawn(slot);
        }
    }
}

// Late by the clock, but ready to run and given no CPU: a machine that is too busy for its workers.
// Its replacement would fare no better, and three such deaths would cost the block. One that is
// late by its own CPU time as well loops.
bool Supervisor::is_starved(Slot& slot, uint64_t wait, int64_t lease_ns) {
    const ThreadActivity now = main_thread_activity(slot.pid);
    if (now.state != 'R') {
        return false;
    }
    if (slot.late_wait != wait) {
        slot.late_wait = wait;
        slot.late_cpu_ns = now.cpu_ns;
    }
    return now.cpu_ns - slot.late_cpu_ns < lease_ns;
}

// Killed first and waited for by its pidfd, like any other death: only then is its block handed on,
// since a worker that was merely stopped could still write.
void Supervisor::kill_hung_workers() {
    const int64_t now_ns = monotonic_ns();
    const int64_t lease_ns = lease_for(setup_.accounts->mean_block_ns());
    for (const auto& overdue : leases_.look(now_ns, lease_ns)) {
        if (overdue.owner >= slots_.size()) {
            continue;
        }
        Slot& slot = slots_[overdue.owner];
        if (slot.incarnation != overdue.incarnation || !slot.kill_reason.empty() ||
            (slot.state != WorkerState::running && slot.state != WorkerState::draining)) {
            continue;
        }
        if (is_starved(slot, overdue.block, lease_ns)) {
            continue;
        }
        slot.kill_reason = "hung: held block " + std::to_string(overdue.block) + " for " +
                           std::to_string(overdue.held_ns / 1'000'000) + " ms, lease " +
                           std::to_string(lease_ns / 1'000'000) + " ms";
        kill_worker(slot);
    }
    kill_workers_that_do_not_start(now_ns);
    if (leases_.work_is_starving() && !setup_.ledger->paused()) {
        kill_workers_that_look_for_nothing(now_ns);
    }
}

// One that was stopped before it said that it is ready would keep the run from beginning.
void Supervisor::kill_workers_that_do_not_start(int64_t now_ns) {
    const int64_t patience_ns = longest_start_ns + alive() * longer_start_for_each_ns;
    for (Slot& slot : slots_) {
        const auto stage = setup_.ledger->worker(slot.id).stage.load(std::memory_order_relaxed);
        if (slot.state != WorkerState::running || !slot.kill_reason.empty() ||
            stage != static_cast<uint32_t>(WorkerStage::starting) ||
            now_ns - slot.spawned_ns < patience_ns ||
            is_starved(slot, static_cast<uint64_t>(slot.spawned_ns), patience_ns)) {
            continue;
        }
        slot.kill_reason = "hung: has not started for " +
                           std::to_string((now_ns - slot.spawned_ns) / 1'000'000) + " ms";
        kill_worker(slot);
    }
}

// A worker that was stopped between two blocks holds nothing that could be overdue, but does no
// work either. Told by its silence, and only when work finds no taker.
void Supervisor::kill_workers_that_look_for_nothing(int64_t now_ns) {
    for (Slot& slot : slots_) {
        const WorkerRecord& record = setup_.ledger->worker(slot.id);
        const int64_t looked_ns =
            std::max(record.looked_ns.load(std::memory_order_relaxed), slot.spawned_ns);
        // One that computes for long is the lease's affair.
        if (slot.state != WorkerState::running || !slot.kill_reason.empty() ||
            leases_.holds_a_block(slot.id, slot.incarnation) || now_ns - looked_ns < silent_ns ||
            is_starved(slot, static_cast<uint64_t>(looked_ns), silent_ns)) {
            continue;
        }
        slot.kill_reason = "hung: has not looked for work for " +
                           std::to_string((now_ns - looked_ns) / 1'000'000) + " ms";
        kill_worker(slot);
    }
}

void Supervisor::set_cause(pid_t pid, int wait_status) {
    const std::string cause = describe_wait_status(wait_status);
    // Where pidfds are refused, the nursery's word is what tells us of a death.
    for (Slot& slot : slots_) {
        if (slot.pid == pid && is_alive(slot)) {
            worker_died(slot);
        }
    }
    const auto wanted =
        std::find_if(causes_wanted_.begin(), causes_wanted_.end(),
                     [pid](const auto& candidate) { return candidate.first == pid; });
    if (wanted != causes_wanted_.end()) {
        Recovery& recovery = recoveries_[wanted->second];
        if (recovery.block && recovery.cause == "unknown" && was_killed_from_outside(wait_status)) {
            setup_.ledger->forgive_death(*recovery.block);
        }
        recovery.cause = recovery.cause == "unknown" ? cause : recovery.cause;
        warn("worker " + std::to_string(recovery.worker) + " ended (" + recovery.cause + "); " +
                 std::to_string(recovery.blocks_requeued) +
                 " of its blocks go to others, it is being replaced",
             {{"worker", uint64_t{recovery.worker}},
              {"pid", static_cast<uint64_t>(recovery.pid)},
              {"cause", recovery.cause},
              {"blocks", uint64_t{recovery.blocks_requeued}}});
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
    if (leaving_) {
        return;
    }
    end_child(setup_.nursery->pid());  // only then are its workers ours
    bury_workers_of_the_nursery();
    kill_unknown_children();
    for (Slot& slot : slots_) {
        if (slot.state != WorkerState::starting) {
            continue;
        }
        // Whether it was ever forked is not known, but it is dead now and may have held blocks.
        const auto reclaimed = setup_.ledger->reclaim(slot.id, slot.incarnation);
        setup_.accounts->blocks_requeued(reclaimed.requeued);
        slot.state = WorkerState::waiting_to_respawn;
    }
    count_alive();
    const int64_t now_ns = monotonic_ns();
    const bool was_quick = now_ns - nursery_made_ns_ < quick_death_ns;
    nursery_quick_deaths_ = was_quick ? nursery_quick_deaths_ + 1 : 0;
    if (nursery_quick_deaths_ >= most_quick_nursery_deaths) {
        warn("the nursery dies again and again: going on with the " + std::to_string(alive()) +
             " workers there are; none can be replaced until the coordinator is restarted");
        nursery_retry_ns_ = 0;
        return;
    }
    warn("the nursery (pid " + std::to_string(setup_.nursery->pid()) +
         ") has died: going on with the " + std::to_string(alive()) +
         " workers there are while a new one is made");
    nursery_retry_ns_ = now_ns + nursery_quick_deaths_ * nursery_retry_pause_ns;
}

// One that was stopped, or hangs, would leave every death without a successor. One that is ready to
// run and gets no CPU is not replaced: the next would get none either.
void Supervisor::end_silent_nursery(int64_t now_ns) {
    if (!nursery_alive_ || now_ns - nursery_heard_ns_ < nursery_silence_ns ||
        std::none_of(slots_.begin(), slots_.end(), is_awaited) ||
        main_thread_activity(setup_.nursery->pid()).state == 'R') {
        return;
    }
    warn("the nursery (pid " + std::to_string(setup_.nursery->pid()) + ") has not answered for " +
         std::to_string((now_ns - nursery_heard_ns_) / 1'000'000) +
         " ms (stopped by a debugger or SIGSTOP?): it is killed and replaced");
    nursery_died();
}

void Supervisor::replace_nursery() {
    nursery_restarts_ += 1;
    nursery_retry_ns_ = 0;
    try {
        *setup_.nursery = setup_.make_nursery();
    } catch (const std::exception& error) {
        warn(std::string("no new nursery could be made: ") + error.what());
        nursery_quick_deaths_ += 1;
        if (nursery_quick_deaths_ < most_quick_nursery_deaths) {
            nursery_retry_ns_ = monotonic_ns() + nursery_quick_deaths_ * nursery_retry_pause_ns;
        }
        return;
    }
    nursery_made_ns_ = monotonic_ns();
    nursery_alive_ = true;
    watch(setup_.nursery->socket(), nursery_key);
}

// Without a pidfd a worker's death is the nursery's to tell, and it may have died before it did.
// Those that live are our children by now, and so are those that died since.
void Supervisor::bury_workers_of_the_nursery() {
    const std::vector<pid_t> children = children_of_this_process();
    for (Slot& slot : slots_) {
        if (!slot.pidfd &&
            std::find(children.begin(), children.end(), slot.pid) == children.end()) {
            worker_died(slot);
        }
    }
}

// Workers whose birth the nursery could not tell us of work under an identity that would be given
// away again: they must go before it is.
void Supervisor::kill_unknown_children() {
    for (const pid_t pid : children_of_this_process()) {
        const bool known = std::any_of(slots_.begin(), slots_.end(), [pid](const Slot& slot) {
            return slot.pid == pid && is_alive(slot);
        });
        if (known || pid == setup_.nursery->pid()) {
            continue;
        }
        kill(pid, SIGKILL);
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

void Supervisor::kill_worker(const Slot& slot) const {
    const bool sent =
        slot.pidfd && syscall(SYS_pidfd_send_signal, slot.pidfd.get(), SIGKILL, nullptr, 0) == 0;
    // Refused, or no pidfd. Should the nursery have reaped it this moment, the number is not in
    // use: the kernel gives out all others first.
    if (!sent && (!slot.pidfd || errno != ESRCH)) {
        kill(slot.pid, SIGKILL);
    }
}

void Supervisor::kill_all() {
    for (const Slot& slot : slots_) {
        if (slot.state == WorkerState::running || slot.state == WorkerState::draining) {
            kill_worker(slot);
        }
    }
}

void Supervisor::note_scaling(uint32_t from, uint32_t to, const std::string& reason) {
    scaling_.push_back({microseconds(monotonic_ns() - started_ns_) / 1e6, from, to, reason});
}

// Those at work or on their way to it.
uint32_t Supervisor::at_work() const {
    return static_cast<uint32_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
        return slot.state == WorkerState::running || slot.state == WorkerState::starting ||
               slot.state == WorkerState::waiting_to_respawn;
    }));
}

void Supervisor::scale(uint32_t workers, const std::string& reason) {
    note_scaling(wanted_, workers, reason);
    wanted_ = workers;
    if (setup_.read_cpus) {
        setup_.cpus = setup_.read_cpus();
    }
    uint32_t there = at_work();
    for (size_t i = 0; there < workers; ++i) {
        if (i == slots_.size()) {
            slots_.emplace_back();
            slots_.back().id = static_cast<uint16_t>(i);
        }
        if (slots_[i].state == WorkerState::absent || slots_[i].state == WorkerState::left) {
            spawn(slots_[i]);
            ++there;
        }
    }
    for (size_t i = slots_.size(); there > workers && i-- > 0;) {
        if (slots_[i].state == WorkerState::running || slots_[i].state == WorkerState::starting ||
            slots_[i].state == WorkerState::waiting_to_respawn) {
            ask_to_leave(slots_[i]);
            --there;
        }
    }
    count_alive();
}

bool Supervisor::drain(uint16_t id, const std::string& reason) {
    if (id >= slots_.size() || slots_[id].state != WorkerState::running) {
        return false;
    }
    note_scaling(wanted_, wanted_ - 1, reason);
    wanted_ -= 1;
    ask_to_leave(slots_[id]);
    return true;
}

void Supervisor::ask_to_leave(Slot& slot) {
    setup_.ledger->worker(slot.id).leave.store(1, std::memory_order_relaxed);
    if (slot.state == WorkerState::running) {
        slot.state = WorkerState::draining;
    } else if (slot.state == WorkerState::waiting_to_respawn) {
        slot.state = WorkerState::left;
    }
}

uint32_t Supervisor::alive() const {
    return static_cast<uint32_t>(std::count_if(slots_.begin(), slots_.end(), is_alive));
}

void Supervisor::count_alive() {
    alive_count_.store(alive(), std::memory_order_relaxed);
}

std::vector<WorkerStatus> Supervisor::status() const {
    std::vector<WorkerStatus> all;
    for (const Slot& slot : slots_) {
        all.push_back(
            {slot.id, slot.incarnations, slot.state, is_alive(slot) ? slot.pid : 0, slot.cpu});
    }
    return all;
}

}  // namespace echelle
