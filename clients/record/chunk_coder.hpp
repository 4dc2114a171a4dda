// The bytes of one chunk as HDF5's filters shuffle and deflate make them. They are made here, with
// libdeflate, and handed over whole with H5Dwrite_chunk: the library would call zlib, which is
// slower. Whoever reads needs nothing but the library's own filters. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct libdeflate_compressor;

namespace echelle::record {

struct CodedChunk {
    std::span<const std::byte> bytes;  // valid until the next one is made
    uint32_t filter_mask = 0;          // filters that were left out, as H5Dwrite_chunk wants it
};

class ChunkCoder {
  public:
    // `level` 0: no filters at all; 1 to 9 as gzip's.
    explicit ChunkCoder(unsigned int level);
    CodedChunk encode(std::span<const float> values);

  private:
    struct Free {
        void operator()(libdeflate_compressor* compressor) const;
    };
    std::unique_ptr<libdeflate_compressor, Free> compressor_;
    std::vector<std::byte> shuffled_;
    std::vector<std::byte> deflated_;
};

}  // namespace echelle::record
