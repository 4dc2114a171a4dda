// sim: frames from the simulator, in this process. docs/simulator.md lists the keys.
//
// In real time the stream's epoch is the moment at which the source was opened; its first frame
// follows as soon as the ring is filled. As fast as possible, it has no clock and counts from 0, so
// that what comes out depends on the keys alone.
#pragma once

#include <memory>

#include "common/source_uri.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError.
std::unique_ptr<Source> open_sim_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
