// Any bytes as SPEAD packets, and any small numbers in sound ones: placed within their datagram, in
// order, or refused.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coordinator/sources/spead.hpp"
#include "tests/fuzz/datagrams.hpp"

namespace {

// Four bytes each say heap count, heap length, payload offset and payload length.
std::vector<std::byte> sound_packets(const uint8_t* data, size_t size) {
    std::vector<std::byte> bytes;
    const auto put = [&bytes](uint64_t value) {
        for (int shift = 56; shift >= 0; shift -= 8) {
            bytes.push_back(static_cast<std::byte>(value >> shift));
        }
    };
    constexpr uint64_t header_bytes = 40;
    for (size_t at = 0; at + 4 <= size; at += 4) {
        const uint64_t payload = data[at + 3] % 64;
        bytes.push_back(static_cast<std::byte>(header_bytes + payload));
        put(0x5304'0206'0000'0004);
        put(uint64_t{0x8001} << 48 | data[at]);
        put(uint64_t{0x8002} << 48 | data[at + 1]);
        put(uint64_t{0x8003} << 48 | data[at + 2]);
        put(uint64_t{0x8004} << 48 | payload);
        bytes.insert(bytes.end(), payload, std::byte{7});
    }
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<std::byte> sound = sound_packets(data, std::min<size_t>(size, 4096));
    for (const auto bytes :
         {std::as_bytes(std::span(data, size)), std::span<const std::byte>(sound)}) {
        for (const uint64_t heap_step : {1, 3}) {
            const echelle::SampleLayout layout{1, 1};
            echelle::SpeadFraming framing(layout, heap_step);
            echelle::place_datagrams(bytes, framing, layout);
        }
    }
    return 0;
}
