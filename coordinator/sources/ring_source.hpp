// ring:NAME
//
// A ring in shared memory that another program fills: a card's driver, echelle-fpga-sim. The ring
// itself is handed on with take_ring(); no sample is copied.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Attaches to the ring. Throws UsageError as Ring::attach, and when an option contradicts what the
// ring's header says.
std::unique_ptr<Source> open_ring_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
