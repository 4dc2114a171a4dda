// Any bytes as a SigMF collection: names of recordings beside it, or a UsageError of one line.
#include <cstdint>
#include <string_view>

#include "coordinator/sources/sigmf_collection.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    echelle::refused_in_one_line([text] {
        const auto streams = echelle::parse_sigmf_collection(text, "fuzz.sigmf-collection");
        require(!streams.empty());
        for (const echelle::SigmfStream& stream : streams) {
            require(stream.name.find('/') == std::string::npos);
        }
    });
    return 0;
}
