// Any bytes as a GUPPI raw header: a checked struct or a UsageError of one line. What comes out
// must be safe to calculate with.
#include <cstdint>
#include <string_view>

#include "coordinator/sources/guppi_header.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    echelle::looks_like_guppi(bytes);
    echelle::refused_in_one_line([bytes] {
        const echelle::GuppiHeader header = echelle::parse_guppi_header(bytes, 0, "fuzz.raw");
        require(header.header_bytes <= bytes.size() + 512 && echelle::has_guppi_end(bytes));
        require(header.channels * header.polarisations <= 65'536 && header.channels > 0);
        require(header.block_samples() > header.overlap && header.rate.is_positive());
        require(header.block_samples() * header.sample_bytes() == header.block_bytes);
        header.first_sample();
    });
    return 0;
}
