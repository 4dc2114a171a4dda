#include "coordinator/run.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/curve_keys.hpp"
#include "common/futex.hpp"
#include "common/invariant.hpp"
#include "common/standard_output.hpp"
#include "coordinator/capture/frame_capture.hpp"
#include "coordinator/collector.hpp"
#include "coordinator/commands.hpp"
#include "coordinator/control.hpp"
#include "coordinator/feed_news.hpp"
#include "coordinator/ingest.hpp"
#include "coordinator/log.hpp"
#include "coordinator/metrics/metrics_exporter.hpp"
#include "coordinator/nursery.hpp"
#include "coordinator/nursery_exec.hpp"
#include "coordinator/preparation.hpp"
#include "coordinator/progress.hpp"
#include "coordinator/real_time.hpp"
#include "coordinator/report.hpp"
#include "coordinator/sinks/feed.hpp"
#include "coordinator/sinks/recording_sink.hpp"
#include "coordinator/supervisor.hpp"
#include "coordinator/worker_scaling.hpp"

namespace echelle {
namespace {

constexpr int64_t patience_at_start_ns = 10'000'000'000;
constexpr int64_t patience_for_worker_ns = 50'000'000;  // a thousand share the CPUs they start on
constexpr int64_t patience_at_end_ns = 2'000'000'000;
constexpr int64_t patience_for_capture_ns = 30'000'000'000;  // to write what the ring still holds
constexpr int64_t memory_look_ns = 1'000'000'000;

// A flag that a thread raises for the main loop, as something that can be polled.
class Doorbell {
  public:
    Doorbell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    int fd() const { return fd_.get(); }
    void ring() {
        const uint64_t one = 1;
        static_cast<void>(!write(fd_.get(), &one, sizeof one));
    }
    void clear() {
        uint64_t count = 0;
        static_cast<void>(!read(fd_.get(), &count, sizeof count));
    }

  private:
    FileDescriptor fd_;
};

sigset_t watched_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
        sigaddset(&set, signal);
    }
    return set;
}

class Conductor {
  public:
    explicit Conductor(Preparation& run)
        : run_(run),
          nursery_(start_nursery(run)),
          signals_(make_signal_descriptor()),
          progress_(run.options.quiet) {}

    ExitCode conduct() {
        try {
            start();
            wait_for_the_end();
        } catch (const UsageError&) {
            // Found before a frame was taken (an output that cannot be made): exit code 2.
            abort_threads();
            throw;
        } catch (const std::exception& error) {
            fail(error.what());
        }
        return finish();
    }

  private:
    static Nursery start_nursery(Preparation& run) {
        // Workers orphaned by a killed nursery come to us, to be reaped and counted.
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        return Nursery::start(run.setup, *run.instance, run.life_line,
                              [&run] { run.source->let_go(); });
    }

    static FileDescriptor make_signal_descriptor() {
        const sigset_t set = watched_signals();
        FileDescriptor made(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!made) {
            throw RunError("cannot make a signalfd: " + errno_text() +
                           "; in a container: its seccomp profile");
        }
        return made;
    }

    void start() {
        if (!run_.options.report.empty()) {
            check_report_path(run_.options.report);
        }
        if (!run_.options.record.empty()) {
            recording_ = std::make_unique<RecordingSink>(run_.options.record);
        }
        if (run_.options.capture) {
            make_capture_directory(run_.options.capture->directory);
        }
        std::vector<SpectrumSink*> sinks;
        if (recording_) {
            sinks.push_back(recording_.get());
        }
        if (run_.options.feed) {
            make_feed();
            sinks.push_back(feed_.get());
        }
        const std::string endpoint =
            run_.options.control.empty() ? run_.instance->control_endpoint() : run_.options.control;
        control_ = std::make_unique<Control>(context_, endpoint);
        if (run_.options.metrics) {
            metrics_ = std::make_unique<MetricsExporter>(*run_.options.metrics,
                                                         [this] { doorbell_.ring(); });
        }
        ask_for_real_time();
        wakeups_ = make_wakeups(run_.options.notify, *run_.ledger,
                                run_.instance->wakeup_endpoints(), real_time_priority_);
        // Made (and bound) before there are workers: a thousand that find nobody listening try
        // again every few milliseconds, and leave no time for each other's start.
        tokens_ = wakeups_->token_sender();
        notices_ = wakeups_->notice_receiver();
        integrator_ = std::make_unique<Integrator>(run_.stream, run_.options.welch,
                                                   run_.frames_per_integration, sinks);
        make_ingest();
        make_collector();
        fill_facts();
        start_workers();
        begin();
        begin_capture();
        answer_commands();
        scaling_ =
            std::make_unique<WorkerScaling>(run_.workers, *run_.ring, *run_.ledger, *supervisor_);
        collector_thread_ = std::thread([this] { collect(); });
        ingest_thread_ = std::thread([this] { ingest(); });
        if (!run_.ring_is_outside) {
            source_thread_ = std::thread([this] { feed(); });
        }
    }

