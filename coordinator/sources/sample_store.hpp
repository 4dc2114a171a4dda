// Where a recording's samples are had from. Read by the source's thread alone, after opening.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/frame.hpp"
#include "coordinator/sources/sample_file.hpp"
#include "coordinator/sources/sample_pieces.hpp"

namespace echelle {

class SampleStore {
  public:
    virtual ~SampleStore() = default;

    // Puts `count` samples of every channel, from the piece's sample `first` on, behind the
    // `filled` samples that the frame already has. Throws RunError.
    virtual void read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
                      std::span<int16_t> frame) = 0;
};

// Integers at positions of one or several files. In each block:
//   [sample][channel]                     channels_per_row = channels
//   [channel][sample]                     channels_per_row = 1
//   [channel / p][sample][channel % p]    channels_per_row = p
// each with re, im behind the sample when complex. The ring's layout is sample-major for the first
// and channel-major for the others.
class FileStore : public SampleStore {
  public:
    FileStore(RegularFile file, const FrameGeometry& geometry, ValueCoding coding,
              uint32_t channels_per_row);
    // Several files, opened one by one as they are read.
    FileStore(std::vector<std::string> paths, const FrameGeometry& geometry, ValueCoding coding,
              uint32_t channels_per_row);

    void read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
              std::span<int16_t> frame) override;

  private:
    const RegularFile& file(uint32_t index);
    // Samples of one block that begins at `offset` and has rows of `row_samples`.
    struct BlockPart {
        uint64_t offset = 0;
        uint64_t row_samples = 0;
        uint64_t first = 0;
        uint32_t count = 0;
    };
    BlockPart part_of(const SamplePiece& piece, uint64_t first, uint32_t count) const;
    void read_part(const RegularFile& from, const BlockPart& part, uint32_t filled,
                   std::span<int16_t> frame);
    // A row of several channels, taken apart into the frame's rows of one channel.
    void read_mixed_row(const RegularFile& from, uint64_t offset, uint32_t count,
                        uint32_t first_channel, uint32_t filled, std::span<int16_t> frame);

    std::vector<std::string> paths_;
    std::optional<RegularFile> file_;  // the one that was read last
    uint32_t file_index_ = 0;
    FrameGeometry geometry_;
    ValueCoding coding_;
    uint32_t channels_per_row_;
    std::vector<int16_t> mixed_;
};

}  // namespace echelle
