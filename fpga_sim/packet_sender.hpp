// Sends the simulated stream as UDP packets at the pace of the ADC, with the faults of a network on
// request, and counts exactly what it did.
//
// The first 16 packets and, where the end is known, the last 128 have no faults, so that a receiver
// can tell every loss. In real time a packet has a deadline, when its last sample would have been
// taken; one that falls behind is sent at once. What a faulty network would do is decided by the
// seed and the packet's number: a run can be repeated.
//
// One thread. Throws UsageError and RunError.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/file_descriptor.hpp"
#include "fpga_sim/frame_generator.hpp"
#include "fpga_sim/send_options.hpp"

namespace echelle {

struct SenderCounts {
    uint64_t packets = 0;     // of the stream
    uint64_t sent = 0;        // datagrams handed to the network
    uint64_t lost = 0;        // never sent, by request
    uint64_t reordered = 0;   // sent after one of a higher number
    uint64_t duplicated = 0;  // sent a second time
    uint64_t refused = 0;     // by the network: no buffer space, nobody there
    uint64_t late = 0;        // sent more than 1 ms after their time
    uint64_t bytes = 0;       // of all datagrams sent
    double seconds = 0;       // from the first to the last
};

class PacketSender {
  public:
    PacketSender(const SimOptions& sim, SendOptions options);

    // Until the stream's end or `stop`.
    void run(const std::atomic<bool>& stop);

    const SenderCounts& counts() const { return counts_; }
    // What was sent and what was done to it, one JSON object.
    std::string json() const;

  private:
    enum class Chance : uint32_t { loss, reorder, depth, duplicate, jitter };
    using Datagram = std::vector<std::byte>;
    struct Delayed {
        uint64_t after = 0;  // the number that it is sent behind
        uint64_t number = 0;
        bool is_second = false;
        Datagram bytes;
    };

    void open_socket();
    void make_frames_up_to(uint64_t sample);
    Datagram make_packet(uint64_t number);
    void dispatch(uint64_t number);
    void send_delayed(uint64_t after);
    void queue(Datagram bytes, uint64_t number, bool is_second);
    void send_queued();
    bool wait_for(uint64_t number, const std::atomic<bool>& stop);
    double chance(Chance what, uint64_t number) const;
    bool may_fail(uint64_t number) const;

    SimOptions sim_;
    SendOptions options_;
    FrameGenerator generator_;
    FileDescriptor fd_;
    uint64_t packets_in_all_;  // what is left over at the end fills no packet
    // The last frames as they go out. Where frames are generated once the stream is these, round
    // and round.
    std::vector<std::byte> loop_;
    uint64_t loop_samples_ = 0;
    uint64_t frames_made_ = 0;
    std::vector<int16_t> frame_;  // scratch
    std::vector<Delayed> delayed_;
    std::vector<Datagram> queue_;
    std::vector<Datagram> spare_;  // to be used again
    bool has_sent_ = false;
    uint64_t highest_ = 0;  // sent
    int64_t start_ns_ = 0;
    SenderCounts counts_;
};

}  // namespace echelle
