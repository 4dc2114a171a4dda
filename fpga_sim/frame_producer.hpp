// Drives a ring as a capture card's DMA does.
//
// In real time every frame has a deadline, the moment at which its last sample would have been
// taken, counted from the start without drift. A producer that falls behind (a pause, a busy
// machine, frames that take longer to make than to last) publishes the late frames at once, one
// after the other, until it has caught up; it leaves none out. It never waits for a reader unless
// told to.
//
// Faults: a dropped frame is not published; its index and its samples are missing, and the next
// frame carries frame_gap_before. A repeated frame is published twice under the same index. With
// Generate::once a slot keeps its samples, so that a repeat or a frame after a drop differs from a
// sound stream in its stamp alone, and bursts recur with their slot.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ring.hpp"
#include "fpga_sim/frame_generator.hpp"
#include "fpga_sim/framed_output.hpp"
#include "fpga_sim/raw_recording.hpp"
#include "fpga_sim/sim_options.hpp"

namespace echelle {

struct ProducerCounts {
    uint64_t published = 0;  // repeats included
    uint64_t dropped = 0;
    uint64_t repeated = 0;
    uint64_t late = 0;  // published more than a frame period after their deadline
};

// One thread. `stop` is looked at every 50 ms at least, while waiting and between frames.
class FrameProducer {
  public:
    // Opens the files, when there are to be some. Throws UsageError.
    explicit FrameProducer(const SimOptions& options);

    // Generate::once: fills the slots with the first frames, before anybody reads. Needed before
    // run(); does nothing for Generate::each.
    void fill(Ring& ring, const std::atomic<bool>& stop) const;

    // Publishes frames until the last one or `stop`. With `wait_for_room` no frame is overwritten
    // that is still needed. The caller ends the ring. Throws RunError when a file cannot be
    // written.
    void run(RingWriter& writer, bool wait_for_room, const std::atomic<bool>& stop);

    // Writes the files alone, without a ring: the raw one without a pace, since nobody waits for
    // it; frames for a card's reader at the pace of the stream. Throws RunError.
    void write_files(const std::atomic<bool>& stop);

    const ProducerCounts& counts() const { return counts_; }

  private:
    bool is_beyond_end(uint64_t frame_index) const;
    void make(uint64_t frame_index, std::span<int16_t> frame) const;
    bool pause_before(uint64_t frame_index, const std::atomic<bool>& stop) const;
    bool wait_until_due(uint64_t frame_index, const std::atomic<bool>& stop);
    // The frame published, still in the ring; empty when stopped before.
    std::span<const int16_t> publish(RingWriter& writer, const FrameStamp& stamp,
                                     bool wait_for_room, const std::atomic<bool>& stop);
    // Without a ring, frames that recur do so after so many.
    static constexpr uint64_t recurring_frames = 64;

    void begin_time();
    bool write_out(const FrameStamp& stamp, std::span<const int16_t> frame,
                   const std::atomic<bool>& stop);
    std::span<const int16_t> frame_without_ring(uint64_t frame_index);
    void finish_raw();

    SimOptions options_;
    FrameGenerator generator_;
    Faults faults_;
    std::optional<RawRecording> raw_;
    std::optional<FramedOutput> framed_;
    std::vector<std::vector<int16_t>> made_;  // without a ring: frames that recur, or the only one
    int64_t start_ns_ = 0;                    // CLOCK_MONOTONIC of sample 0
    ProducerCounts counts_;
};

}  // namespace echelle
