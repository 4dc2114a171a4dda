// Any bytes as a captured packet of each link type: a payload within it, or a fault.
#include <cstddef>
#include <cstdint>
#include <span>

#include "coordinator/sources/captured_udp.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::LinkType;
    using echelle::require;
    const auto bytes = std::as_bytes(std::span(data, size));
    for (const LinkType link : {LinkType::ethernet, LinkType::linux_sll, LinkType::linux_sll2,
                                LinkType::raw_ip, LinkType::loopback}) {
        echelle::CapturedUdp udp;
        require(find_udp(link, bytes, size + 1, udp) == echelle::CaptureFault::truncated);
        if (find_udp(link, bytes, size, udp) == echelle::CaptureFault::none) {
            require(udp.payload.data() >= bytes.data() &&
                    udp.payload.data() + udp.payload.size() <= bytes.data() + size);
            require(udp.destination.size() == 4 || udp.destination.size() == 16);
        }
    }
    return 0;
}
