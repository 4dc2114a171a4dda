// The keys of a URI that say what datagrams hold: shared by udp: and pcap:. docs/udp.md lists them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/sources/datagram.hpp"
#include "coordinator/sources/raw_datagram.hpp"
#include "coordinator/sources/source.hpp"
#include "coordinator/sources/stream_joiner.hpp"

namespace echelle {

enum class FramingKind { vita49, spead, raw };
std::string_view name_of(FramingKind kind);
// That of a datagram of samples which shows it: VITA 49 or SPEAD.
std::optional<FramingKind> framing_seen_in(std::span<const std::byte> datagram);

struct PacketKeys {
    FramingKind framing = FramingKind::vita49;
    Stream stream;           // sample-major; its epoch is the source's to set
    bool big_endian = true;  // the samples
    uint32_t reorder = 64;   // packets
    std::optional<uint32_t> stream_id;
    std::vector<uint32_t> stream_ids;  // of several that are joined; else empty
    uint64_t heap_step = 1;
    RawHeader header;

    bool swaps_bytes() const;
    // Of several streams: that of the first one.
    std::unique_ptr<Framing> make_framing() const;
    // Null where streams are not joined.
    std::unique_ptr<StreamJoiner> make_joiner() const;
    // "VITA 49 packets of 2 channels, ci16, 10000000 Hz"
    std::string text() const;
};

// Takes framing=, channels=, rate=, format=, samples=, endian=, reorder= and what the framing has
// of its own; where a key is missing, `options` count. `guess` stands for a framing that the URI
// does not name; without one it has to. Throws UsageError, also when `options` contradict a key.
PacketKeys take_packet_keys(SourceUri& uri, const StreamOptions& options,
                            std::optional<FramingKind> guess);

}  // namespace echelle
