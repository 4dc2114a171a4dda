// Any bytes as VITA 49 packets: placed within their datagram, in order, or refused.
#include <cstddef>
#include <cstdint>

#include "coordinator/sources/vita49.hpp"
#include "tests/fuzz/datagrams.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    for (const echelle::Rational rate : {echelle::Rational{10'000'000, 1}, {200, 3}}) {
        const echelle::SampleLayout layout{1, 1};
        echelle::Vita49Framing framing(layout, rate, std::nullopt);
        echelle::place_datagrams(bytes, framing, layout);
    }
    return 0;
}
