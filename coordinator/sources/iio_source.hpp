// iio:CONTEXT?device=&channels=&rate=&format=&samples=&timeout=&drop-bits=
//
// A converter with a driver of Linux' industrial I/O, on this machine (iio:local:) or behind an
// iiod (iio:ip:HOST). The driver gives neither a sequence nor a count of losses; docs/sources.md
// says what is done about it.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Connects, reads what the device has, and lets it go again until run(). Throws UsageError.
std::unique_ptr<Source> open_iio_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
