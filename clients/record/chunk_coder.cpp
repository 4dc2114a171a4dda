#include "clients/record/chunk_coder.hpp"

#include <bit>

#include <libdeflate.h>

#include "common/error.hpp"

namespace echelle::record {
namespace {

// The second filter of the file's pipeline.
constexpr uint32_t without_deflate = 1U << 1;

// HDF5's shuffle: all first bytes, then all second ones … of the file's little-endian values.
void shuffle(std::span<const float> values, std::byte* to) {
    const size_t count = values.size();
    for (size_t i = 0; i < count; ++i) {
        const auto bits = std::bit_cast<uint32_t>(values[i]);
        to[i] = static_cast<std::byte>(bits & 0xFF);
        to[count + i] = static_cast<std::byte>(bits >> 8 & 0xFF);
        to[2 * count + i] = static_cast<std::byte>(bits >> 16 & 0xFF);
        to[3 * count + i] = static_cast<std::byte>(bits >> 24);
    }
}

}  // namespace

void ChunkCoder::Free::operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
}

ChunkCoder::ChunkCoder(unsigned int level) {
    if (level > 0) {
        compressor_.reset(libdeflate_alloc_compressor(static_cast<int>(level)));
        if (!compressor_) {
            throw RunError("no memory to compress with level " + std::to_string(level));
        }
    }
}

CodedChunk ChunkCoder::encode(std::span<const float> values) {
    static_assert(std::endian::native == std::endian::little);
    if (!compressor_) {
        return {std::as_bytes(values), 0};
    }
    const size_t bytes = values.size_bytes();
    shuffled_.resize(bytes);
    deflated_.resize(bytes);
    shuffle(values, shuffled_.data());
    const size_t got = libdeflate_zlib_compress(compressor_.get(), shuffled_.data(), bytes,
                                                deflated_.data(), bytes);
    if (got == 0) {  // it would not become smaller
        return {shuffled_, without_deflate};
    }
    return {std::span(deflated_).first(got), 0};
}

}  // namespace echelle::record
