// udp:ADDRESS:PORT?framing=vita49|spead|raw&rate=&channels=&...
//
// Datagrams of samples from the network, live. docs/udp.md describes what is accepted, byte by
// byte.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Binds the socket, so that a wrong address is refused before the run begins. Throws UsageError.
std::unique_ptr<Source> open_udp_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
