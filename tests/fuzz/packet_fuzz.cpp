// libFuzzer entry for decode_packet and decode_coded_packet: whatever the bytes, it neither reads
// outside them nor accepts a packet that contradicts them. The CRCs keep a fuzzer out of all that
// stands behind them, so every input is also tried with its CRCs put right.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "common/coded_packet.hpp"
#include "common/crc32.hpp"
#include "common/invariant.hpp"
#include "common/packet.hpp"

namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t zero_at = 85;  // the trailer's bytes that a reader ignores
constexpr size_t zero_bytes = 3;

void put_u32(std::byte* to, uint32_t value) {
    const uint32_t swapped = __builtin_bswap32(value);
    std::memcpy(to, &swapped, sizeof swapped);
}

uint32_t get_u32(const std::byte* from) {
    uint32_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return __builtin_bswap32(value);
}

// Writes the right CRCs of header, data and trailer wherever the input has room for them.
void put_crcs_right(Bytes& bytes) {
    if (bytes.size() < echelle::packet_header_bytes) {
        return;
    }
    put_u32(bytes.data() + 16, echelle::crc32(std::span(bytes).first(16)));
    const uint64_t data_bytes = uint64_t{4} * get_u32(bytes.data() + 12);
    const uint64_t trailer_at = echelle::packet_header_bytes + data_bytes;
    if (trailer_at + echelle::packet_trailer_bytes > bytes.size()) {
        return;
    }
    const auto data = std::span(bytes).subspan(echelle::packet_header_bytes, data_bytes);
    put_u32(bytes.data() + trailer_at + 104, echelle::crc32(data));
    const auto covered = std::span(bytes).subspan(trailer_at, bytes.size() - trailer_at - 4);
    put_u32(bytes.data() + bytes.size() - 4, echelle::crc32(covered));
}

// Sealed anew from what was read, a packet of a version that we write has the bytes that were read.
void check_sealed_again(std::span<const std::byte> bytes, const echelle::PacketView& view) {
    std::vector<float> storage((bytes.size() + 3) / 4);
    const auto packet = std::as_writable_bytes(std::span(storage)).first(bytes.size());
    const auto values = echelle::packet_data(packet, view.header.fft_size);
    if (!values.empty()) {
        std::memcpy(values.data(), view.data.data(), view.data.size());
    }
    if (!view.has_trailer) {
        echelle::seal_packet_1_0(packet, view.header);
        ECHELLE_INVARIANT(std::memcmp(packet.data(), bytes.data(), bytes.size()) == 0);
        return;
    }
    echelle::seal_packet_1_1(packet, view.header, view.trailer);
    const size_t trailer_at = echelle::packet_bytes_1_0(view.header.fft_size);
    const std::byte* ignored = bytes.data() + trailer_at + zero_at;
    const bool zero = std::count(ignored, ignored + zero_bytes, std::byte{0}) == zero_bytes;
    const size_t compared = zero ? bytes.size() : trailer_at + zero_at;
    ECHELLE_INVARIANT(std::memcmp(packet.data(), bytes.data(), compared) == 0);
}

void check_accepted(std::span<const std::byte> bytes, const echelle::PacketView& view) {
    const size_t count = view.header.fft_size;
    ECHELLE_INVARIANT(view.header.version >> 16 == 1);
    ECHELLE_INVARIANT(view.data.size() == 4 * count);
    ECHELLE_INVARIANT(view.data.data() == bytes.data() + echelle::packet_header_bytes);
    ECHELLE_INVARIANT(view.has_trailer == (view.header.version != echelle::packet_version_1_0));
    const size_t least = view.has_trailer ? echelle::packet_bytes_1_1(view.header.fft_size)
                                          : echelle::packet_bytes_1_0(view.header.fft_size);
    ECHELLE_INVARIANT(bytes.size() >= least);
    for (size_t index = 0; index < count; ++index) {
        const volatile float value = view.value(index);  // a sanitizer sees every one read
        static_cast<void>(value);
    }
    const bool as_we_write_it =
        view.header.version <= echelle::packet_version_1_1 && bytes.size() == least;
    if (as_we_write_it) {
        check_sealed_again(bytes, view);
    }
    // A packet is never also a shorter or a longer one.
    echelle::PacketView other;
    ECHELLE_INVARIANT(echelle::decode_packet(bytes.first(bytes.size() - 1), other) ==
                      echelle::PacketError::too_short);
    Bytes longer(bytes.begin(), bytes.end());
    longer.push_back(std::byte{0});
    ECHELLE_INVARIANT(echelle::decode_packet(longer, other) == echelle::PacketError::too_long);
}

// The same for a packet of version 2.x, where its coding block says how long its data are.
void put_coded_crcs_right(Bytes& bytes) {
    constexpr size_t data_at = echelle::packet_header_bytes + echelle::packet_coding_bytes;
    if (bytes.size() < data_at) {
        return;
    }
    put_u32(bytes.data() + 16, echelle::crc32(std::span(bytes).first(16)));
    put_u32(bytes.data() + 32, echelle::crc32(std::span(bytes).subspan(20, 12)));
    const uint64_t value_bytes = get_u32(bytes.data() + 20) & 0xFFFF;
    const uint64_t trailer_at = data_at + value_bytes * get_u32(bytes.data() + 12);
    if (trailer_at + echelle::packet_trailer_bytes > bytes.size()) {
        return;
    }
    const auto data = std::span(bytes).subspan(data_at, trailer_at - data_at);
    put_u32(bytes.data() + trailer_at + 104, echelle::crc32(data));
    const auto covered = std::span(bytes).subspan(trailer_at, bytes.size() - trailer_at - 4);
    put_u32(bytes.data() + bytes.size() - 4, echelle::crc32(covered));
}

void check_coded(std::span<const std::byte> bytes, const echelle::CodedPacketView& view) {
    ECHELLE_INVARIANT(view.header.version >> 16 == 2);
    ECHELLE_INVARIANT(view.data.size() ==
                      echelle::bytes_per_value(view.coding) * view.header.fft_size);
    std::vector<float> values(view.header.fft_size);
    view.values(values);
    echelle::CodedPacketView other;
    ECHELLE_INVARIANT(echelle::decode_coded_packet(bytes.first(bytes.size() - 1), other) ==
                      echelle::PacketError::too_short);
}

void try_bytes(std::span<const std::byte> bytes) {
    echelle::CodedPacketView coded;
    if (echelle::decode_coded_packet(bytes, coded) == echelle::PacketError::none) {
        check_coded(bytes, coded);
    }
    echelle::PacketView view;
    if (echelle::decode_packet(bytes, view) == echelle::PacketError::none) {
        check_accepted(bytes, view);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto input = std::as_bytes(std::span(data, size));
    try_bytes(input);
    Bytes bytes(input.begin(), input.end());
    put_crcs_right(bytes);
    try_bytes(bytes);
    bytes.assign(input.begin(), input.end());
    put_coded_crcs_right(bytes);
    try_bytes(bytes);
    return 0;
}
