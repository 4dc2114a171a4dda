#include "coordinator/sources/card_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/invariant.hpp"
#include "coordinator/log.hpp"
#include "coordinator/sources/blocking_thread.hpp"

namespace echelle {
namespace {

constexpr size_t page = 4096;
// One page at a time while the frame's size is not known: no card is too slow for it.
constexpr size_t search_bytes = page;
constexpr int64_t look_ns = 20'000'000;  // how often stop is looked at
constexpr int64_t interrupt_again_ns = 100'000'000;
constexpr int64_t patience_at_end_ns = 2'000'000'000;
constexpr int64_t first_back_off_ns = 1'000'000;
constexpr int64_t longest_back_off_ns = 1'000'000'000;

std::string seconds_text(int64_t ns) {
    std::string text = std::to_string(static_cast<double>(ns) / 1e9);
    text.erase(text.find_last_not_of('0') + 1);
    return (text.back() == '.' ? text.substr(0, text.size() - 1) : text) + " s";
}

bool are_ones(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte byte) { return byte == std::byte{0xFF}; });
}

}  // namespace

CardReader::CardReader(CardReaderOptions options)
    : options_(std::move(options)),
      name_("device '" + options_.path + "'"),
      device_(options_.path, options_.tlast) {
    device_.set_read_call(options_.read_call);
}

CardReader::AlignedBytes CardReader::aligned_bytes(size_t count) {
    auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(page, count));
    if (bytes == nullptr) {
        throw std::bad_alloc();
    }
    return AlignedBytes(bytes);
}

// A system call that may take for ever; errno is the call's afterwards.
template <typename Call>
auto CardReader::in_driver(Working& working, Call call) {
    in_driver_since_ns_.store(monotonic_ns(), std::memory_order_relaxed);
    working.unlock();
    const auto result = call();
    const int error = errno;
    working.lock();
    if (left_behind_) {
        throw LeftBehind();
    }
    in_driver_since_ns_.store(0, std::memory_order_relaxed);
    errno = error;
    return result;
}

// ---- before the run

void CardReader::open() {
    const auto self = shared_from_this();
    BlockingThread thread([self] {
        Working working(self->working_);
        try {
            self->search_first_header(working);
        } catch (const LeftBehind&) {
        }
    });
    const int64_t deadline = monotonic_ns() + options_.timeout_ns;
    while (!thread.wait_for_end(look_ns)) {
        const int64_t late_ns = monotonic_ns() - deadline;
        if (late_ns > 0) {
            stop_.store(true, std::memory_order_relaxed);
            thread.interrupt();
        }
        if (late_ns > patience_at_end_ns) {
            const Working working(working_);
            left_behind_ = true;
            throw UsageError(name_ + " does not answer: " + explain(DeviceTrouble::no_answer, 0) +
                             "; a reset of the card ends it");
        }
    }
    thread.rethrow();
    stop_.store(false, std::memory_order_relaxed);
    publish_counts();
}

void CardReader::search_first_header(Working& working) {
    const int error = in_driver(working, [this] { return device_.open(); });
    if (error != 0) {
        throw UsageError(name_ + " cannot be opened: " +
                         (error == ENOTSUP ? "it is no character device, FIFO or file"
                                           : explain(trouble_of_errno(error), error)));
    }
    if (!options_.has_headers) {
        return;
    }
    chunk_ = aligned_bytes(search_bytes);
    bool ended = false;
    size_t at = 0;
    while (at == searched_.size()) {
        if (stop_.load(std::memory_order_relaxed) || ended) {
            throw UsageError(
                name_ + (ended ? " ends without a frame: " : " sends no frames: ") +
                std::to_string(now_.bytes) + " bytes read" +
                (ended ? "" : " in " + seconds_text(options_.timeout_ns)) +
                ", none of them a header of docs/capture-cards.md (give header=none for samples "
                "alone" +
                (ended ? ")" : ", timeout= to wait longer)") +
                (now_.last_trouble.empty() ? "" : "; the driver says " + now_.last_trouble));
        }
        ended = !read_some_for_search(working);
        at = find_card_header(searched_, first_);
        if (at == searched_.size() && searched_.size() > card_header_bytes) {
            // The beginning of a header may stand at the end.
            const size_t useless = searched_.size() - card_header_bytes;
            skipped_in_search_ += useless;
            searched_.erase(searched_.begin(),
                            searched_.begin() + static_cast<std::ptrdiff_t>(useless));
            at = searched_.size();
        }
    }
    first_ns_ = realtime_ns();
    skipped_in_search_ += at;
    searched_.erase(searched_.begin(), searched_.begin() + static_cast<std::ptrdiff_t>(at));
    waiting_ = searched_;
}

