// Any bytes as a BLUE header: a checked struct or a UsageError of one line.
#include <cstdint>
#include <string_view>

#include "coordinator/sources/blue_header.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    echelle::refused_in_one_line([bytes] {
        const echelle::BlueHeader header = echelle::parse_blue_header(bytes, "fuzz.prm");
        require(echelle::looks_like_blue(bytes) && header.rate.is_positive());
        require(header.detached || header.data_start >= echelle::blue_header_bytes);
    });
    return 0;
}
