#include "coordinator/capture/frame_capture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "coordinator/capture/interleave.hpp"

namespace echelle {
namespace {

constexpr std::chrono::milliseconds look_for_frames{2};
constexpr std::chrono::milliseconds look_for_commands{100};
constexpr int64_t retry_after_ns = 1'000'000'000;
constexpr uint64_t most_frames_at_once = 16;  // then commands have their turn
constexpr size_t most_segments_of_file = 1000;
constexpr std::chrono::milliseconds look_for_hurry{50};
constexpr int64_t longest_write_ns = 5'000'000'000;
constexpr int64_t longest_write_in_a_hurry_ns = 1'000'000'000;

template <typename T>
T load_relaxed(T& field) {
    return std::atomic_ref<T>(field).load(std::memory_order_relaxed);
}

// Spectra go first: the kernel counts niceness by thread.
void yield_to_all_others() {
    constexpr int lowest = 19;
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), lowest);
}

std::string date_for_name() {
    const time_t now = realtime_ns() / 1'000'000'000;
    tm utc{};
    gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
    return text;
}

uint64_t samples_in(const std::optional<double>& seconds, Rational rate) {
    constexpr auto most = std::numeric_limits<uint64_t>::max();
    if (!seconds || *seconds * rate.value() >= 1e18) {
        return most;
    }
    return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(*seconds * rate.value())));
}

}  // namespace

std::shared_ptr<FrameCapture> FrameCapture::begin(Setup setup) {
    std::shared_ptr<FrameCapture> capture(new FrameCapture(std::move(setup)));
    if (capture->setup_.options.at_once) {
        capture->start();
    }
    // The thread owns it too: it may have to be left behind.
    capture->thread_ = std::thread([capture] { capture->run(); });
    return capture;
}

FrameCapture::FrameCapture(Setup setup)
    : setup_(std::move(setup)),
      sample_bytes_(uint64_t{setup_.stream.geometry.channels} *
                    setup_.stream.geometry.bytes_per_sample()),
      name_start_(setup_.options.directory + "/echelle-" + date_for_name() + "-"),
      sequence_(setup_.stream.geometry.samples),
      most_file_samples_(samples_in(setup_.options.most_file_seconds, setup_.stream.rate)) {
    if (setup_.stream.geometry.layout == Layout::channel_major) {
        interleaved_.resize(setup_.stream.geometry.frame_values());
    }
}

FrameCapture::~FrameCapture() {
    if (thread_.joinable()) {
        thread_.detach();  // only the thread itself can be the last owner then
    }
}

// ---- commands

void FrameCapture::start() {
    const std::lock_guard lock(mutex_);
    if (books_.capturing) {
        throw CaptureRefusal("already-capturing", "a capture is running already; stop it first");
    }
    begin_at(setup_.taken->load(std::memory_order_acquire), no_end);
}

void FrameCapture::stop() {
    const std::lock_guard lock(mutex_);
    if (!books_.capturing) {
        throw CaptureRefusal("not-capturing", "no capture is running");
    }
    end_ = std::min(end_, setup_.taken->load(std::memory_order_acquire));
    changed_.notify_all();
}

uint64_t FrameCapture::keep_last(double seconds) {
    const std::lock_guard lock(mutex_);
    if (books_.capturing) {
        throw CaptureRefusal("already-capturing", "a capture is running already; stop it first");
    }
    const uint64_t end = setup_.taken->load(std::memory_order_acquire);
    const double frames = std::ceil(seconds * 1e9 / setup_.stream.frame_period_ns());
    const uint64_t most = std::min(end, setup_.ring->slot_count());
    uint64_t first =
        end - (frames < static_cast<double>(most) ? static_cast<uint64_t>(frames) : most);
    while (first < end && !setup_.ring->holds(first)) {
        ++first;
    }
    if (first == end) {
        throw CaptureRefusal("nothing-there", "no frame has come in yet");
    }
    begin_at(first, end);
    return end - first;
}

// With the mutex held.
void FrameCapture::begin_at(uint64_t position, uint64_t end) {
    next_ = position;
    end_ = end;
    books_.capturing = true;
    changed_.notify_all();
}

CaptureBooks FrameCapture::books() const {
    const std::lock_guard lock(mutex_);
    CaptureBooks books = books_;
    if (!books.capturing) {
        return books;
    }
    const uint64_t end = end_of_capture();
    const uint64_t waiting = end - std::min(end, next_);
    // What the ring has given up is lost, though the thread cannot know yet: a write may hang.
    const uint64_t kept_from =
        setup_.ring->head() - std::min(setup_.ring->head(), setup_.ring->slot_count());
    const uint64_t gone = std::min(waiting, kept_from - std::min(kept_from, next_));
    books.in += waiting;
    books.lost.overwritten += gone;
    const bool is_left_behind = left_behind_.load(std::memory_order_relaxed);
    (is_left_behind ? books.lost.stopped : books.in_flight) += waiting - gone;
    return books;
}