// False at the end of a file. Throws UsageError where waiting longer cannot help.
bool CardReader::read_some_for_search(Working& working) {
    const std::span<std::byte> chunk(chunk_.get(), search_bytes);
    const ssize_t count = in_driver(
        working, [&] { return device_.wait_readable(look_ns) ? device_.read(chunk) : 0; });
    const int error = count < 0 ? errno : 0;
    if (count > 0 && static_cast<size_t>(count) <= chunk.size()) {
        const auto bytes = chunk.first(static_cast<size_t>(count));
        if (are_ones(bytes) && bytes.size() >= card_header_bytes) {
            throw UsageError(name_ + ": " + explain(DeviceTrouble::all_ones, 0));
        }
        ++now_.reads;
        now_.bytes += bytes.size();
        searched_.insert(searched_.end(), bytes.begin(), bytes.end());
        return true;
    }
    if (count > 0) {
        throw UsageError(name_ + ": " + explain(DeviceTrouble::impossible_count, 0));
    }
    if (count == 0 && device_.kind() == DeviceFile::Kind::file) {
        return false;
    }
    const DeviceTrouble what = trouble_of_errno(error);
    if (count < 0 && error != EINTR && error != EAGAIN) {
        now_.last_trouble = explain(what, error);
        if (needs_reopening(what)) {
            throw UsageError(name_ + " cannot be read: " + now_.last_trouble);
        }
    }
    pause(first_back_off_ns);
    return true;
}

// ---- the run: the source's thread

void CardReader::read_into(RingWriter& writer, const Stream& stream, bool wait_for_room,
                           const std::atomic<bool>& stop) {
    const auto self = shared_from_this();
    BlockingThread thread([self, &writer, stream, wait_for_room] {
        Working working(self->working_);
        try {
            self->work(working, writer, stream, wait_for_room);
        } catch (const LeftBehind&) {
        }
    });
    int64_t deadline = 0;
    while (!thread.wait_for_end(look_ns)) {
        // Also when the end was asked for meanwhile: a read that took too long is counted.
        watch(thread);
        if (!stop.load(std::memory_order_relaxed)) {
            continue;
        }
        stop_.store(true, std::memory_order_relaxed);
        thread.interrupt();
        deadline = deadline == 0 ? monotonic_ns() + patience_at_end_ns : deadline;
        if (monotonic_ns() > deadline) {
            const Working working(working_);
            left_behind_ = true;
            warn(name_ + " still does not answer at the end of the run; its read is left behind");
            return;
        }
    }
    ended_.store(true, std::memory_order_relaxed);
    publish_counts();
    thread.rethrow();
}

// A read that takes too long is interrupted. One that cannot be stays with its driver: a second
// open would be refused, and the memory that it was given must not be used for anything else.
void CardReader::watch(BlockingThread& thread) {
    const int64_t since = in_driver_since_ns_.load(std::memory_order_relaxed);
    if (since == 0 || monotonic_ns() - since < options_.timeout_ns) {
        return;
    }
    if (since != watched_since_ns_) {
        watched_since_ns_ = since;
        if (unanswered_.fetch_add(1, std::memory_order_relaxed) == 0) {
            warn(name_ + ": " + explain(DeviceTrouble::no_answer, 0) + " (waited for " +
                 seconds_text(options_.timeout_ns) + ")");
        }
        watched_interrupt_ns_ = 0;
    }
    if (monotonic_ns() - watched_interrupt_ns_ > interrupt_again_ns) {
        watched_interrupt_ns_ = monotonic_ns();
        interrupted_.store(true, std::memory_order_relaxed);
        thread.interrupt();
    }
}

// ---- the run: the device's thread