    void ask_for_real_time() {
        if (!run_.options.real_time) {
            return;
        }
        const int priority = static_cast<int>(*run_.options.real_time);
        const std::string refusal = why_no_real_time(priority);
        if (refusal.empty()) {
            real_time_priority_ = priority;
        } else {
            warn("--realtime " + std::to_string(priority) + " is refused (" + refusal +
                 "): going on with the usual priority; it takes CAP_SYS_NICE or ulimit -r");
        }
    }

    // Of the calling thread, where it was asked for.
    void take_real_time() const {
        if (real_time_priority_ > 0) {
            make_this_thread_real_time(real_time_priority_);
        }
    }

    void make_feed() {
        FeedSetup setup;
        setup.endpoints = {run_.instance->feed_endpoint()};
        setup.endpoints.insert(setup.endpoints.end(), run_.options.feeds.begin(),
                               run_.options.feeds.end());
        setup.ring_socket = run_.instance->spectrum_ring_socket();
        setup.channels = run_.stream.geometry.channels;
        setup.packet_bytes =
            packet_bytes_1_1(run_.options.welch.bins(run_.stream.geometry.is_complex()));
        if (!run_.options.feed_key.empty()) {
            setup.keys = read_secret_keys(run_.options.feed_key);
            setup.allow_path = run_.options.feed_allow;
        }
        feed_ = std::make_unique<Feed>(setup);
    }

    void make_ingest() {
        Ingest::Setup setup;
        setup.ring = &*run_.ring;
        setup.ledger = &*run_.ledger;
        setup.plan = &run_.plan;
        setup.accounts = &accounts_;
        setup.channels = run_.stream.geometry.channels;
        setup.frames_per_integration = run_.frames_per_integration;
        setup.policy = run_.policy;
        if (run_.ring_is_outside) {
            setup.first_position = run_.policy == OverrunPolicy::drop
                                       ? run_.ring->head()
                                       : run_.ring->header().tail.load(std::memory_order_acquire);
        }
        setup.most_frames = run_.options.frames;
        setup.stop = &stop_ingest_;
        setup.abort = &abort_;
        setup.workers = &alive_workers_;
        first_position_ = setup.first_position;
        ingest_ = std::make_unique<Ingest>(setup);
    }

    void make_collector() {
        Collector::Setup setup;
        setup.ring = &*run_.ring;
        setup.ledger = &*run_.ledger;
        setup.plan = &run_.plan;
        setup.accounts = &accounts_;
        setup.integrator = integrator_.get();
        setup.needed_by_ingest = &ingest_->first_position_needed();
        setup.abort = &abort_;
        setup.budget_ns = run_.options.budget_us * 1000.0;
        setup.workers = &alive_workers_;
        setup.cpus = run_.cpus_for_workers();
        collector_ = std::make_unique<Collector>(setup);
    }

