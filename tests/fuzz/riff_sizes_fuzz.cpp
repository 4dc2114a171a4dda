// Any bytes as a WAV, RF64 or W64 file: what the walk over its chunks finds lies in the file.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "coordinator/sources/riff_sizes.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    size_t reads = 0;
    const auto read = [&](uint64_t offset, std::span<std::byte> bytes) {
        require(++reads < 10'000);
        const size_t there = offset < size ? size - offset : 0;
        const size_t count = std::min(bytes.size(), there);
        if (count > 0) {
            std::memcpy(bytes.data(), data + offset, count);
        }
        return count;
    };
    const std::optional<echelle::RiffSizes> sizes = echelle::read_riff_sizes(read, size);
    if (sizes) {
        require(sizes->data_offset <= size && sizes->accounted_end <= size);
        require(sizes->accounted_end >= sizes->data_offset);
        require(sizes->missing() <= sizes->data_bytes);
        require(sizes->missing() == 0 || sizes->unaccounted() == 0);
    }
    return 0;
}
