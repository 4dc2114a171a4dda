// blue:PATH?samples=
//
// A BLUE file of type 1000: one channel of 8- or 16-bit integers, real or complex. docs/sources.md
// says what is read of its header.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError.
std::unique_ptr<Source> open_blue_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
