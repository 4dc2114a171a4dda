// pcap:FILE?framing=vita49|spead|raw&rate=&channels=&port=&...
//
// Datagrams of samples that were captured with tcpdump or Wireshark, read as udp: receives them.
// The keys are those of udp:, but for the socket's, and those of a replay, but for loop=.
// docs/udp.md describes them.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Reads up to the first datagrams of samples, which give the framing where the URI doesn't, and the
// epoch. Throws UsageError, with what there is instead where there are none.
std::unique_ptr<Source> open_pcap_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
