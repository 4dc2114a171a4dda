// The ring of spectra in shared memory: finished 1.1 packets, for readers on the same machine that
// copy nothing. docs/feed.md documents every byte; the structs below are that layout.
//
// One writer (the coordinator's collector), any number of readers that the writer does not know of
// and never waits for. Packets are numbered by position: the count of packets ever written before
// them. Position p lies in slot p % slot_count. There are no locks: a slot's `sequence` says what
// stands in it and is read before and after the packet is used, as in a sequence lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/file_descriptor.hpp"
#include "common/shared_memory.hpp"

namespace echelle {

inline constexpr char spectrum_ring_magic[8] = {'E', 'C', 'H', 'S', 'P', 'E', 'C', '\0'};
inline constexpr uint32_t spectrum_ring_version = 0x00010000;

enum class SpectrumRingState : uint32_t { preparing = 0, running = 1, ended = 2 };

// First bytes of the region; little-endian. Fields before `head` are written once, before the
// region is given to anybody.
struct SpectrumRingHeader {
    char magic[8];               //  0
    uint32_t version;            //  8
    uint32_t slots_offset;       // 12  of slot 0
    uint64_t slot_count;         // 16
    uint64_t slot_stride;        // 24  bytes from slot to slot, a multiple of 64
    uint64_t region_bytes;       // 32
    uint32_t packet_offset;      // 40  of the packet in its slot
    uint32_t packet_bytes_most;  // 44  the largest packet
    uint32_t channels;           // 48
    uint32_t publisher_pid;      // 52
    uint8_t zero0[72];           // 56

    alignas(64) std::atomic<uint64_t> head;  // 128  packets written so far
    std::atomic<uint32_t> state;             // 136  SpectrumRingState
    uint8_t zero1[116];                      // 140
};
static_assert(offsetof(SpectrumRingHeader, head) == 128);
static_assert(sizeof(SpectrumRingHeader) == 256);

struct SpectrumSlot {
    std::atomic<uint64_t> sequence;      //  0  2p + 1 while position p is written, 2p + 2 when done
    std::atomic<uint64_t> spectrum;      //  8  the packet's sequence, which counts its channel's
    std::atomic<int64_t> written_ns;     // 16  CLOCK_MONOTONIC
    std::atomic<uint32_t> channel;       // 24
    std::atomic<uint32_t> packet_bytes;  // 28
};
static_assert(sizeof(SpectrumSlot) == 32);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// So that the packet's values, 20 bytes into it, begin at a multiple of 64 bytes.
inline constexpr uint32_t spectrum_packet_offset = 108;

// The writer's end, and the owner of the memory. write() and end() belong to one thread; the rest
// may be called by any.
class SpectrumRingWriter {
  public:
    // A ring for packets of up to `packet_bytes_most` bytes of `channels` channels: 16 MiB or four
    // packets of each channel, whichever is more, within 256 MiB, but four slots at least. Throws
    // UsageError when there is no memory.
    SpectrumRingWriter(uint32_t channels, size_t packet_bytes_most);

    // One sealed packet: `spectrum` is its sequence number. Never waits.
    void write(std::span<const std::byte> packet, uint32_t channel, uint64_t spectrum);
    // Nothing comes after this.
    void end();

    uint64_t head() const { return header().head.load(std::memory_order_acquire); }
    std::span<const std::byte> region() const { return memory_.bytes(); }
    // A new descriptor of the region, for reading only. Not valid, with errno, when none is left.
    FileDescriptor read_only_descriptor() const;

  private:
    SpectrumRingHeader& header() const {
        return *reinterpret_cast<SpectrumRingHeader*>(memory_.data());
    }
    SharedMemory memory_;
    uint64_t slot_count_;
    uint64_t slot_stride_;
    uint64_t position_ = 0;
};

// One reader of a ring that is mapped, readable, for as long as the reader lives. One thread.
class SpectrumRingReader {
  public:
    // Begins with what is written from now on. Throws UsageError when the region is not a ring of
    // spectra, of another version, or has an impossible geometry.
    explicit SpectrumRingReader(std::span<const std::byte> region);

    struct Entry {
        uint64_t position = 0;
        uint64_t spectrum = 0;   // sequence number of the channel's spectrum
        int64_t written_ns = 0;  // CLOCK_MONOTONIC
        uint32_t channel = 0;
        std::span<const std::byte> packet;  // in the ring: may be overwritten while it is used
    };
    // The next packet, or nothing when none is there yet. Skips what has been overwritten, which
    // missed() then counts.
    std::optional<Entry> next();
    // To be asked when the last entry's packet has been used (or copied): true when it was not
    // overwritten meanwhile. Otherwise what was read is to be forgotten, and it counts as missed.
    bool confirm(const Entry& entry);

    // Packets of all channels that this reader was too slow for.
    uint64_t missed() const { return missed_; }
    // Position of the packet that next() looks for.
    uint64_t position() const { return position_; }
    uint64_t head() const { return header_->head.load(std::memory_order_acquire); }
    // The writer has ended, and everything was read.
    bool ended() const;
    uint32_t channels() const { return header_->channels; }

  private:
    const SpectrumSlot& slot(uint64_t position) const;
    void skip_what_is_gone();

    const SpectrumRingHeader* header_;
    const std::byte* slots_;
    uint64_t slot_count_;
    uint64_t slot_stride_;
    uint32_t packet_offset_;
    uint32_t packet_bytes_most_;
    uint64_t position_ = 0;
    uint64_t missed_ = 0;
};

}  // namespace echelle
