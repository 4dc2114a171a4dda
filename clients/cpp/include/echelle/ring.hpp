// Reads spectra of a coordinator on this machine out of shared memory, without copies. Echelle's
// docs/feed.md defines every byte of the ring. MIT licence.
//
//     echelle::client::SpectrumRing ring("echelle");
//     while (!ring.ended()) {
//         while (const auto entry = ring.next()) {
//             use(echelle::client::decode_packet(entry->packet));
//             if (!ring.confirm(*entry)) { forget_it(); }  // overwritten meanwhile
//         }
//         ring.wait(std::chrono::milliseconds(100));
//     }
//
// Any number of readers map the ring; the coordinator does not wait for any. A SpectrumRing belongs
// to one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "echelle/feed.hpp"

namespace echelle::client {

struct RingEntry {
    uint64_t position = 0;   // counts the packets of all channels
    uint64_t sequence = 0;   // of the channel's spectrum
    int64_t written_ns = 0;  // CLOCK_MONOTONIC
    uint32_t channel = 0;
    std::span<const std::byte> packet;  // in the ring; its values are at a multiple of 64 bytes
};

class SpectrumRing {
  public:
    // `target`: an instance's name, or the endpoint of the feed in its directory (ipc://…/feed).
    // Begins with what is written from now on. Throws FeedError.
    explicit SpectrumRing(const std::string& target = "echelle");
    ~SpectrumRing();
    SpectrumRing(const SpectrumRing&) = delete;
    SpectrumRing& operator=(const SpectrumRing&) = delete;

    // The next packet in place, or nothing when none is there yet.
    std::optional<RingEntry> next();
    // Whether the packet was not overwritten while it was used. If it was, it counts as missed.
    bool confirm(const RingEntry& entry);
    // Waits for news of the ring; false when none came in time. Bad packets raise as in Subscriber.
    bool wait(std::chrono::milliseconds timeout);

    // Packets of all channels that this reader was too slow for.
    uint64_t missed() const { return missed_; }
    // The run has ended, and everything was read.
    bool ended() const;
    uint32_t channels() const;

  private:
    void map(const std::string& socket_path);
    void check();
    uint64_t head() const;
    const std::byte* slot(uint64_t position) const;

    Subscriber feed_;
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
    uint64_t slots_offset_ = 0;
    uint64_t slot_count_ = 0;
    uint64_t slot_stride_ = 0;
    uint64_t packet_offset_ = 0;
    uint64_t packet_bytes_most_ = 0;
    uint64_t position_ = 0;
    uint64_t missed_ = 0;
};

}  // namespace echelle::client
