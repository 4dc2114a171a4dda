#include "coordinator/sources/sample_pieces.hpp"

#include "common/error.hpp"

namespace echelle {

void PieceList::append(SamplePiece piece, uint64_t index) {
    if (piece.samples == 0) {
        return;
    }
    if (piece.samples >= most_samples || index >= most_samples) {
        throw UsageError("'" + what_ + "' has a sample of index " + std::to_string(index) +
                         ", beyond 2^63: its header or index is damaged");
    }
    piece.gap_before = !pieces_.empty() && (broken_ || index != expected_index_);
    piece.samples_missing =
        piece.gap_before && index > expected_index_ ? index - expected_index_ : 0;
    // Each term is below 2^63, and so is the sum of the first two, by the check in the last call.
    const uint64_t start = position_ + piece.samples_missing;
    if (start >= most_samples || start + piece.samples >= most_samples) {
        throw UsageError("'" + what_ + "' jumps by " + std::to_string(piece.samples_missing) +
                         " samples to index " + std::to_string(index) +
                         ", beyond 2^63: its header or index is damaged");
    }
    position_ = start + piece.samples;
    expected_index_ = index + piece.samples;
    gaps_ += piece.gap_before ? 1 : 0;
    broken_ = false;
    pieces_.push_back(piece);
}

void PieceList::append_following(const SamplePiece& piece) {
    append(piece, expected_index_);
}

uint64_t file_sample_bytes(const FrameGeometry& geometry, ValueCoding coding) {
    return uint64_t{geometry.channels} * geometry.values_per_sample() * bytes_of(coding);
}

uint64_t whole_samples(const std::string& path, uint64_t bytes, const FrameGeometry& geometry,
                       ValueCoding coding, bool drop_tail) {
    const uint64_t unit = file_sample_bytes(geometry, coding);
    const uint64_t left_over = bytes % unit;
    if (left_over != 0 && !drop_tail) {
        throw UsageError("'" + path + "' holds " + std::to_string(bytes) +
                         " bytes of samples, not a whole number of samples of " +
                         std::to_string(unit) + " bytes (" + std::to_string(geometry.channels) +
                         " channels x " + std::to_string(unit / geometry.channels) +
                         "): check channels and format, or add the key tail=drop to leave out the "
                         "last " +
                         std::to_string(left_over));
    }
    return bytes / unit;
}

}  // namespace echelle
