// Which samples of a recording follow one another, and where it has gaps. Touches no file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/frame.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// Sample indices of a stream stay below this, so that sums of two cannot wrap.
constexpr uint64_t most_samples = uint64_t{1} << 63;

// Samples that lie one behind the other in a recording. A piece without a gap before it continues
// the piece before: frames run over the border.
struct SamplePiece {
    uint64_t offset = 0;           // where its first sample lies; in files: a byte
    uint64_t samples = 0;          // per channel, at least 1
    bool gap_before = false;       // frames must not run over the border; never for the first piece
    uint64_t samples_missing = 0;  // how many the gap lost; 0 also when nobody knows
    uint32_t file = 0;             // which of the recording's files
    // Blocks, where a file has them: this many samples per channel in each, and bytes that are no
    // samples between two. 0: one block. Where channels lie in rows, the rows are as long as the
    // block; the last one of several has rows of just the samples that it has. A single block may
    // hold more than `samples`: the rest of each row is left out.
    uint64_t block_samples = 0;
    uint64_t between_blocks = 0;

    bool operator==(const SamplePiece&) const = default;
};

// Puts pieces in the order of their recording together, with the gaps that their indices reveal.
class PieceList {
  public:
    // `what` begins the messages: the file or recording.
    explicit PieceList(std::string what) : what_(std::move(what)) {}

    // The piece's first sample has this index where it was recorded. An index other than the one
    // that would follow makes a gap; one that falls, a gap of unknown length. A piece without
    // samples is passed over. Throws UsageError when the stream would exceed 2^63 samples.
    void append(SamplePiece piece, uint64_t index);
    // The same, but it follows the piece before whatever that one's index was.
    void append_following(const SamplePiece& piece);
    // Nothing is averaged over the border before the next piece, whatever its index says.
    void break_here() { broken_ = !pieces_.empty(); }

    bool empty() const { return pieces_.empty(); }
    size_t gaps() const { return gaps_; }
    // The index that would follow; meaningless while empty.
    uint64_t expected_index() const { return expected_index_; }
    std::vector<SamplePiece> take() { return std::move(pieces_); }

  private:
    std::string what_;
    std::vector<SamplePiece> pieces_;
    uint64_t expected_index_ = 0;
    uint64_t position_ = 0;  // in the stream, behind the last piece
    size_t gaps_ = 0;
    bool broken_ = false;
};

// Bytes of one sample of all channels in a file.
uint64_t file_sample_bytes(const FrameGeometry& geometry, ValueCoding coding);

// How many whole samples of all channels there are in `bytes`; may be none. Throws UsageError, with
// the sizes, when bytes are left over unless `drop_tail`.
uint64_t whole_samples(const std::string& path, uint64_t bytes, const FrameGeometry& geometry,
                       ValueCoding coding, bool drop_tail);

}  // namespace echelle
