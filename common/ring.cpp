#include "common/ring.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/futex.hpp"
#include "common/process.hpp"

namespace echelle {
namespace {

constexpr size_t page = 4096;
constexpr uint64_t most_slots = uint64_t{1} << 20;

uint64_t page_aligned(uint64_t bytes) {
    return (bytes + page - 1) / page * page;
}

uint64_t frames_offset_for(uint64_t slot_count, const RingMargin& margin) {
    return page_aligned(sizeof(RingHeader) + slot_count * sizeof(RingSlot) + margin.before);
}

// What stands before a frame and what stands behind the one before it share the space between.
uint64_t stride_for(const FrameGeometry& geometry, const RingMargin& margin) {
    return page_aligned(geometry.frame_bytes() + margin.before + margin.after);
}

// Slot fields are read while a producer may be rewriting them; `sequence` tells whether the value
// counts. atomic_ref keeps such a read well defined.
template <typename T>
void store_relaxed(T& field, T value) {
    std::atomic_ref<T>(field).store(value, std::memory_order_relaxed);
}

template <typename T>
T load_relaxed(T& field) {
    return std::atomic_ref<T>(field).load(std::memory_order_relaxed);
}

std::string file_name_for(const std::string& name) {
    if (name.starts_with('/')) {
        return name;
    }
    constexpr std::string_view allowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (name.empty() || name.size() > 64 || name.find_first_not_of(allowed) != std::string::npos ||
        name.front() == '.') {
        std::string shown = name;  // on one line, whatever stands in it
        std::replace_if(
            shown.begin(), shown.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
        throw UsageError("ring name '" + shown +
                         "' is not usable: give 1 to 64 letters, digits, '-', '_' or '.', or an "
                         "absolute path");
    }
    return "echelle-" + name;
}

void refuse(const std::string& name, const std::string& why) {
    throw UsageError("ring '" + name + "' cannot be read: " + why);
}

// The header comes from another program: nothing in it is believed before it is checked.
void check_header(const std::string& name, const RingHeader& header, size_t region_bytes) {
    if (std::memcmp(header.magic, ring_magic, sizeof ring_magic) != 0) {
        refuse(name, "it does not begin with the magic ECHRING; is it a ring of frames?");
    }
    if (header.version != ring_version) {
        refuse(name, "its version is " + std::to_string(header.version >> 16) + "." +
                         std::to_string(header.version & 0xFFFF) +
                         ", this program reads 1.0; rebuild the producer against docs/ring.md");
    }
    FrameGeometry geometry;
    geometry.channels = header.channels;
    geometry.samples = header.samples;
    geometry.format = static_cast<SampleFormat>(header.format);
    geometry.layout = static_cast<Layout>(header.layout);
    try {
        geometry.validate();
    } catch (const UsageError& error) {
        refuse(name, std::string("its geometry is impossible: ") + error.what());
    }
    if (header.rate_num == 0 || header.rate_den == 0) {
        refuse(name, "its sample rate is " + std::to_string(header.rate_num) + "/" +
                         std::to_string(header.rate_den) + " Hz");
    }
    if (header.over_range_low < INT16_MIN || header.over_range_high > INT16_MAX ||
        header.over_range_low >= header.over_range_high) {
        refuse(name, "its over-range limits " + std::to_string(header.over_range_low) + " and " +
                         std::to_string(header.over_range_high) +
                         " are not two 16-bit values, the lower first; see docs/ring.md");
    }
    if (header.region_bytes > region_bytes) {
        refuse(name, "its header says " + std::to_string(header.region_bytes) +
                         " bytes and there are " + std::to_string(region_bytes) +
                         ": it has been cut off");
    }
    const uint64_t slots = header.slot_count;
    const uint64_t stride = header.slot_stride;
    if (header.header_bytes != sizeof(RingHeader) || slots < 2 || slots > most_slots ||
        stride % page != 0 || stride < geometry.frame_bytes() ||
        stride > std::numeric_limits<uint64_t>::max() / most_slots ||
        header.frames_offset % page != 0 || header.frames_offset > header.region_bytes ||
        header.frames_offset < sizeof(RingHeader) + slots * sizeof(RingSlot) ||
        slots * stride > header.region_bytes - header.frames_offset) {
        refuse(name, std::to_string(slots) + " slots of " + std::to_string(stride) +
                         " bytes from byte " + std::to_string(header.frames_offset) +
                         " do not fit its " + std::to_string(header.region_bytes) +
                         " bytes; see docs/ring.md");
    }
}

// In a ring of our own the producer's thread may begin while another already reads: these three
// fields are atomic there, the pid last.
void claim_for_this_process(RingHeader& header) {
    store_relaxed(header.producer_start, process_start_ticks(getpid()));
    std::atomic_ref<uint32_t>(header.producer_pid)
        .store(static_cast<uint32_t>(getpid()), std::memory_order_release);
}

uint32_t producer_pid_of(RingHeader& header) {
    return std::atomic_ref<uint32_t>(header.producer_pid).load(std::memory_order_acquire);
}

// Whether the process of that pid and start time exists. One that does not know its own start time
// leaves it 0 and is told by its pid alone.
bool process_lives(uint32_t pid, uint64_t start) {
    const uint64_t ticks = process_start_ticks(static_cast<pid_t>(pid));
    return ticks != 0 && (start == 0 || start == ticks);
}

bool has_live_producer(RingHeader& header) {
    const uint32_t pid = producer_pid_of(header);
    return pid != 0 && process_lives(pid, load_relaxed(header.producer_start));
}

void check_slot_count(uint64_t slot_count) {
    if (slot_count < 2 || slot_count > most_slots) {
        throw UsageError("a ring of " + std::to_string(slot_count) +
                         " frames is not possible: give --ring-frames 2 to " +
                         std::to_string(most_slots));
    }
}

// Throws unless what stands at `path` is a ring that nobody fills any more, or an empty file.
void check_replaceable(const std::string& name, const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || (S_ISREG(status.st_mode) && status.st_size == 0)) {
        return;
    }
    const SharedMemory old = SharedMemory::open_named(path);
    auto* header = reinterpret_cast<RingHeader*>(old.data());
    if (old.size() < sizeof(RingHeader) ||
        std::memcmp(header->magic, ring_magic, sizeof ring_magic) != 0) {
        throw UsageError(path + " exists and is not a ring: remove it or take another name");
    }
    if (has_live_producer(*header)) {
        throw UsageError("ring '" + name + "' belongs to the running producer with pid " +
                         std::to_string(header->producer_pid) + ": stop it or take another name");
    }
    if (header->producer_pid == 0 && header->producer_state.load(std::memory_order_acquire) ==
                                         static_cast<uint32_t>(RingState::running)) {
        throw UsageError("ring '" + name +
                         "' belongs to a producer without a pid that has not ended it: remove " +
                         path + " or take another name");
    }
}

}  // namespace

size_t ring_region_bytes(const FrameGeometry& geometry, uint64_t slot_count,
                         const RingMargin& margin) {
    return frames_offset_for(slot_count, margin) + slot_count * stride_for(geometry, margin);
}

Ring::Ring(SharedMemory memory, uint64_t slot_count)
    : memory_(std::move(memory)),
      header_(reinterpret_cast<RingHeader*>(memory_.data())),
      slots_(reinterpret_cast<RingSlot*>(memory_.data() + sizeof(RingHeader))),
      frames_(memory_.data() + header_->frames_offset),
      slot_count_(slot_count),
      slot_stride_(header_->slot_stride),
      frame_values_(stream().geometry.frame_values()) {}

Ring Ring::format(SharedMemory memory, const Stream& stream, uint64_t slot_count,
                  const RingMargin& margin) {
    auto* header = new (memory.data()) RingHeader{};
    std::memcpy(header->magic, ring_magic, sizeof ring_magic);
    header->version = ring_version;
    header->header_bytes = sizeof(RingHeader);
    header->channels = stream.geometry.channels;
    header->samples = stream.geometry.samples;
    header->format = static_cast<uint32_t>(stream.geometry.format);
    header->layout = static_cast<uint32_t>(stream.geometry.layout);
    header->rate_num = stream.rate.numerator;
    header->rate_den = stream.rate.denominator;
    header->epoch_ns = stream.epoch_ns;
    header->slot_count = slot_count;
    header->slot_stride = stride_for(stream.geometry, margin);
    header->frames_offset = frames_offset_for(slot_count, margin);
    header->region_bytes = memory.size();
    header->over_range_low = stream.over_range_low;
    header->over_range_high = stream.over_range_high;
    return Ring(std::move(memory), slot_count);
}

Ring Ring::anonymous(const Stream& stream, uint64_t slot_count, const RingMargin& margin) {
    stream.geometry.validate();
    check_slot_count(slot_count);
    const size_t bytes = ring_region_bytes(stream.geometry, slot_count, margin);
    return format(SharedMemory::anonymous("the ring of " + std::to_string(slot_count) + " frames",
                                          bytes, true),
                  stream, slot_count, margin);
}

Ring Ring::create_named(const std::string& name, const Stream& stream, uint64_t slot_count) {
    stream.geometry.validate();
    check_slot_count(slot_count);
    const std::string file_name = file_name_for(name);
    check_replaceable(name, file_name.starts_with('/') ? file_name : "/dev/shm/" + file_name);
    Ring ring = format(
        SharedMemory::create_named(file_name, ring_region_bytes(stream.geometry, slot_count)),
        stream, slot_count, {});
    // Ours from the start, so that nobody else replaces it before we run.
    claim_for_this_process(ring.header());
    return ring;
}

Ring Ring::attach(const std::string& name) {
    SharedMemory memory = SharedMemory::open_named(file_name_for(name));
    if (memory.size() < sizeof(RingHeader)) {
        refuse(name, "its " + std::to_string(memory.size()) + " bytes are less than a header");
    }
    const auto* header = reinterpret_cast<const RingHeader*>(memory.data());
    // A producer that has just made the region fills the header before it says "running".
    const int64_t deadline = monotonic_ns() + 2'000'000'000;
    while (header->producer_state.load(std::memory_order_acquire) ==
               static_cast<uint32_t>(RingState::preparing) &&
           monotonic_ns() < deadline) {
        const timespec pause{0, 5'000'000};
        nanosleep(&pause, nullptr);
    }
    check_header(name, *header, memory.size());
    if (header->producer_state.load(std::memory_order_acquire) !=
        static_cast<uint32_t>(RingState::running)) {
        refuse(name, "its producer is not running; start it first");
    }
    const uint64_t slot_count = header->slot_count;
    Ring ring(std::move(memory), slot_count);
    if (!ring.producer_alive()) {
        refuse(name, "its producer (pid " + std::to_string(ring.header().producer_pid) +
                         ") is gone; start it again");
    }
    return ring;
}

Ring Ring::from_descriptor(FileDescriptor fd) {
    SharedMemory memory = SharedMemory::from_descriptor(std::move(fd), "the ring");
    const uint64_t slot_count = reinterpret_cast<const RingHeader*>(memory.data())->slot_count;
    return Ring(std::move(memory), slot_count);
}

Stream Ring::stream() const {
    Stream stream;
    stream.geometry = {header_->channels, header_->samples,
                       static_cast<SampleFormat>(header_->format),
                       static_cast<Layout>(header_->layout)};
    stream.rate = {header_->rate_num, header_->rate_den};
    stream.epoch_ns = header_->epoch_ns;
    stream.over_range_low = static_cast<int16_t>(header_->over_range_low);
    stream.over_range_high = static_cast<int16_t>(header_->over_range_high);
    return stream;
}

std::span<int16_t> Ring::frame(uint64_t position) const {
    std::byte* start = frames_ + (position % slot_count_) * slot_stride_;
    return {reinterpret_cast<int16_t*>(start), frame_values_};
}

bool Ring::ended() const {
    return header_->producer_state.load(std::memory_order_acquire) ==
           static_cast<uint32_t>(RingState::ended);
}

bool Ring::holds(uint64_t position) const {
    return slot(position).sequence.load(std::memory_order_acquire) == 2 * position + 2;
}

bool Ring::holds_after_reading(uint64_t position) const {
    // Keeps the reads of the samples from moving below the second look at `sequence`.
    std::atomic_thread_fence(std::memory_order_acquire);
    return slot(position).sequence.load(std::memory_order_relaxed) == 2 * position + 2;
}

bool Ring::wait_for_frame(uint64_t position, int64_t timeout_ns) const {
    const int64_t deadline = monotonic_ns() + timeout_ns;
    // Hardware cannot wake a futex: then the head is looked at often enough for a 100 us budget.
    const int64_t slice_ns = load_relaxed(header_->producer_wakes) != 0 ? 10'000'000 : 50'000;
    for (;;) {
        // Stored before the head is looked at; commit() stores the head before it looks at this:
        // either one sees the other.
        header_->consumer_wants.store(position + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const uint32_t seen = header_->head_futex.load(std::memory_order_acquire);
        if (head() > position) {
            return true;
        }
        const int64_t left_ns = deadline - monotonic_ns();
        if (left_ns <= 0 || ended()) {
            return head() > position;
        }
        futex_wait(header_->head_futex, seen, std::min(left_ns, slice_ns));
    }
}

// One attempt; false when another reader came or went meanwhile.
bool Ring::take_reading() {
    const auto own_pid = static_cast<uint32_t>(getpid());
    uint64_t start = header_->consumer_start.load(std::memory_order_acquire);
    uint32_t reader = header_->consumer_pid.load(std::memory_order_acquire);
    if (reader != 0 && reader != own_pid && process_lives(reader, start)) {
        throw UsageError("the ring is being read by the process with pid " +
                         std::to_string(reader) + ": stop it, or give the producer another ring");
    }
    // A reader that was killed leaves pid and start behind: it is replaced. Its start goes first,
    // so that a new pid never stands beside an old start and looks like a reused one.
    return header_->consumer_start.compare_exchange_strong(start, 0, std::memory_order_acq_rel) &&
           header_->consumer_pid.compare_exchange_strong(reader, own_pid,
                                                         std::memory_order_acq_rel);
}

void Ring::begin_reading(uint64_t position) {
    while (!take_reading()) {
    }
    header_->consumer_start.store(process_start_ticks(getpid()), std::memory_order_release);
    release_before(position);
}

bool Ring::consumer_alive() const {
    const uint64_t start = header_->consumer_start.load(std::memory_order_acquire);
    const uint32_t reader = header_->consumer_pid.load(std::memory_order_acquire);
    return reader != 0 && process_lives(reader, start);
}

void Ring::end_reading() {
    auto own_pid = static_cast<uint32_t>(getpid());
    if (header_->consumer_pid.load(std::memory_order_acquire) != own_pid) {
        return;
    }
    header_->consumer_start.store(0, std::memory_order_release);
    header_->consumer_pid.compare_exchange_strong(own_pid, 0, std::memory_order_acq_rel);
}

void Ring::release_before(uint64_t position) {
    // Ingest and collector both release; the tail never moves back. Release: a producer that sees
    // the new tail may overwrite what our readers have finished with.
    uint64_t tail = header_->tail.load(std::memory_order_relaxed);
    do {
        if (position <= tail) {
            return;
        }
    } while (!header_->tail.compare_exchange_weak(tail, position, std::memory_order_release,
                                                  std::memory_order_relaxed));
    header_->tail_futex.fetch_add(1, std::memory_order_release);
    futex_wake(header_->tail_futex);
}

bool Ring::producer_alive() const {
    return producer_pid_of(*header_) == 0 || has_live_producer(*header_);
}

RingWriter::RingWriter(Ring& ring) : ring_(ring) {
    RingHeader& header = ring_.header();
    claim_for_this_process(header);
    store_relaxed(header.producer_wakes, uint32_t{1});
    // Publishes every field of the header to a consumer that reads `running`.
    header.producer_state.store(static_cast<uint32_t>(RingState::running),
                                std::memory_order_release);
}

bool RingWriter::wait_for_room(int64_t timeout_ns) {
    RingHeader& header = ring_.header();
    const int64_t deadline = monotonic_ns() + timeout_ns;
    for (;;) {
        const uint32_t seen = header.tail_futex.load(std::memory_order_acquire);
        // Acquire: pairs with release_before, whose readers have finished with the old frame.
        if (position_ < header.tail.load(std::memory_order_acquire) + ring_.slot_count()) {
            return true;
        }
        const int64_t left_ns = deadline - monotonic_ns();
        if (left_ns <= 0) {
            return false;
        }
        futex_wait(header.tail_futex, seen, std::min<int64_t>(left_ns, 10'000'000));
    }
}

std::span<int16_t> RingWriter::begin() {
    ring_.slot(position_).sequence.store(2 * position_ + 1, std::memory_order_relaxed);
    // Keeps the writes of samples from moving above the odd sequence.
    std::atomic_thread_fence(std::memory_order_release);
    return ring_.frame(position_);
}

void RingWriter::commit(const FrameStamp& stamp) {
    RingSlot& slot = ring_.slot(position_);
    store_relaxed(slot.frame_index, stamp.frame_index);
    store_relaxed(slot.first_sample, stamp.first_sample);
    store_relaxed(slot.complete_ns, monotonic_ns());
    store_relaxed(slot.valid_samples, stamp.valid_samples);
    store_relaxed(slot.flags, stamp.flags);
    // Publishes samples and stamp to whoever reads this sequence.
    slot.sequence.store(2 * position_ + 2, std::memory_order_release);
    ++position_;
    RingHeader& header = ring_.header();
    header.head.store(position_, std::memory_order_release);
    header.head_futex.store(static_cast<uint32_t>(position_), std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // see wait_for_frame
    if (position_ >= header.consumer_wants.load(std::memory_order_relaxed)) {
        futex_wake(header.head_futex);
    }
}

void RingWriter::end() {
    ring_.header().producer_state.store(static_cast<uint32_t>(RingState::ended),
                                        std::memory_order_release);
    futex_wake(ring_.header().head_futex);
}

}  // namespace echelle
