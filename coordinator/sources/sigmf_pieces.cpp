#include "coordinator/sources/sigmf_pieces.hpp"

#include <limits>

#include "common/error.hpp"

namespace echelle {
namespace {

// Not pedantic ISO C++, but exact: sums and products of numbers from a file must not wrap.
__extension__ using uint128 = unsigned __int128;

// SigMF calls core:sample_start an index into the data file in one place and, where a recording is
// split over files, counts it from core:offset in another. A first capture before core:offset can
// only be the former.
uint64_t first_index(const SigmfMetadata& metadata) {
    return metadata.captures.front().sample_start >= metadata.offset ? metadata.offset : 0;
}

uint64_t global_index(const SigmfCapture& capture) {
    return capture.global_index.value_or(capture.sample_start);
}

class PieceFinder {
  public:
    PieceFinder(const SigmfMetadata& metadata, uint64_t file_bytes, bool drop_tail,
                const std::string& data_path)
        : metadata_(metadata), drop_tail_(drop_tail), data_path_(data_path) {
        geometry_.channels = metadata.channels;
        geometry_.format = metadata.format;
        if (metadata.trailing_bytes > file_bytes) {
            refuse("core:trailing_bytes is " + std::to_string(metadata.trailing_bytes) +
                   ", but the file has only " + std::to_string(file_bytes) + " bytes");
        }
        data_end_ = file_bytes - metadata.trailing_bytes;
    }

    SigmfPieces find() {
        const uint64_t unit = file_sample_bytes(geometry_, metadata_.coding);
        const uint64_t base = first_index(metadata_);
        uint128 headers = 0;
        for (size_t i = 0; i < metadata_.captures.size(); ++i) {
            const SigmfCapture& capture = metadata_.captures[i];
            headers += capture.header_bytes;
            const uint128 offset = headers + uint128{capture.sample_start - base} * unit;
            if (offset > data_end_) {
                refuse_beyond(i);
            }
            append(capture, static_cast<uint64_t>(offset),
                   samples_of(i, static_cast<uint64_t>(offset)));
        }
        if (found_.pieces.empty()) {
            refuse("it holds no samples behind its headers");
        }
        return std::move(found_);
    }

  private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw UsageError("'" + data_path_ + "' does not fit its metadata: " + why +
                         "; correct the metadata or fetch the whole file");
    }

    [[noreturn]] void refuse_beyond(size_t index) const {
        refuse("captures[" + std::to_string(index) + "] begins with sample " +
               std::to_string(metadata_.captures[index].sample_start) +
               ", which lies beyond the end of the samples at byte " + std::to_string(data_end_));
    }

    uint64_t samples_of(size_t index, uint64_t offset) {
        if (index + 1 < metadata_.captures.size()) {
            return metadata_.captures[index + 1].sample_start -
                   metadata_.captures[index].sample_start;
        }
        const uint64_t bytes = data_end_ - offset;
        const uint64_t samples =
            whole_samples(data_path_, bytes, geometry_, metadata_.coding, drop_tail_);
        found_.dropped_bytes = bytes - samples * file_sample_bytes(geometry_, metadata_.coding);
        return samples;
    }

    void append(const SigmfCapture& capture, uint64_t offset, uint64_t samples) {
        if (samples == 0) {
            return;
        }
        SamplePiece piece{offset, samples, false, 0};
        if (found_.pieces.empty()) {
            found_.first_index = global_index(capture);
        } else {
            const uint128 next = global_index(capture);
            piece.gap_before = next != expected_global_ || capture.gap_before;
            if (next > expected_global_) {
                piece.samples_missing = static_cast<uint64_t>(next - expected_global_);
            }
        }
        if (capture.frequency) {
            piece.gap_before |=
                frequency_ && *frequency_ != *capture.frequency && !found_.pieces.empty();
            frequency_ = capture.frequency;
        }
        position_ += uint128{piece.samples_missing} + samples;
        if (position_ > uint128{std::numeric_limits<int64_t>::max()}) {
            refuse("core:global_index jumps by " + std::to_string(piece.samples_missing) +
                   ", beyond 2^63 samples");
        }
        expected_global_ = uint128{global_index(capture)} + samples;
        found_.pieces.push_back(piece);
    }

    const SigmfMetadata& metadata_;
    bool drop_tail_ = false;
    const std::string& data_path_;
    FrameGeometry geometry_;
    uint64_t data_end_ = 0;
    SigmfPieces found_;
    uint128 expected_global_ = 0;  // of the next sample, if it follows the last one
    uint128 position_ = 0;         // in the stream
    std::optional<double> frequency_;
};

}  // namespace

SigmfPieces find_sigmf_pieces(const SigmfMetadata& metadata, uint64_t file_bytes, bool drop_tail,
                              const std::string& data_path) {
    return PieceFinder(metadata, file_bytes, drop_tail, data_path).find();
}

}  // namespace echelle