    // Real hardware does not wait for us: the source is started when workers are at work.
    void start_workers() {
        Supervisor::Setup setup;
        setup.nursery = &nursery_;
        setup.ledger = &*run_.ledger;
        setup.accounts = &accounts_;
        setup.make_nursery = [this] { return exec_nursery(run_); };
        setup.cpus = run_.worker_cpus;
        setup.read_cpus = [this] { return run_.read_worker_cpus(); };
        setup.work_was_requeued = [this] { ingest_->wake_workers_soon(); };
        supervisor_ = std::make_unique<Supervisor>(std::move(setup), run_.workers.least);
        facts_.supervisor = supervisor_.get();
        if (run_.policy == OverrunPolicy::drop) {
            // While the workers do the same: a source in real time has no time for it later.
            const int64_t touched_by_ns = monotonic_ns() + touch_at_start_ns;
            run_.ledger->touch_pages(touched_by_ns);
            run_.ring->touch_pages(touched_by_ns);
        }
        const int64_t deadline =
            monotonic_ns() + patience_at_start_ns + run_.workers.least * patience_for_worker_ns;
        while (!workers_are_ready()) {
            if (monotonic_ns() > deadline) {
                throw RunError("the workers did not start in time; see the messages above");
            }
            pollfd events{supervisor_->events(), POLLIN, 0};
            poll(&events, 1, 1);
            look_after_workers();
            if (stop_requested_) {
                break;
            }
        }
        if (run_.options.pin != "none") {
            warn_unbound_workers();
        }
    }

    bool workers_are_ready() const {
        for (uint32_t id = 0; id < run_.workers.least; ++id) {
            const auto& record = run_.ledger->worker(static_cast<uint16_t>(id));
            if (record.stage.load(std::memory_order_relaxed) ==
                static_cast<uint32_t>(WorkerStage::starting)) {
                return false;
            }
        }
        return true;
    }

    void warn_unbound_workers() {
        for (uint32_t id = 0; id < run_.workers.least; ++id) {
            const auto& record = run_.ledger->worker(static_cast<uint16_t>(id));
            if (record.cpu.load(std::memory_order_relaxed) == 0) {
                warn("worker " + std::to_string(id) +
                     " could not be bound to its CPU; it runs where the kernel puts it");
                return;
            }
        }
    }

    void fill_facts() {
        facts_.options = &run_.options;
        facts_.stream = run_.stream;
        facts_.source = run_.source.get();
        facts_.source_description = run_.source->describe();
        facts_.policy = run_.policy;
        facts_.frames_per_integration = run_.frames_per_integration;
        facts_.most_workers = run_.workers.most;
        facts_.cpus = run_.cpus_for_workers();
        facts_.plan = &run_.plan;
        facts_.plans = &*run_.plans;
        facts_.planning_s = run_.planning_s;
        facts_.ring = &*run_.ring;
        facts_.ledger = &*run_.ledger;
        facts_.accounts = &accounts_;
        facts_.feed = feed_.get();
        facts_.metrics_address = metrics_ ? metrics_->address() : "";
        facts_.instance_name = run_.instance->name();
        facts_.threads = {&source_clock_, &ingest_clock_, &collector_clock_};
        facts_.started_ns = monotonic_ns();  // of a run that fails before it begins
    }

    void begin() {
        tell_what_is_missing(run_);
        if (run_.options.lock_memory) {
            if (const std::string refusal = lock_memory(); !refusal.empty()) {
                warn("--lock-memory is refused (" + refusal +
                     "): going on without; it takes CAP_IPC_LOCK or ulimit -l");
            }
        }
        if (feed_) {
            news_ =
                std::make_unique<FeedNews>(facts_, run_.instance->spectrum_ring_socket(), *feed_);
        }
        run_.ledger->tell_begun();
        facts_.started_ns = monotonic_ns();
        facts_.cpu_before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (run_.ring_is_outside) {
            run_.ring->begin_reading(first_position_);
            source_begun_ns_.store(monotonic_ns(), std::memory_order_relaxed);
        }
    }

    void begin_capture() {
        if (!run_.options.capture) {
            return;
        }
        FrameCapture::Setup setup;
        setup.ring = &*run_.ring;
        setup.taken = &ingest_->taken_before();
        setup.stream = run_.stream;
        setup.options = *run_.options.capture;
        setup.source_description = facts_.source_description;
        setup.warn = [](const std::string& message) { warn(message); };
        capture_ = FrameCapture::begin(std::move(setup));
        facts_.capture = capture_.get();
    }

