// Reads a card's frames from a device into the ring, whatever its driver does: short, long, late,
// torn and stale reads, errors, a device that goes and comes back, a read that never returns. What
// is lost is counted by cause; nothing of it ends the run unless it was told not to reopen.
//
// Three threads know it. The source's thread watches (read_into). A thread of its own is in the
// driver most of the time and holds `working_` whenever it is not, so that it can be left behind
// there: it then touches nothing any more. Any thread may ask for the counts. Always owned by
// shared_ptr, since a thread left behind keeps its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/card_frame.hpp"
#include "common/ring.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/card_numbering.hpp"
#include "coordinator/sources/device_file.hpp"
#include "coordinator/sources/device_trouble.hpp"
#include "coordinator/sources/reframer.hpp"

namespace echelle {

class BlockingThread;

struct CardReaderOptions {
    std::string path;
    bool has_headers = true;
    bool tlast = false;  // open with O_TRUNC
    bool reopen = true;  // false: trouble ends the run
    int64_t timeout_ns = 10'000'000'000;
    DeviceFile::ReadCall read_call;  // for tests: stands in for read()
};

struct CardCounts {
    uint64_t frames = 0;  // into the ring
    std::array<uint64_t, card_losses> lost{};
    uint64_t repeated = 0;
    uint64_t stale = 0;
    uint64_t restarts = 0;
    uint64_t overflow_flags = 0;
    uint64_t over_range_flags = 0;
    ReframerCounts framing;
    uint64_t reads = 0;
    uint64_t bytes = 0;
    uint64_t short_reads = 0;   // fewer bytes than asked for
    uint64_t empty_reads = 0;   // none
    uint64_t copied_bytes = 0;  // that could not be read straight into the ring
    uint64_t silences = 0;      // no byte for the time-out, with a FIFO that could be waited for
    std::array<uint64_t, device_troubles> troubles{};
    uint64_t reopened = 0;
    uint64_t failed_opens = 0;
    bool open = false;
    std::string last_trouble;  // in words; empty: none
};

class CardReader : public std::enable_shared_from_this<CardReader> {
  public:
    explicit CardReader(CardReaderOptions options);

    // Opens the device and, unless there are no headers, reads until the first one, for the
    // time-out at most. Throws UsageError: it cannot be opened, or nothing came, or no header.
    // Whatever is read is kept for read_into().
    void open();
    // The first header. Only after open() with headers.
    const CardFrameHeader& first_header() const { return first_; }
    int64_t first_header_ns() const { return first_ns_; }  // CLOCK_REALTIME when it was read
    DeviceFile::Kind kind() const { return device_.kind(); }

    // In a process forked before the run: the device is not this one's.
    void let_go() { device_.close(); }

    // The run: until `stop`, the end of a file, or trouble without reopening. The stream must have
    // the geometry of the first header. Throws RunError.
    void read_into(RingWriter& writer, const Stream& stream, bool wait_for_room,
                   const std::atomic<bool>& stop);

    CardCounts counts() const;
    // How long the present system call has lasted; 0 when there is none.
    int64_t waiting_ns() const;
    bool has_ended() const { return ended_.load(std::memory_order_relaxed); }

  private:
    struct LeftBehind {};  // thrown through the device's thread when it comes back too late
    using Working = std::unique_lock<std::mutex>;
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    using AlignedBytes = std::unique_ptr<std::byte[], Free>;

    static AlignedBytes aligned_bytes(size_t count);
    template <typename Call>
    auto in_driver(Working& working, Call call);

    void search_first_header(Working& working);
    bool read_some_for_search(Working& working);

    void work(Working& working, RingWriter& writer, const Stream& stream, bool wait_for_room);
    bool begin_frame(RingWriter& writer, bool wait_for_room);
    bool fill(Working& working);
    bool take_read(std::span<std::byte> target, bool direct, ssize_t count, int error);
    void nothing_came(ssize_t count, int error);
    void judge(RingWriter& writer);
    void take_frame(RingWriter& writer);
    void trouble(DeviceTrouble what, int error);
    void open_again(Working& working);
    void pause(int64_t ns);
    bool looks_lost(std::span<const std::byte> bytes) const;
    void watch(BlockingThread& thread);
    void publish_counts();

    const CardReaderOptions options_;
    const std::string name_;  // for messages: device '/dev/…'

    std::mutex
        working_;  // see above; guards what follows down to the atomics, and the ring's writer
    bool left_behind_ = false;
    DeviceFile device_;
    CardFrameHeader first_;
    int64_t first_ns_ = 0;
    std::vector<std::byte> searched_;  // read before the run, from the first header on
    uint64_t skipped_in_search_ = 0;
    AlignedBytes chunk_;  // what reads go into that cannot go into the ring
    size_t chunk_bytes_ = 0;
    std::span<const std::byte> waiting_;  // read already, to be taken before anything else
    std::optional<Reframer> reframer_;
    std::optional<CardNumbering> numbering_;
    FrameGeometry geometry_;
    bool frame_begun_ = false;
    int64_t back_off_ns_ = 0;
    int64_t last_data_ns_ = 0;
    bool silence_told_ = false;
    std::array<bool, device_troubles> told_{};
    CardCounts now_;
    bool finished_ = false;
    std::string failure_;

    std::atomic<bool> stop_{false};
    std::atomic<bool> ended_{false};
    std::atomic<int64_t> in_driver_since_ns_{0};  // CLOCK_MONOTONIC; 0: not in the driver
    std::atomic<bool> interrupted_{false};        // by the watchdog, for taking too long
    std::atomic<uint64_t> unanswered_{0};
    // The source's thread: the call that the watchdog has told of, and when it interrupted it last.
    int64_t watched_since_ns_ = 0;
    int64_t watched_interrupt_ns_ = 0;

    mutable std::mutex counts_mutex_;  // guards published_
    CardCounts published_;
};

}  // namespace echelle
