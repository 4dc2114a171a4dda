// The ring of frames in shared memory. docs/ring.md documents every byte of the layout for outside
// producers (a card's driver, echelle-fpga-sim, a C program); the structs below are that layout.
//
// One producer writes frames, one consumer (a coordinator and its workers) reads them. Frames are
// numbered by position: the count of frames ever written before them. Position p lies in slot
// p % slot_count. The ring has no locks: a slot's `sequence` says what stands in it, like a
// sequence lock, and is read before and after the samples are used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/shared_memory.hpp"
#include "common/stream.hpp"

namespace echelle {

inline constexpr char ring_magic[8] = {'E', 'C', 'H', 'R', 'I', 'N', 'G', '\0'};
inline constexpr uint32_t ring_version = 0x00010000;

enum class RingState : uint32_t { preparing = 0, running = 1, ended = 2 };

enum FrameFlag : uint32_t {
    frame_gap_before = 1 << 0,  // samples are missing between this frame and the one before it
};

// First bytes of the region; little-endian. Fields before `producer_state` are written once, before
// `producer_state` becomes running.
struct RingHeader {
    char magic[8];            //   0
    uint32_t version;         //   8  ring_version
    uint32_t header_bytes;    //  12  offset of the slot table
    uint32_t channels;        //  16
    uint32_t samples;         //  20
    uint32_t format;          //  24  SampleFormat
    uint32_t layout;          //  28  Layout
    uint64_t rate_num;        //  32  samples/s of each channel = rate_num / rate_den
    uint64_t rate_den;        //  40
    int64_t epoch_ns;         //  48  Unix time of sample 0, or 0
    uint64_t slot_count;      //  56
    uint64_t slot_stride;     //  64  bytes between frames, a multiple of 4096
    uint64_t frames_offset;   //  72  offset of slot 0's frame, a multiple of 4096
    uint64_t region_bytes;    //  80  whole region
    int32_t over_range_low;   //  88
    int32_t over_range_high;  //  92
    uint32_t producer_pid;    //  96  0: not a process, liveness unknown
    uint32_t producer_wakes;  // 100  1: the producer futex-wakes `head_futex` after each frame
    uint64_t producer_start;  // 104  field 22 of /proc/PID/stat, or 0: tells a reused pid apart
    uint8_t zero0[16];        // 112

    // Written by the producer, read by the consumer.
    alignas(64) std::atomic<uint64_t> head;  // 128  frames written: publishes slots [0, head)
    std::atomic<uint32_t> head_futex;        // 136  low 32 bits of head, for FUTEX_WAIT
    std::atomic<uint32_t> producer_state;    // 140  RingState: publishes the fields above
    // Written by the consumer, read by a producer that waits for room.
    alignas(64) std::atomic<uint64_t> tail;  // 192  frames before it are no longer needed
    std::atomic<uint32_t> tail_futex;        // 200  changes whenever tail moves, for FUTEX_WAIT
    std::atomic<uint32_t> consumer_pid;      // 204  0: nobody is attached
    std::atomic<uint64_t> consumer_start;    // 208  its start time as producer_start's, or 0
    std::atomic<uint64_t> consumer_wants;    // 216  it need not be woken before head reaches this
};
static_assert(offsetof(RingHeader, head) == 128 && offsetof(RingHeader, tail) == 192);
static_assert(sizeof(RingHeader) == 256);

struct alignas(64) RingSlot {
    std::atomic<uint64_t> sequence;  //  0  2p + 1 while position p is written, 2p + 2 when complete
    uint64_t frame_index;    //  8  the source's own count; a jump is a loss, a repeat a repeat
    uint64_t first_sample;   // 16  index in the stream of the frame's first sample
    int64_t complete_ns;     // 24  CLOCK_MONOTONIC when the frame was complete
    uint32_t valid_samples;  // 32  1..samples; fewer only before a gap or at the end
    uint32_t flags;          // 36  FrameFlag
    uint8_t zero[24];        // 40
};
static_assert(sizeof(RingSlot) == 64);

// What a producer says about a frame.
struct FrameStamp {
    uint64_t frame_index = 0;
    uint64_t first_sample = 0;
    uint32_t valid_samples = 0;
    uint32_t flags = 0;
};

// Bytes around each frame that its producer may write as well: a card that puts a header before the
// samples and a trailer behind them then transfers all of it in one piece, straight into the ring.
struct RingMargin {
    size_t before = 0;
    size_t after = 0;
};

// A mapped ring. Movable; the mapping lives as long as the object. Readers and the writer of one
// process may share one Ring.
class Ring {
  public:
    // A ring of our own in anonymous memory.
    static Ring anonymous(const Stream& stream, uint64_t slot_count, const RingMargin& margin = {});
    // Makes the named region for an outside producer; "NAME" becomes /dev/shm/echelle-NAME.
    // Throws UsageError when a live producer, or one without a pid that has not ended, owns a ring
    // of that name, and when a file that is no ring stands there.
    static Ring create_named(const std::string& name, const Stream& stream, uint64_t slot_count);
    // Attaches to a region that a producer has made. Throws UsageError on another magic, version or
    // an impossible geometry, and when the producer is gone.
    static Ring attach(const std::string& name);

