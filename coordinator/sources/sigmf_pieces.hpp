// Where in a SigMF data file the samples of its captures lie, and which of them follow one another.
// Touches no file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/sources/sample_pieces.hpp"
#include "coordinator/sources/sigmf_metadata.hpp"

namespace echelle {

struct SigmfPieces {
    std::vector<SamplePiece> pieces;  // at least one
    uint64_t dropped_bytes = 0;       // behind the last whole sample
    uint64_t first_index = 0;         // global index of the first sample
};

// For a data file of `file_bytes`. Captures that hold no sample give no piece. Throws UsageError,
// naming the `data_path`, when the captures do not fit the file.
SigmfPieces find_sigmf_pieces(const SigmfMetadata& metadata, uint64_t file_bytes, bool drop_tail,
                              const std::string& data_path);

}  // namespace echelle
