// Packets as a sampling device on a network sends them: VITA 49, SPEAD or a plain header. Only what
// a sender needs, written from the standards and apart from the readers of coordinator/sources.
//
//   vita49  type 1: stream id, UTC seconds (or none), fraction by `time`; no class id, no trailer
//   spead   64-48: heap count, heap length, payload offset, payload length, item 0x3300 at address
//   0 raw     a header of `header` bytes, zero but for the sequence number
//
// Samples are interleaved: all channels of sample 0, of sample 1, …; 16 bits, re before im.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/sequence_field.hpp"
#include "common/stream.hpp"

namespace echelle {

enum class PacketFraming { vita49, spead, raw };
enum class PacketTime { samples, picoseconds, free_running, none };

struct PacketFormat {
    PacketFraming framing = PacketFraming::vita49;
    Stream stream;         // sample-major
    uint32_t samples = 0;  // of each channel, in a packet
    bool is_big_endian = true;
    // vita49
    uint32_t stream_id = 1;
    PacketTime time = PacketTime::samples;
    int64_t start_second = 0;  // Unix time of sample 0
    // spead
    uint32_t packets_per_heap = 8;
    // raw
    uint32_t raw_header_bytes = 8;
    SequenceField sequence;
    uint64_t sequence_step = 1;

    size_t header_bytes() const;
    size_t sample_bytes() const {
        return stream.geometry.bytes_per_sample() * stream.geometry.channels;
    }
    // Writes the header of the packet with `count`, the sender's own since it (re)started, which
    // begins with the stream's sample `first_sample`.
    void write_header(uint64_t count, uint64_t first_sample, std::span<std::byte> header) const;

  private:
    void write_vita49(uint64_t count, uint64_t first_sample, std::span<std::byte> header) const;
    void write_spead(uint64_t count, std::span<std::byte> header) const;
};

}  // namespace echelle