void CardReader::work(Working& working, RingWriter& writer, const Stream& stream,
                      bool wait_for_room) {
    if (const auto node =
            device_.node() == 0 ? std::nullopt : node_of_device(device_.node(), "/sys")) {
        bind_this_thread_to_node(*node);
    }
    geometry_ = stream.geometry;
    reframer_.emplace(options_.has_headers ? Reframer(first_)
                                           : Reframer::headerless(stream.geometry));
    ECHELLE_INVARIANT(writer.ring().header().slot_stride >= reframer_->wire_bytes());
    numbering_.emplace(stream.rate);
    chunk_bytes_ = (reframer_->wire_bytes() + page - 1) / page * page;
    chunk_ = aligned_bytes(chunk_bytes_);
    last_data_ns_ = monotonic_ns();
    while (!stop_.load(std::memory_order_relaxed) && !finished_) {
        if (!device_.is_open() && waiting_.empty()) {
            open_again(working);
        } else if (frame_begun_ || begin_frame(writer, wait_for_room)) {
            if (fill(working)) {
                judge(writer);
            }
        }
        publish_counts();
    }
    reframer_->give_up();
    publish_counts();
    if (!failure_.empty()) {
        throw RunError(failure_);
    }
}

bool CardReader::begin_frame(RingWriter& writer, bool wait_for_room) {
    if (wait_for_room && !writer.wait_for_room(look_ns)) {
        return false;
    }
    // The header and the trailer lie in the ring's margins.
    const std::span<std::byte> samples = std::as_writable_bytes(writer.begin());
    const size_t header_bytes = options_.has_headers ? first_.header_bytes : 0;
    reframer_->assemble_in({samples.data() - header_bytes, reframer_->wire_bytes()});
    frame_begun_ = true;
    return true;
}

// Puts more bytes into the frame; false when there were none.
bool CardReader::fill(Working& working) {
    const std::span<std::byte> rest = reframer_->rest();
    if (!waiting_.empty()) {
        const size_t count = std::min(rest.size(), waiting_.size());
        std::memcpy(rest.data(), waiting_.data(), count);
        waiting_ = waiting_.subspan(count);
        now_.copied_bytes += count;
        reframer_->filled(count);
        return true;
    }
    const size_t alignment = device_.alignment();
    const bool direct =
        rest.size() % alignment == 0 && reinterpret_cast<uintptr_t>(rest.data()) % alignment == 0;
    const std::span<std::byte> target = direct ? rest : std::span(chunk_.get(), chunk_bytes_);
    const ssize_t count = in_driver(working, [&]() -> ssize_t {
        if (!device_.wait_readable(look_ns)) {
            errno = EAGAIN;
            return -1;
        }
        return device_.read(target);
    });
    return take_read(target, direct, count, count < 0 ? errno : 0);
}

bool CardReader::take_read(std::span<std::byte> target, bool direct, ssize_t count, int error) {
    if (count <= 0) {
        nothing_came(count, error);
        return false;
    }
    if (static_cast<size_t>(count) > target.size()) {
        trouble(DeviceTrouble::impossible_count, 0);
        return false;
    }
    const std::span<const std::byte> bytes = target.first(static_cast<size_t>(count));
    interrupted_.store(false, std::memory_order_relaxed);
    last_data_ns_ = monotonic_ns();
    silence_told_ = false;
    ++now_.reads;
    now_.bytes += bytes.size();
    now_.short_reads += bytes.size() < target.size() ? 1 : 0;
    if (looks_lost(bytes)) {
        trouble(DeviceTrouble::all_ones, 0);
        return false;
    }
    if (direct) {
        reframer_->filled(bytes.size());
        return true;
    }
    waiting_ = bytes;
    return false;
}

// Where a header is due, no card sends this. Without headers, no more than one value on every
// channel throughout would look like it.
bool CardReader::looks_lost(std::span<const std::byte> bytes) const {
    return reframer_->is_between_frames() && bytes.size() >= card_header_bytes &&
           are_ones(bytes.first(card_header_bytes)) && are_ones(bytes) &&
           (options_.has_headers || device_.kind() == DeviceFile::Kind::device);
}

void CardReader::nothing_came(ssize_t count, int error) {
    const DeviceFile::Kind kind = device_.kind();
    if (count == 0 && kind == DeviceFile::Kind::file) {
        finished_ = true;
    } else if (count == 0 && kind == DeviceFile::Kind::fifo) {
        trouble(DeviceTrouble::ended, 0);
    } else if (count == 0) {
        ++now_.empty_reads;
        pause(first_back_off_ns);
    } else if (error == EAGAIN) {
        if (!silence_told_ && monotonic_ns() - last_data_ns_ > options_.timeout_ns) {
            silence_told_ = true;
            ++now_.silences;
        }
    } else if (error == EINTR) {
        if (interrupted_.exchange(false, std::memory_order_relaxed)) {
            trouble(DeviceTrouble::no_answer, 0);
        }
    } else {
        trouble(trouble_of_errno(error), error);
    }
}

