// From datagrams to frames: places each, restores their order, and puts their samples into the
// ring, with a gap where some are missing. The same for a socket and for a capture file.
//
// Owned and called by the source's thread alone; snapshot() may be called by any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/sources/datagram.hpp"
#include "coordinator/sources/frame_assembler.hpp"
#include "coordinator/sources/reorder_window.hpp"
#include "coordinator/sources/stream_joiner.hpp"

namespace echelle {

struct MissingSamples {
    uint64_t lost_packets = 0;  // their packets never came in time
    uint64_t sender_clock = 0;  // no packet is missing, but the sender's clock went on
    uint64_t marked = 0;        // they came, but the sender said that they are not good
    uint64_t unknown = 0;       // at restarts, by the time that passed
};

// Everything that happened to datagrams, packets and samples so far.
struct PacketFacts {
    uint64_t datagrams = 0;
    uint64_t bytes = 0;
    std::array<uint64_t, datagram_faults> faults{};
    uint64_t placed = 0;  // packets that got a number: datagrams, or several joined
    PacketCounts packets;
    std::vector<JoinedStreamCounts> streams;  // where several are joined
    uint64_t samples = 0;                     // of each channel, put into frames
    MissingSamples missing;
    uint64_t gaps = 0;
    uint64_t over_range_packets = 0;  // by the sender's own word
    AssembledFrames frames;
    bool uses_packet_time = false;
    std::vector<std::string> remarks;

    // Packets that wait for one before them. Every packet is delivered, refused or held.
    uint64_t held() const;
};

class PacketStream {
  public:
    using Handle = ReorderWindow::Handle;
    static constexpr size_t buffer_bytes = 65'536;  // no UDP datagram is longer

    // Holds up to `reorder` packets; `batch` buffers beyond them are for the caller. With a joiner
    // it makes the packets, and the framing is not asked.
    PacketStream(const Stream& stream, std::unique_ptr<Framing> framing,
                 std::unique_ptr<StreamJoiner> joiner, uint32_t reorder, size_t batch);

    // Before the first take(). All outlive the stream.
    void begin(FrameAssembler& frames) { frames_ = &frames; }

    // A buffer for one datagram, the caller's until take(). There is always one within the batch.
    Handle free_buffer();
    std::span<std::byte> buffer(Handle handle) {
        return {buffers_.get() + handle * buffer_bytes, buffer_bytes};
    }
    // The datagram of so many bytes in the buffer came in at that Unix time.
    void take(Handle handle, size_t bytes, int64_t arrival_ns);
    // Nothing has come for a while: what is held will not be put in order any more.
    void flush();
    // No more will come.
    void finish();

    // Makes what happened so far visible in snapshot().
    void publish();
    PacketFacts snapshot() const;
    // See Framing; also that joined streams never come. The source's thread.
    std::string contradiction() const;

  private:
    struct Packet {
        PacketPlace place;
        int64_t arrival_ns = 0;
        std::vector<std::byte> joined;  // holds the samples, where several streams are joined
    };
    void take_part(Handle handle, size_t bytes, int64_t arrival_ns);
    void carry_out();
    void deliver(const ReorderWindow::Delivery& delivery);
    void begin_at(const Packet& packet);
    void skip_hole(const Packet& packet, const ReorderWindow::Delivery& delivery);
    void skip_unknown(const Packet& packet);
    uint64_t index_of(const Packet& packet);
    uint64_t samples_of(const Packet& packet) const {
        return packet.place.samples.size() / sample_bytes_;
    }

    Stream stream_;
    std::unique_ptr<Framing> framing_;
    std::unique_ptr<StreamJoiner> joiner_;  // null: the framing's packets are the stream's
    std::vector<JoinedPacket> joined_;      // scratch
    size_t sample_bytes_;
    ReorderWindow window_;
    ReorderWindow::Outcome outcome_;  // scratch
    std::unique_ptr<std::byte[]> buffers_;
    std::vector<Packet> packets_;  // by handle
    std::vector<Handle> free_;
    FrameAssembler* frames_ = nullptr;

    bool has_begun_ = false;
    uint64_t last_samples_ = 0;  // of the packet delivered last
    std::optional<uint64_t> last_time_;
    PacketFacts facts_;

    mutable std::mutex mutex_;  // guards published_
    PacketFacts published_;
};

}  // namespace echelle
