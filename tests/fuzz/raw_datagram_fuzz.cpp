// Any bytes as datagrams with a header and as the words that describe it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "coordinator/sources/raw_datagram.hpp"
#include "tests/fuzz/datagrams.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    const echelle::SampleLayout layout{1, 2};
    for (const std::string_view sequence : {"u16be", "u32le@1", "u64be@2"}) {
        for (const uint64_t step : {1, 100}) {
            const auto field = echelle::SequenceField::parse(sequence);
            echelle::RawFraming framing(layout,
                                        {static_cast<uint32_t>(field.end() + 1), field, step});
            echelle::place_datagrams(bytes, framing, layout);
        }
    }
    echelle::refused_in_one_line([data, size] {
        const std::string_view text(reinterpret_cast<const char*>(data), size);
        if (text.size() < 20 && text.find('\n') == std::string_view::npos) {
            const auto field = echelle::SequenceField::parse(text);
            echelle::require(field.end() <= 65'008);
        }
    });
    return 0;
}
