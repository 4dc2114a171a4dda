// wav:PATH?format=&rate=&samples=
//
// WAV, RF64, W64, and what else libsndfile reads with integers of up to 16 bits: AIFF, CAF, AU,
// FLAC. docs/sources.md describes the keys and what is refused.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError: not such a file, other values than 8- or 16-bit integers, a header that
// contradicts the file's size.
std::unique_ptr<Source> open_wav_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