// With the mutex held.
uint64_t FrameCapture::end_of_capture() const {
    // Ingest is gone once the run has ended, and has left its last position in end_.
    return ending_ ? end_ : std::min(end_, setup_.taken->load(std::memory_order_acquire));
}

bool FrameCapture::finish(int64_t patience_ns, const std::function<bool()>& is_hurried) {
    std::unique_lock lock(mutex_);
    end_ = std::min(end_, setup_.taken->load(std::memory_order_acquire));
    ending_ = true;
    int64_t give_up_ns = monotonic_ns() + patience_ns;
    bool hurries = patience_ns <= 0;
    uint64_t next = next_;
    int64_t progress_ns = monotonic_ns();  // when a frame was written last, as far as is known
    while (!ended_) {
        if (!hurries && is_hurried()) {
            hurries = true;
            give_up_ns = monotonic_ns();
        }
        give_up_ns_.store(give_up_ns, std::memory_order_relaxed);
        changed_.notify_all();
        changed_.wait_for(lock, look_for_hurry);
        const int64_t now_ns = monotonic_ns();
        if (std::exchange(next, next_) != next_) {
            progress_ns = now_ns;
        }
        // A file's end may take longer than a frame: it has all the patience.
        const int64_t since_ns = !hurries && next_ < end_ ? progress_ns : give_up_ns;
        const int64_t longest_ns = hurries ? longest_write_in_a_hurry_ns : longest_write_ns;
        if (!ended_ && now_ns - since_ns > longest_ns) {
            left_behind_.store(true, std::memory_order_relaxed);
            lock.unlock();
            thread_.detach();
            return false;
        }
    }
    lock.unlock();
    if (thread_.joinable()) {
        thread_.join();
    }
    return true;
}

// ---- the thread

void FrameCapture::run() {
    yield_to_all_others();
    std::unique_lock lock(mutex_);
    for (;;) {
        if (!books_.capturing) {
            if (ending_) {
                break;
            }
            changed_.wait_for(lock, look_for_commands);
            continue;
        }
        if (next_ >= end_) {
            lock.unlock();
            close_file();
            lock.lock();
            sequence_ = CaptureSequence(setup_.stream.geometry.samples);
            books_.capturing = false;
            continue;
        }
        lock.unlock();
        const bool there_was_one = take_some();
        lock.lock();
        if (left_behind_.load(std::memory_order_relaxed)) {
            return;
        }
        if (!there_was_one && next_ < end_ && !ending_) {
            changed_.wait_for(lock, look_for_frames);
        }
    }
    ended_ = true;
    changed_.notify_all();
}

// False when nothing more has come in.
bool FrameCapture::take_some() {
    uint64_t next = 0;
    uint64_t end = 0;
    {
        const std::lock_guard lock(mutex_);
        next = next_;
        end = end_of_capture();
    }
    if (next >= end) {
        return false;
    }
    if (monotonic_ns() > give_up_ns_.load(std::memory_order_relaxed)) {
        lose(&CaptureLosses::stopped, end - next);
        return true;
    }
    for (uint64_t i = 0; i < most_frames_at_once && next < end; ++i) {
        if (setup_.ring->holds(next)) {
            take(next);
        } else {
            skip_overwritten(end);
        }
        if (left_behind_.load(std::memory_order_relaxed)) {
            return true;
        }
        const std::lock_guard lock(mutex_);
        next = next_;
    }
    return true;
}

// Takes note of frames that are not captured, and goes on behind them.
void FrameCapture::lose(uint64_t CaptureLosses::*cause, uint64_t frames) {
    const std::lock_guard lock(mutex_);
    books_.lost.*cause += frames;
    books_.in += frames;
    next_ += frames;
}

// The producer has lapped us. Half a ring is left to catch up in, so that segments stay long where
// the disk is too slow; what was to be kept from the ring is not given up so easily.
void FrameCapture::skip_overwritten(uint64_t end) {
    uint64_t next = 0;
    bool keeps_last = false;
    {
        const std::lock_guard lock(mutex_);
        next = next_;
        keeps_last = end_ != no_end;
    }
    const uint64_t head = setup_.ring->head();
    const uint64_t slots = setup_.ring->slot_count();
    const uint64_t age = keeps_last ? slots - slots / 16 - 1 : slots / 2;
    const uint64_t resume = std::max(head > age ? head - age : 0, next + 1);
    lose(&CaptureLosses::overwritten, std::min(resume, end) - next);
    sequence_.break_here();
}