    // Of what has been taken; the run's own threads have ended.
    void finish_capture(int64_t patience_ns) {
        if (!capture_ || std::exchange(capture_finished_, true)) {
            return;
        }
        const auto is_hurried = [this] {
            handle_signals();
            return abort_.load(std::memory_order_relaxed);
        };
        if (!capture_->finish(patience_ns, is_hurried)) {
            warn("the capture's thread hangs in a write to " + run_.options.capture->directory +
                 " and is left behind: its last file may lack its end");
        }
    }

    void answer_commands() {
        CommandTargets targets;
        targets.capture = capture_.get();
        targets.facts = &facts_;
        targets.run = &run_;
        targets.ledger = &*run_.ledger;
        targets.supervisor = supervisor_.get();
        targets.stop = [this] { request_stop(); };
        targets.wake_workers = [this] { ingest_->wake_workers_soon(); };
        add_commands(*control_, targets);
    }

    // ---- the three threads

    void collect() {
        const ThreadClock::Counting counting(collector_clock_);
        take_real_time();
        try {
            collector_->run(*notices_);
        } catch (const std::exception& error) {
            fail(error.what());
        }
        collector_done_.store(true, std::memory_order_release);
        doorbell_.ring();
    }

    void ingest() {
        const ThreadClock::Counting counting(ingest_clock_);
        take_real_time();
        try {
            ingest_->run(*tokens_);
        } catch (const std::exception& error) {
            fail(error.what());
        }
        doorbell_.ring();
    }

    void feed() {
        const ThreadClock::Counting counting(source_clock_);
        RingWriter writer(*run_.ring);
        try {
            run_.source->prepare(*run_.ring, stop_source_);
            source_begun_ns_.store(monotonic_ns(), std::memory_order_relaxed);
            run_.source->run(writer, run_.policy, stop_source_);
        } catch (const std::exception& error) {
            // What has been read is finished and kept; the run has failed all the same.
            note_failure(error.what());
        }
        writer.end();
    }

    // ---- the main loop

    void wait_for_the_end() {
        while (!collector_done_.load(std::memory_order_acquire)) {
            std::array<zmq::pollitem_t, 4> items{
                zmq::pollitem_t{control_->socket().handle(), 0, ZMQ_POLLIN, 0},
                zmq::pollitem_t{nullptr, supervisor_->events(), ZMQ_POLLIN, 0},
                zmq::pollitem_t{nullptr, signals_.get(), ZMQ_POLLIN, 0},
                zmq::pollitem_t{nullptr, doorbell_.fd(), ZMQ_POLLIN, 0}};
            if (zmq_poll(items.data(), static_cast<int>(items.size()), 10) < 0 && errno != EINTR) {
                throw RunError(std::string("the main loop cannot wait: ") + zmq_strerror(errno));
            }
            doorbell_.clear();
            look_after_workers();
            control_->handle_requests();
            if (aborting_) {
                break;
            }
            look_at_time();
            scaling_->update();
            progress_.update(facts_);
            tell_held_back();
            if (metrics_) {
                metrics_->update(facts_);
            }
            if (news_) {
                news_->update();
            }
        }
    }

    void look_after_workers() {
        supervisor_->handle_events();
        supervisor_->handle_timers();
        handle_signals();
        alive_workers_.store(supervisor_->alive(), std::memory_order_relaxed);
        if (supervisor_->is_helpless()) {
            fail(
                "the nursery and every worker have died and no new nursery could be made: nobody "
                "is left to do the work");
        }
    }

