// dada:PATH?rate=&samples=
//
// A PSRDADA recording of 8- or 16-bit samples in the order time, frequency, polarisation. PATH may
// be a pattern that matches the files of a sequence. docs/sources.md says how channels are numbered
// and what a gap is.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError.
std::unique_ptr<Source> open_dada_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
