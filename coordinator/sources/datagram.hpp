// A datagram of samples, whatever its framing: whether it can be used, and its place in the stream.
//
// The parsers (vita49, spead, raw_datagram) are pure and know one datagram; the framings keep what
// must be remembered from one to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace echelle {

// What is wrong with a datagram, or why it holds no samples for us. Each is counted by itself.
enum class DatagramFault : uint32_t {
    none,
    too_short,       // no bytes, or fewer than its header has or announces
    unknown_header,  // not a header of this framing
    size_mismatch,   // the size in the header is not the datagram's
    partial_sample,  // the payload is no whole number (1 or more) of samples of all channels
    missing_item,    // SPEAD: heap count, heap length, payload offset or payload length is absent
    beyond_heap,     // SPEAD: payload offset + length lies beyond the heap's length
    changed_size,    // heaps or packets of another size than the stream's first ones
    off_step,        // a sequence number, heap count or time between two steps
    no_time,         // VITA 49, several streams: no time that counts samples
    not_samples,     // sound, but of another kind: context, command, spectrum, descriptor, end
    other_stream,    // sound, but of another stream than the one that is read
    before_start,    // SPEAD: sound, but before the first beginning of a heap
};
inline constexpr size_t datagram_faults = 13;
std::string_view name_of(DatagramFault fault);
// False for those that are sound and merely not wanted.
constexpr bool is_malformed(DatagramFault fault) {
    return fault != DatagramFault::none && fault < DatagramFault::not_samples;
}

// Where a packet stands in its stream.
struct PacketPlace {
    std::span<const std::byte> samples;  // within the datagram; empty only with a fault
    // Counts packets, without wrapping round: a jump of n + 1 means that n are missing. The first
    // packet's number is arbitrary.
    int64_t number = 0;
    // The first sample's index by the sender's own clock, modulo 2^64, where the packet says it.
    std::optional<uint64_t> sample_time;
    // How far the index may be from what the packet before it leads one to expect without samples
    // missing: rounding, and a clock that is not the sampling clock. Samples.
    uint64_t time_tolerance = 0;
    std::optional<int64_t> unix_ns;  // the first sample's time, where the packet says it
    bool is_invalid = false;     // the sender itself says: samples lost or not valid in this packet
    bool is_over_range = false;  // the sender itself says
};

// What a framing must know of the samples.
struct SampleLayout {
    uint32_t channels = 1;
    uint32_t values_per_sample = 1;  // 2 when complex

    size_t sample_bytes() const { return size_t{2} * channels * values_per_sample; }
};

// One stream of datagrams. Owned and called by the source's thread alone; keeps no bytes.
class Framing {
  public:
    virtual ~Framing() = default;

    // Throws nothing, whatever the bytes.
    virtual DatagramFault place(std::span<const std::byte> datagram, PacketPlace& place) = 0;
    // The farthest that a number may jump forwards and still be a loss. A longer jump is believed
    // only when more packets follow from there, and is then a restart of the sender.
    virtual int64_t longest_loss() const { return 65'536; }
    // What a reader of figures must know: what was assumed, what cannot be seen; empty: nothing.
    virtual std::string remark() const { return {}; }
    // What shows that the datagrams are not what the user said, and the remedy; empty: nothing.
    virtual std::string contradiction() const { return {}; }
};

// Big-endian numbers of `bytes`, which must hold them.
inline uint64_t big_endian(std::span<const std::byte> bytes, size_t offset, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
        value = value << 8 | std::to_integer<uint64_t>(bytes[offset + i]);
    }
    return value;
}

}  // namespace echelle