void CardReader::judge(RingWriter& writer) {
    for (;;) {
        switch (reframer_->advance()) {
            case Reframer::Event::more:
                return;
            case Reframer::Event::frame:
                take_frame(writer);
                return;
            case Reframer::Event::bad_header:
                numbering_->lose(CardLoss::bad_header);
                break;
            case Reframer::Event::bad_data:
                numbering_->lose(CardLoss::bad_data);
                break;
            case Reframer::Event::torn:
                numbering_->lose(CardLoss::torn);
                break;
        }
    }
}

void CardReader::take_frame(RingWriter& writer) {
    FrameStamp stamp;
    auto verdict = CardNumbering::Verdict::good;
    if (options_.has_headers) {
        const CardFrameHeader& header = reframer_->frame();
        verdict = numbering_->place(header, monotonic_ns(), stamp);
        now_.overflow_flags += (header.flags & card_overflow) != 0 ? 1 : 0;
        now_.over_range_flags += (header.flags & card_over_range) != 0 ? 1 : 0;
    } else {
        stamp = numbering_->place_unnumbered(geometry_, monotonic_ns());
    }
    reframer_->next();
    switch (verdict) {
        case CardNumbering::Verdict::good:
            writer.commit(stamp);
            frame_begun_ = false;
            back_off_ns_ = 0;
            ++now_.frames;
            break;
        case CardNumbering::Verdict::repeated:
            ++now_.repeated;
            break;
        case CardNumbering::Verdict::stale:
            ++now_.stale;
            break;
    }
}

void CardReader::trouble(DeviceTrouble what, int error) {
    const auto index = static_cast<size_t>(what);
    const std::string text = explain(what, error);
    now_.troubles[index] += what == DeviceTrouble::no_answer ? 0 : 1;  // the watchdog's to count
    now_.last_trouble = text;
    reframer_->give_up();
    numbering_->device_failed();
    if (needs_reopening(what)) {
        device_.close();
        if (!options_.reopen) {
            finished_ = true;
            failure_ = what == DeviceTrouble::ended ? "" : name_ + ": " + text;
            return;
        }
    }
    if (!std::exchange(told_[index], true) && what != DeviceTrouble::no_answer &&
        what != DeviceTrouble::ended) {
        warn(name_ + ": " + text +
             (needs_reopening(what) ? "; it is opened again until it answers"
                                    : "; it is read again"));
    }
    back_off_ns_ = std::clamp(back_off_ns_ * 2, first_back_off_ns, longest_back_off_ns);
    publish_counts();
    pause(back_off_ns_);
}

void CardReader::open_again(Working& working) {
    const int error = in_driver(working, [this] { return device_.open(); });
    if (error == 0) {
        ++now_.reopened;
        return;
    }
    ++now_.failed_opens;
    now_.last_trouble = explain(trouble_of_errno(error), error);
    back_off_ns_ = std::clamp(back_off_ns_ * 2, first_back_off_ns, longest_back_off_ns);
    publish_counts();
    pause(back_off_ns_);
}

// Short enough slices that a stop is noticed.
void CardReader::pause(int64_t ns) {
    const int64_t deadline = monotonic_ns() + ns;
    int64_t left_ns = ns;
    while (left_ns > 0 && !stop_.load(std::memory_order_relaxed)) {
        const timespec slice{0, std::min(left_ns, look_ns)};
        nanosleep(&slice, nullptr);
        left_ns = deadline - monotonic_ns();
    }
}

// ---- the counts

void CardReader::publish_counts() {
    now_.open = device_.is_open();
    if (numbering_) {
        now_.lost = numbering_->lost();
        now_.restarts = numbering_->restarts();
        now_.framing = reframer_->counts();
        now_.framing.skipped_bytes += skipped_in_search_;
    }
    const std::lock_guard lock(counts_mutex_);
    published_ = now_;
}

CardCounts CardReader::counts() const {
    const std::lock_guard lock(counts_mutex_);
    CardCounts counts = published_;
    counts.troubles[static_cast<size_t>(DeviceTrouble::no_answer)] =
        unanswered_.load(std::memory_order_relaxed);
    return counts;
}

int64_t CardReader::waiting_ns() const {
    const int64_t since = in_driver_since_ns_.load(std::memory_order_relaxed);
    return since == 0 ? 0 : monotonic_ns() - since;
}

}  // namespace echelle
