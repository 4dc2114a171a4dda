// Any bytes as packets of two joined VITA 49 streams: each has one fate, and what is complete has
// all its samples.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "coordinator/sources/stream_joiner.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    auto bytes = std::as_bytes(std::span(data, size));
    const echelle::SampleLayout layout{2, 1};
    echelle::StreamJoiner joiner(layout, {200, 3}, {0, 1}, 3);
    std::vector<echelle::JoinedPacket> complete;
    // Each datagram is a byte of length, in words, and so many bytes.
    while (!bytes.empty()) {
        const size_t length = std::to_integer<size_t>(bytes[0]) * 4;
        bytes = bytes.subspan(1);
        const auto datagram = bytes.first(std::min(length, bytes.size()));
        bytes = bytes.subspan(datagram.size());
        joiner.add(datagram, 0, complete);
        for (echelle::JoinedPacket& packet : complete) {
            echelle::require(packet.place.samples.data() == packet.samples.data());
            echelle::require(!packet.samples.empty() &&
                             packet.samples.size() % layout.sample_bytes() == 0);
            joiner.recycle(std::move(packet.samples));
        }
        complete.clear();
    }
    joiner.flush();
    for (const echelle::JoinedStreamCounts& each : joiner.counts()) {
        echelle::require(each.received == each.joined + each.duplicates + each.late + each.alone);
    }
    joiner.remark();
    return 0;
}
