// Any bytes as a series of datagrams, given to a framing and a reorder window as udp: does it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

#include "coordinator/sources/datagram.hpp"
#include "coordinator/sources/reorder_window.hpp"
#include "tests/fuzz/require.hpp"

namespace echelle {

// Each datagram is a byte of length and so many bytes; 255 stands for all that are left.
inline void place_datagrams(std::span<const std::byte> bytes, Framing& framing,
                            const SampleLayout& layout) {
    ReorderWindow window(16, framing.longest_loss());
    ReorderWindow::Outcome outcome;
    std::set<uint32_t> held;
    uint32_t handed_in = 0;
    const auto settle = [&] {
        for (const auto& delivery : outcome.deliveries) {
            require(held.erase(delivery.handle) == 1);
        }
        for (const uint32_t handle : outcome.refused) {
            require(held.erase(handle) == 1);
        }
        outcome.clear();
    };
    while (!bytes.empty()) {
        const auto length = std::to_integer<size_t>(bytes[0]);
        bytes = bytes.subspan(1);
        const size_t size = length == 255 ? bytes.size() : std::min(length, bytes.size());
        const std::span<const std::byte> datagram = bytes.first(size);
        bytes = bytes.subspan(size);
        PacketPlace place;
        if (framing.place(datagram, place) != DatagramFault::none) {
            continue;
        }
        require(!place.samples.empty() && place.samples.size() % layout.sample_bytes() == 0);
        require(place.samples.data() >= datagram.data() &&
                place.samples.data() + place.samples.size() <= datagram.data() + datagram.size());
        held.insert(handed_in);
        window.add(place.number, handed_in, outcome);
        ++handed_in;
        settle();
        require(held.size() <= 16 + ReorderWindow::restart_run);
    }
    window.flush(outcome);
    settle();
    const PacketCounts& counts = window.counts();
    require(held.empty() && window.is_empty());
    require(counts.delivered + counts.duplicates + counts.late + counts.strays == handed_in);
    framing.remark();
    framing.contradiction();
}

}  // namespace echelle