    void handle_signals() {
        signalfd_siginfo signal{};
        while (read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
            if (signal.ssi_signo != SIGCHLD) {
                if (stop_requested_) {
                    fail("stopped at once by a second signal");
                }
                request_stop();
            }
        }
        int status = 0;
        pid_t pid = 0;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            supervisor_->child_ended(pid, status);
        }
    }

    void look_at_time() {
        const int64_t now_ns = monotonic_ns();
        if (run_.options.duration_s && !stop_requested_) {
            look_at_duration(now_ns);
        }
        if (now_ns - memory_looked_ns_ > memory_look_ns) {
            memory_looked_ns_ = now_ns;
            look_at_memory();
        }
    }

    // From the first frame on; where none comes, from the moment at which one could have.
    void look_at_duration(int64_t now_ns) {
        const int64_t first_ns = accounts_.first_frame_ns();
        const int64_t begun_ns =
            first_ns != 0 ? first_ns : source_begun_ns_.load(std::memory_order_relaxed);
        if (begun_ns == 0 ||
            static_cast<double>(now_ns - begun_ns) / 1e9 < *run_.options.duration_s) {
            return;
        }
        if (first_ns == 0) {
            warn("no frame came in the time of --duration: check that something sends to " +
                 facts_.source_description);
        }
        request_stop();
    }

    void look_at_memory() {
        for (const WorkerStatus& worker : supervisor_->status()) {
            const ProcessMemory memory = memory_of(worker.pid);
            facts_.worker_rss_max_bytes =
                std::max(facts_.worker_rss_max_bytes, memory.unshared_bytes);
            facts_.worker_private_max_bytes =
                std::max(facts_.worker_private_max_bytes, memory.private_bytes);
        }
    }

    // ---- the end

    // What is in the ring is finished, then the run ends.
    void request_stop() {
        stop_requested_ = true;
        run_.ledger->set_paused(false);  // what is in flight could not be finished otherwise
        stop_source_.store(true, std::memory_order_relaxed);
        // Our own source ends the ring itself, after its last frame.
        stop_ingest_.store(run_.ring_is_outside, std::memory_order_relaxed);
    }

    void note_failure(const std::string& why) {
        const std::lock_guard lock(failure_mutex_);
        if (failure_.empty()) {
            failure_ = why;
        }
    }

    // Any thread: ends the run now.
    void fail(const std::string& why) {
        note_failure(why);
        abort_.store(true, std::memory_order_relaxed);
        stop_source_.store(true, std::memory_order_relaxed);
        aborting_.store(true, std::memory_order_relaxed);
        doorbell_.ring();
    }

    void abort_threads() {
        abort_.store(true, std::memory_order_relaxed);
        stop_source_.store(true, std::memory_order_relaxed);
        join_threads();
        finish_capture(0);
        if (supervisor_) {
            supervisor_->let_workers_leave();
            supervisor_->kill_all();
        }
        clear_up();
    }

    void join_threads() {
        for (std::thread* thread : {&source_thread_, &ingest_thread_, &collector_thread_}) {
            if (thread->joinable()) {
                thread->join();
            }
        }
    }

    ExitCode finish() {
        stop_source_.store(true, std::memory_order_relaxed);
        join_threads();
        facts_.ended_ns = monotonic_ns();
        finish_capture(abort_.load(std::memory_order_relaxed) ? 0 : patience_for_capture_ns);
        if (supervisor_) {
            look_at_memory();
            let_workers_leave();
        }
        if (ingest_ && ingest_->producer_vanished()) {
            note_failure("the ring's producer (pid " +
                         std::to_string(run_.ring->header().producer_pid) +
                         ") vanished without ending the ring; what it had written is done");
        }
        if (abort_.load(std::memory_order_relaxed)) {
            accounts_.abort_in_flight();
        }
        finish_recording();
        finish_feed();
        finish_metrics();
        progress_.finish();
        tell_held_back(true);
        tell_outcome();
        clear_up();
        return failure_.empty() ? ExitCode::done : ExitCode::failed_while_running;
    }

    void let_workers_leave() {
        supervisor_->let_workers_leave();
        if (abort_.load(std::memory_order_relaxed)) {
            supervisor_->kill_all();
        }
        run_.ledger->ask_workers_to_leave();
        run_.ledger->work_futex().fetch_add(1, std::memory_order_release);
        futex_wake(run_.ledger->work_futex());
        const int64_t deadline =
            monotonic_ns() + patience_at_end_ns + supervisor_->alive() * patience_for_worker_ns;
        while (supervisor_->alive() > 0) {
            pollfd events{supervisor_->events(), POLLIN, 0};
            poll(&events, 1, 5);
            supervisor_->handle_events();
            handle_signals_at_end();
            if (monotonic_ns() > deadline) {
                warn(std::to_string(supervisor_->alive()) +
                     " workers did not leave when asked and were killed");
                supervisor_->kill_all();
                break;
            }
        }
    }

    void handle_signals_at_end() {
        int status = 0;
        pid_t pid = 0;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            supervisor_->child_ended(pid, status);
        }
    }

    void finish_recording() {
        if (!recording_ || abort_.load(std::memory_order_relaxed)) {
            return;
        }
        try {
            recording_->finish();
        } catch (const std::exception& error) {
            note_failure(error.what());
        }
    }

    void finish_feed() {
        if (news_) {
            news_->end(failure_);
        }
        if (feed_) {
            feed_->finish();
        }
    }

    // What was done last is told to whoever scrapes while outputs are being written.
    void finish_metrics() {
        if (metrics_ && supervisor_) {
            metrics_->end(facts_);
        }
    }

    void tell_outcome() {
        if (!supervisor_) {
            tell_error("failed: " + failure_);
            return;
        }
        facts_.failure = failure_;
        if (!run_.options.report.empty()) {
            try {
                write_report(facts_, run_.options.report);
            } catch (const std::exception& error) {
                note_failure(error.what());
            }
        }
        if (!run_.options.quiet) {
            try {
                write_standard_output(final_table(facts_));
            } catch (const std::exception& error) {
                note_failure(error.what());
            }
        }
        if (!failure_.empty()) {
            tell_error("failed: " + failure_);
        }
        const auto books = accounts_.snapshot();
        ECHELLE_INVARIANT(books.frames.close() && books.blocks.close());
    }

    void clear_up() {
        if (run_.ring_is_outside) {
            run_.ring->end_reading();
        }
        control_.reset();
        metrics_.reset();
    }

    Preparation& run_;
    Nursery nursery_;
    FileDescriptor signals_;
    Doorbell doorbell_;
    zmq::context_t context_{1};
    std::unique_ptr<Wakeups> wakeups_;
    std::unique_ptr<TokenSender> tokens_;      // the ingest thread's, once that is started
    std::unique_ptr<NoticeReceiver> notices_;  // the collector thread's
    std::unique_ptr<Control> control_;
    std::unique_ptr<RecordingSink> recording_;
    std::unique_ptr<Feed> feed_;
    std::unique_ptr<FeedNews> news_;
    std::unique_ptr<MetricsExporter> metrics_;
    Accounts accounts_;
    std::unique_ptr<Integrator> integrator_;
    std::unique_ptr<Ingest> ingest_;
    std::unique_ptr<Collector> collector_;
    std::unique_ptr<Supervisor> supervisor_;
    std::unique_ptr<WorkerScaling> scaling_;
    std::shared_ptr<FrameCapture> capture_;
    bool capture_finished_ = false;
    std::atomic<int64_t> source_begun_ns_{0};  // when a first frame could come; 0: not yet
    RunFacts facts_;
    Progress progress_;
    int real_time_priority_ = 0;  // 0: the usual
    uint64_t first_position_ = 0;
    int64_t memory_looked_ns_ = 0;
    bool stop_requested_ = false;

    // Raised by the main thread or a failing one; each thread looks at them in its loop.
    std::atomic<bool> stop_source_{false};
    std::atomic<bool> stop_ingest_{false};
    std::atomic<bool> abort_{false};
    std::atomic<bool> aborting_{false};
    std::atomic<bool> collector_done_{false};
    std::atomic<uint32_t> alive_workers_{0};

    std::mutex failure_mutex_;  // guards failure_ while threads run
    std::string failure_;

    ThreadClock source_clock_{"source"};
    ThreadClock ingest_clock_{"ingest"};
    ThreadClock collector_clock_{"collector"};
    std::thread source_thread_;
    std::thread ingest_thread_;
    std::thread collector_thread_;
};

}  // namespace

ExitCode run_coordinator(const Options& options) {
    const auto prepared = prepare(options);
    return Conductor(*prepared).conduct();
}

}  // namespace echelle
