// sigmf:PATH?recording=&verify=sha512&rate=&samples=&tail=drop
//
// A SigMF recording: PATH names its .sigmf-meta, its .sigmf-data, both without the ending, an
// archive (.sigmf) or a collection (.sigmf-collection). docs/sources.md says how captures become
// stretches and gaps.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError. The rate must come from the metadata, a key or `options`; what the metadata
// says may not be contradicted.
std::unique_ptr<Source> open_sigmf_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
