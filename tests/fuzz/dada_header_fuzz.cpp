// Any bytes as a PSRDADA header: a checked struct or a UsageError of one line.
#include <cstdint>
#include <string_view>

#include "coordinator/sources/dada_header.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    echelle::looks_like_dada(bytes);
    echelle::refused_in_one_line([bytes] {
        const echelle::DadaHeader header = echelle::parse_dada_header(bytes, "fuzz.dada");
        require(header.header_bytes > 0 && header.header_bytes <= echelle::most_dada_header_bytes);
        require(header.channels * header.polarisations <= 65'536 && header.sample_bytes() > 0);
        require(!header.rate || header.rate->is_positive());
        require(!header.start_ns || header.start_text);
    });
    return 0;
}
