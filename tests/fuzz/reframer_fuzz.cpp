// Any bytes, in pieces of any size, as what a card sends: every byte is part of a frame or counted
// as skipped, a frame that comes out has the checksums that it says, and all of it ends.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/crc32.hpp"
#include "coordinator/sources/reframer.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace echelle;

// The first two bytes choose the shape; frames are small, so that whole ones fit an input.
CardFrameHeader shape_of(const uint8_t* data) {
    CardFrameHeader shape;
    shape.flags = (data[0] & 1) != 0 ? card_has_trailer : 0U;
    shape.header_bytes = (data[0] & 2) != 0 ? 128 : 64;
    shape.geometry = {1U + (data[0] >> 2) % 4, 8, SampleFormat::i16, Layout::sample_major};
    return shape;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) {
        return 0;
    }
    const CardFrameHeader shape = shape_of(data);
    const size_t piece = 1 + data[1];
    Reframer reframer(shape);
    std::vector<std::byte> place(reframer.wire_bytes());
    reframer.assemble_in(place);
    uint64_t frames = 0;
    size_t at = 2;
    while (at < size) {
        const size_t count = std::min({piece, size - at, reframer.rest().size()});
        require(count > 0);
        std::memcpy(reframer.rest().data(), data + at, count);
        at += count;
        reframer.filled(count);
        Reframer::Event event{};
        while ((event = reframer.advance()) != Reframer::Event::more) {
            if (event != Reframer::Event::frame) {
                continue;
            }
            CardFrameHeader header;
            require(parse_card_header(place, header) == CardFrameVerdict::good);
            require(header.geometry == shape.geometry);
            if (shape.has_trailer()) {
                const auto all = std::span<const std::byte>(place);
                CardFrameTrailer trailer;
                require(parse_card_trailer(all.last(card_trailer_bytes), trailer) ==
                        CardFrameVerdict::good);
                require(crc32(all.subspan(shape.header_bytes, shape.geometry.frame_bytes())) ==
                        trailer.data_crc);
            }
            ++frames;
            reframer.next();
            reframer.assemble_in(place);
            break;
        }
    }
    reframer.give_up();
    require(reframer.counts().skipped_bytes + frames * reframer.wire_bytes() == size - 2);
    return 0;
}

// Libfuzzer cannot guess checksums: a mutated header gets a right one, now and then.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                          unsigned int seed) {
    size = LLVMFuzzerMutate(data, size, most);
    if (seed % 2 != 0 || size < 4) {
        return size;
    }
    const CardFrameHeader shape = shape_of(data);
    const size_t wire = card_frame_bytes(shape);
    const size_t at = 2 + seed / 2 % (size - 2);
    if (at + wire > most) {
        return size;
    }
    if (at + wire > size) {
        std::memset(data + size, 0, at + wire - size);
        size = at + wire;
    }
    CardFrameHeader header = shape;
    header.sequence = seed;
    const std::span<std::byte> frame(reinterpret_cast<std::byte*>(data + at), wire);
    write_card_header(header, frame);
    if (shape.has_trailer()) {
        const auto payload = frame.subspan(shape.header_bytes, shape.geometry.frame_bytes());
        write_card_trailer({crc32(payload), 0, header.sequence}, frame.last(card_trailer_bytes));
    }
    return size;
}
