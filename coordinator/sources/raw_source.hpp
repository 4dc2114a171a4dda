// raw:PATH?channels=&rate=&format=&layout=&samples=&endian=&offset=&tail=drop&block=&block-header=
//
// A file of nothing but samples. docs/sources.md describes the keys.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError. Keys win over `options`; channels and rate must come from one of them.
std::unique_ptr<Source> open_raw_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
