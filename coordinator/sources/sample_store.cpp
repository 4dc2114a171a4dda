#include "coordinator/sources/sample_store.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {

FileStore::FileStore(RegularFile file, const FrameGeometry& geometry, ValueCoding coding,
                     uint32_t channels_per_row)
    : FileStore(std::vector{file.path()}, geometry, coding, channels_per_row) {
    file_ = std::move(file);
}

FileStore::FileStore(std::vector<std::string> paths, const FrameGeometry& geometry,
                     ValueCoding coding, uint32_t channels_per_row)
    : paths_(std::move(paths)),
      geometry_(geometry),
      coding_(coding),
      channels_per_row_(channels_per_row) {
    ECHELLE_INVARIANT(geometry.channels % channels_per_row == 0);
    ECHELLE_INVARIANT(geometry.layout == Layout::channel_major ||
                      channels_per_row == geometry.channels);
}

const RegularFile& FileStore::file(uint32_t index) {
    if (!file_ || file_index_ != index) {
        try {
            file_ = RegularFile(paths_[index]);
        } catch (const UsageError& error) {
            // It was there when the recording was opened.
            throw RunError(error.what());
        }
        file_index_ = index;
    }
    return *file_;
}

FileStore::BlockPart FileStore::part_of(const SamplePiece& piece, uint64_t first,
                                        uint32_t count) const {
    if (piece.block_samples == 0) {
        return {piece.offset, piece.samples, first, count};
    }
    const uint64_t block = first / piece.block_samples;
    const uint64_t before = block * piece.block_samples;
    const uint64_t block_bytes = piece.block_samples * geometry_.channels *
                                     geometry_.values_per_sample() * bytes_of(coding_) +
                                 piece.between_blocks;
    const bool is_only_block = piece.samples <= piece.block_samples;
    const uint64_t row_samples =
        is_only_block ? piece.block_samples : std::min(piece.block_samples, piece.samples - before);
    return {piece.offset + block * block_bytes, row_samples, first - before,
            static_cast<uint32_t>(std::min<uint64_t>(count, row_samples - (first - before)))};
}

void FileStore::read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
                     std::span<int16_t> frame) {
    const RegularFile& from = file(piece.file);
    while (count > 0) {
        const BlockPart part = part_of(piece, first, count);
        read_part(from, part, filled, frame);
        first += part.count;
        filled += part.count;
        count -= part.count;
    }
}

void FileStore::read_part(const RegularFile& from, const BlockPart& part, uint32_t filled,
                          std::span<int16_t> frame) {
    const size_t values = geometry_.values_per_sample();
    const size_t row_values = values * channels_per_row_;
    const uint64_t unit = row_values * bytes_of(coding_);
    if (geometry_.layout == Layout::sample_major) {
        read_values(from, part.offset + part.first * unit, coding_,
                    frame.subspan(filled * row_values, part.count * row_values));
        return;
    }
    if (channels_per_row_ == 1 && part.count == geometry_.samples &&
        part.row_samples == part.count) {
        read_values(from, part.offset, coding_, frame);  // a frame as it lies in the ring
        return;
    }
    for (uint32_t channel = 0; channel < geometry_.channels; channel += channels_per_row_) {
        const uint32_t row = channel / channels_per_row_;
        const uint64_t offset = part.offset + (row * part.row_samples + part.first) * unit;
        if (channels_per_row_ == 1) {
            const size_t start = (size_t{channel} * geometry_.samples + filled) * values;
            read_values(from, offset, coding_, frame.subspan(start, part.count * values));
        } else {
            read_mixed_row(from, offset, part.count, channel, filled, frame);
        }
    }
}

void FileStore::read_mixed_row(const RegularFile& from, uint64_t offset, uint32_t count,
                               uint32_t first_channel, uint32_t filled, std::span<int16_t> frame) {
    const size_t values = geometry_.values_per_sample();
    mixed_.resize(size_t{count} * channels_per_row_ * values);
    read_values(from, offset, coding_, mixed_);
    for (uint32_t part = 0; part < channels_per_row_; ++part) {
        const size_t channel = size_t{first_channel} + part;
        int16_t* to = frame.data() + (channel * geometry_.samples + filled) * values;
        const int16_t* next = mixed_.data() + part * values;
        for (size_t sample = 0; sample < count; ++sample) {
            to = std::copy_n(next, values, to);
            next += size_t{channels_per_row_} * values;
        }
    }
}

}  // namespace echelle