void FrameCapture::take(uint64_t position) {
    RingSlot& slot = setup_.ring->slot(position);
    const FrameStamp stamp{load_relaxed(slot.frame_index), load_relaxed(slot.first_sample),
                           load_relaxed(slot.valid_samples), load_relaxed(slot.flags)};
    if (!setup_.ring->holds_after_reading(position)) {
        lose(&CaptureLosses::overwritten, 1);
        sequence_.break_here();
        return;
    }
    const CaptureSequence::Step step = sequence_.next(stamp);
    switch (step.verdict) {
        case CaptureVerdict::taken:
            write(position, stamp, step.continues);
            break;
        case CaptureVerdict::repeated:
            lose(&CaptureLosses::repeated, 1);
            break;
        case CaptureVerdict::out_of_order:
            lose(&CaptureLosses::out_of_order, 1);
            break;
        case CaptureVerdict::malformed:
            lose(&CaptureLosses::malformed, 1);
            break;
    }
}

void FrameCapture::write(uint64_t position, const FrameStamp& stamp, bool continues) {
    if (monotonic_ns() < retry_ns_) {
        lose(&CaptureLosses::write_failed, 1);
        sequence_.break_here();
        return;
    }
    bool is_written = false;
    try {
        if (needs_new_file(stamp, continues)) {
            close_file();
            open_file(stamp);
            continues = false;
        }
        if (!continues) {
            file_->begin_segment(stamp.first_sample, true);
        }
        is_written = append(position, stamp);
    } catch (const RunError& error) {
        disk_failed(error.what());
        lose(&CaptureLosses::write_failed, 1);
        sequence_.break_here();
        return;
    }
    if (left_behind_.load(std::memory_order_relaxed)) {
        return;
    }
    if (!is_written) {
        lose(&CaptureLosses::overwritten, 1);
        sequence_.break_here();
        return;
    }
    const std::lock_guard lock(mutex_);
    ++books_.written;
    ++books_.in;
    ++next_;
    books_.bytes += stamp.valid_samples * sample_bytes_;
    books_.segments += continues ? 0 : 1;
}

// False when the frame was overwritten meanwhile; nothing of it is in the file then.
bool FrameCapture::append(uint64_t position, const FrameStamp& stamp) {
    const FrameGeometry& geometry = setup_.stream.geometry;
    const size_t values =
        size_t{stamp.valid_samples} * geometry.channels * geometry.values_per_sample();
    if (left_behind_.load(std::memory_order_relaxed)) {
        return false;  // a file's change may have taken too long
    }
    const std::span<const int16_t> frame = setup_.ring->frame(position);
    if (geometry.layout == Layout::channel_major) {
        const std::span<int16_t> out = std::span(interleaved_).first(values);
        interleave(frame, geometry, stamp.valid_samples, out);
        if (!setup_.ring->holds_after_reading(position)) {
            return false;
        }
        file_->append(std::as_bytes(out));
        return true;
    }
    file_->append(std::as_bytes(frame.first(values)));
    if (left_behind_.load(std::memory_order_relaxed)) {
        return false;
    }
    if (!setup_.ring->holds_after_reading(position)) {
        file_->take_back();
        return false;
    }
    return true;
}

bool FrameCapture::needs_new_file(const FrameStamp& stamp, bool continues) const {
    if (!file_) {
        return true;
    }
    const uint64_t bytes = stamp.valid_samples * sample_bytes_;
    return file_->bytes() > 0 &&
           (file_->bytes() + bytes > setup_.options.most_file_bytes ||
            stamp.first_sample - first_sample_of_file_ >= most_file_samples_ ||
            (!continues && file_->segments() >= most_segments_of_file));
}

void FrameCapture::open_file(const FrameStamp& stamp) {
    constexpr uint64_t most_names = 1'000'000;
    while (!file_ && files_named_ < most_names) {
        char number[24];
        std::snprintf(number, sizeof number, "%06lu", ++files_named_);
        try {
            file_ = std::make_unique<CaptureFile>(name_start_ + number, setup_.stream,
                                                  setup_.source_description,
                                                  setup_.options.with_sha512);
        } catch (const CaptureFile::Exists&) {
            // Another run of the same second: the next number.
        }
    }
    if (!file_) {
        throw RunError("cannot make another file: a million of this run are there");
    }
    first_sample_of_file_ = stamp.first_sample;
    const std::lock_guard lock(mutex_);
    ++books_.files;
    books_.last_file = file_->base() + ".sigmf-meta";
}

void FrameCapture::close_file() {
    if (!file_) {
        return;
    }
    try {
        file_->finish();
    } catch (const RunError& error) {
        disk_failed(error.what());
    }
    const bool is_empty = file_->bytes() == 0;
    file_.reset();
    const std::lock_guard lock(mutex_);
    books_.files -= is_empty ? 1 : 0;
}

void FrameCapture::disk_failed(const std::string& why) {
    retry_ns_ = monotonic_ns() + retry_after_ns;
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        books_.problem = why;
        is_new = !std::exchange(told_problem_, true);
    }
    if (is_new && setup_.warn) {
        setup_.warn("the capture: " + why +
                    "; frames are left out of it until this works again, the run goes on");
    }
}

}  // namespace echelle
