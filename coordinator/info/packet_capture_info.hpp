// What echelle-info says of a packet capture (pcap, pcapng): the streams of UDP datagrams in it, so
// far as they tell by themselves. Channels and rate no datagram says: a source's keys do.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace echelle {

// The path, when `source` is one of a packet capture or such a URI. Throws UsageError when the URI
// has keys, since all of a capture is looked at.
std::optional<std::string> packet_capture_path(const std::string& source);

// Reads it to its end. Memory stays bounded by the number of different streams that are listed.
// Throws UsageError when it cannot be read as a capture.
nlohmann::ordered_json packet_capture_info(const std::string& path);

}  // namespace echelle
