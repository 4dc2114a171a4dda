// What a worker leaves in a block's result slot: a header, one ChannelSums and one SpectrumPacket
// for each channel. Written by the claiming worker before CLAIMED -> DONE, read by the collector
// after it. For a part of a median the packet holds one row of bins for each segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/packet.hpp"
#include "worker/welch_engine.hpp"

namespace echelle {

enum class BlockStatus : uint32_t {
    computed = 1,
    overwritten = 2,  // its frames were overwritten while it was computed: nothing else is valid
};

struct BlockResultHeader {
    BlockStatus status = BlockStatus::overwritten;
    uint32_t values = 0;  // float32 values in each packet; 0: no segment, no packets
    uint32_t worker = 0;
    uint32_t zero = 0;
    int64_t claimed_ns = 0;  // monotonic
    int64_t done_ns = 0;
    int64_t cpu_ns = 0;  // CPU time between the two
    uint8_t zero2[24] = {};
};
static_assert(sizeof(BlockResultHeader) == 64);

class BlockResult {
  public:
    // A view of a slot made for blocks of `most_channels` channels and `most_values` values each.
    BlockResult(std::span<std::byte> slot, uint32_t most_channels, uint32_t most_values)
        : slot_(slot),
          packets_offset_(packets_offset(most_channels)),
          stride_(packet_stride(most_values)) {}

    static size_t bytes_needed(uint32_t most_channels, uint32_t most_values) {
        return packets_offset(most_channels) + most_channels * packet_stride(most_values);
    }

    BlockResultHeader& header() const {
        return *reinterpret_cast<BlockResultHeader*>(slot_.data());
    }
    ChannelSums& sums(uint32_t channel) const {
        return reinterpret_cast<ChannelSums*>(slot_.data() + sizeof(BlockResultHeader))[channel];
    }
    // Exactly one 1.1 packet of `values` values.
    std::span<std::byte> packet(uint32_t channel, uint32_t values) const {
        return slot_.subspan(packets_offset_ + channel * stride_, packet_bytes_1_1(values));
    }

  private:
    static size_t aligned_64(size_t bytes) { return (bytes + 63) / 64 * 64; }
    static size_t packets_offset(uint32_t most_channels) {
        return sizeof(BlockResultHeader) + aligned_64(most_channels * sizeof(ChannelSums));
    }
    static size_t packet_stride(uint32_t most_values) {
        return aligned_64(packet_bytes_1_1(most_values));
    }

    std::span<std::byte> slot_;
    size_t packets_offset_;
    size_t stride_;
};

}  // namespace echelle
