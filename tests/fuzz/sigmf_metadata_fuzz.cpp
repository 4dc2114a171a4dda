// Any bytes as SigMF metadata: a checked struct or a UsageError of one line, and the same for the
// pieces of a data file whose size the first bytes choose. What comes out must lie in that file.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/error.hpp"
#include "coordinator/sources/sigmf_metadata.hpp"
#include "coordinator/sources/sigmf_pieces.hpp"

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void check_pieces(const echelle::SigmfMetadata& metadata, uint64_t file_bytes, bool drop_tail) {
    const echelle::SigmfPieces found =
        echelle::find_sigmf_pieces(metadata, file_bytes, drop_tail, "fuzz.sigmf-data");
    echelle::FrameGeometry geometry;
    geometry.channels = metadata.channels;
    geometry.format = metadata.format;
    const uint64_t unit = echelle::file_sample_bytes(geometry, metadata.coding);
    require(!found.pieces.empty() && !found.pieces[0].gap_before);
    uint64_t end = 0;
    for (const echelle::SamplePiece& piece : found.pieces) {
        require(piece.samples > 0 && piece.offset >= end && piece.offset <= file_bytes);
        require(piece.samples <= (file_bytes - piece.offset) / unit);
        end = piece.offset + piece.samples * unit;
    }
    require(file_bytes - end >= metadata.trailing_bytes + found.dropped_bytes);
    require(drop_tail || found.dropped_bytes == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    uint32_t file_bytes = 0;
    if (size < sizeof file_bytes + 1) {
        return 0;
    }
    std::memcpy(&file_bytes, data, sizeof file_bytes);
    const bool drop_tail = (data[sizeof file_bytes] & 1) != 0;
    const size_t header = sizeof file_bytes + 1;
    const std::string_view text(reinterpret_cast<const char*>(data) + header, size - header);
    try {
        check_pieces(echelle::parse_sigmf_metadata(text, "fuzz.sigmf-meta"), file_bytes, drop_tail);
    } catch (const echelle::UsageError& error) {
        require(std::strchr(error.what(), '\n') == nullptr);
    }
    return 0;
}
