// Packets of SPEAD 4, the Streaming Protocol for Exchanging Astronomical Data (SKA South Africa,
// "SPEAD: Recommended practice", 2010), as the spead2 library sends and receives them.
//
//   header   u8 0x53, u8 version 4, u8 bytes of an item's id, u8 bytes of a heap address,
//            u16 0, u16 items; the two widths make 8 together
//   items    each a big-endian u64: bit 63 immediate, then the id, then the value or heap address
//   payload
// Ids read: 1 heap count, 2 heap length, 3 payload offset, 4 payload length, 5 descriptor,
// 6 stream control.
#pragma once

#include <cstdint>
#include <span>

#include "coordinator/sources/datagram.hpp"

namespace echelle {

struct SpeadPacket {
    uint64_t heap_count = 0;
    uint64_t heap_length = 0;     // bytes
    uint64_t payload_offset = 0;  // bytes, within the heap
    std::span<const std::byte> payload;
};

// A packet of samples; fault not_samples for descriptors and stream control.
DatagramFault parse_spead(std::span<const std::byte> datagram, SpeadPacket& packet);

// Places the packets of one stream: every heap is one stretch of samples, heaps follow one another
// by their counts, `heap_step` apart. Begins with the first beginning of a heap, whose sizes then
// hold for all.
class SpeadFraming final : public Framing {
  public:
    SpeadFraming(const SampleLayout& layout, uint64_t heap_step)
        : layout_(layout), heap_step_(heap_step) {}

    DatagramFault place(std::span<const std::byte> datagram, PacketPlace& place) override;

  private:
    DatagramFault check_sizes(const SpeadPacket& packet) const;
    void begin(const SpeadPacket& packet);

    SampleLayout layout_;
    uint64_t heap_step_;
    bool has_begun_ = false;
    uint64_t first_heap_ = 0;
    uint64_t heap_length_ = 0;
    uint64_t packet_bytes_ = 0;  // of every packet but a heap's last
    uint64_t packets_per_heap_ = 0;
};

}  // namespace echelle
