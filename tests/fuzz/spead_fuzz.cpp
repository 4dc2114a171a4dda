// Any bytes as SPEAD packets: placed within their datagram, in order, or refused.
#include <cstddef>
#include <cstdint>

#include "coordinator/sources/spead.hpp"
#include "tests/fuzz/datagrams.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    for (const uint64_t heap_step : {1, 4096}) {
        const echelle::SampleLayout layout{1, 1};
        echelle::SpeadFraming framing(layout, heap_step);
        echelle::place_datagrams(bytes, framing, layout);
    }
    return 0;
}