    // A ring that another process of this run made and checked, from its memory's descriptor.
    static Ring from_descriptor(FileDescriptor fd);

    Stream stream() const;
    int descriptor() const { return memory_.descriptor(); }
    uint64_t slot_count() const { return slot_count_; }
    PageKind page_kind() const { return memory_.page_kind(); }
    size_t region_bytes() const { return memory_.size(); }

    RingHeader& header() const { return *header_; }
    RingSlot& slot(uint64_t position) const { return slots_[position % slot_count_]; }
    // The samples of the frame at `position`: frame_values() int16.
    std::span<int16_t> frame(uint64_t position) const;

    // See SharedMemory::touch_pages.
    bool touch_pages(int64_t deadline_ns) const { return memory_.touch_pages(deadline_ns); }

    uint64_t head() const { return header_->head.load(std::memory_order_acquire); }
    bool ended() const;
    // True while position's frame is complete and has not begun to be overwritten. To use samples:
    // check, read, then check again with a fence between (see holds_after_reading).
    bool holds(uint64_t position) const;
    // The second check: orders the reads of the samples before it.
    bool holds_after_reading(uint64_t position) const;

    // Waits until head > position, the ring has ended, or the timeout; true in the first case.
    // Where several threads wait, one of them may be woken as late as 10 ms after its frame.
    bool wait_for_frame(uint64_t position, int64_t timeout_ns) const;
    // Consumer: this process reads the ring from now on, beginning at `position`; there is one
    // consumer at a time. Throws UsageError when a live process reads it already.
    void begin_reading(uint64_t position);
    void end_reading();
    // Consumer: frames before `position` are no longer needed.
    void release_before(uint64_t position);
    // False when the producer is a process that no longer exists. True when it cannot be told.
    bool producer_alive() const;

    // True when a process that lives reads the ring.
    bool consumer_alive() const;

  private:
    bool take_reading();
    Ring(SharedMemory memory, uint64_t slot_count);
    static Ring format(SharedMemory memory, const Stream& stream, uint64_t slot_count,
                       const RingMargin& margin);

    SharedMemory memory_;
    RingHeader* header_ = nullptr;
    RingSlot* slots_ = nullptr;
    std::byte* frames_ = nullptr;
    uint64_t slot_count_ = 0;
    uint64_t slot_stride_ = 0;
    size_t frame_values_ = 0;
};

// Bytes of the whole region for a ring of `slot_count` frames.
size_t ring_region_bytes(const FrameGeometry& geometry, uint64_t slot_count,
                         const RingMargin& margin = {});

// The producer's side. One thread of one process. Between begin() and commit() the samples may be
// written; a frame that keeps what the slot already holds (a ring replayed round and round) calls
// them with nothing in between.
class RingWriter {
  public:
    // Marks the ring as running, with this process as its producer.
    explicit RingWriter(Ring& ring);
    // Never ends the ring by itself: a producer that dies is told from one that ends.

    Ring& ring() const { return ring_; }
    uint64_t position() const { return position_; }
    // True when the next slot's old frame is no longer needed, waiting up to `timeout_ns`. A live
    // producer does not ask.
    bool wait_for_room(int64_t timeout_ns);
    // The samples of the next frame, marked as being written.
    std::span<int16_t> begin();
    // Publishes the frame begun, completed now.
    void commit(const FrameStamp& stamp);
    // No more frames will come.
    void end();

  private:
    Ring& ring_;
    uint64_t position_ = 0;
};

}  // namespace echelle
