#include "common/coded_packet.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/crc32.hpp"
#include "common/invariant.hpp"
#include "common/packet_fields.hpp"

namespace echelle {
namespace {

constexpr size_t coding_at = packet_header_bytes;
constexpr size_t data_at = packet_header_bytes + packet_coding_bytes;
constexpr size_t coding_crc_at = 12;  // in the coding block

// ---- float16: IEEE 754 binary16, rounded to nearest even

uint16_t float16_of(float value) {
    constexpr uint32_t infinity = 0x7F800000;
    constexpr uint32_t too_large = (127 + 16) << 23;
    constexpr uint32_t smallest_normal = (127 - 14) << 23;
    constexpr uint32_t half = 126 << 23;  // adding 0.5 leaves a subnormal's bits in the last ten
    uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits & 0x80000000;
    bits ^= sign;
    uint32_t rounded = 0;
    if (bits >= too_large) {
        rounded = bits > infinity ? 0x7E00 : 0x7C00;
    } else if (bits < smallest_normal) {
        rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5F) - half;
    } else {
        const uint32_t odd = bits >> 13 & 1;
        rounded = (bits - ((127 - 15) << 23) + 0xFFF + odd) >> 13;
    }
    return static_cast<uint16_t>(rounded | sign >> 16);
}

float float_of(uint16_t half) {
    constexpr uint32_t exponent_mask = 0x7C00 << 13;
    const uint32_t sign = uint32_t{half} << 16 & 0x80000000;
    uint32_t bits = uint32_t{half} << 13 & 0x0FFFE000;
    const uint32_t exponent = bits & exponent_mask;
    bits += (127 - 15) << 23;
    if (exponent == exponent_mask) {
        bits += (128 - 16) << 23;  // infinity or NaN
    } else if (exponent == 0) {
        constexpr uint32_t first_normal = 113 << 23;
        bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits + (1U << 23)) -
                                       std::bit_cast<float>(first_normal));
    }
    return std::bit_cast<float>(bits | sign);
}

// The largest finite magnitude; 0 when there is none.
float largest_of(std::span<const float> values) {
    float largest = 0;
    for (const float value : values) {
        const float magnitude = std::fabs(value);
        largest =
            magnitude <= std::numeric_limits<float>::max() ? std::max(largest, magnitude) : largest;
    }
    return largest;
}

// A power of two; its inverse is a normal float too.
float float16_step(float largest) {
    constexpr int largest_exponent = 14;  // 2^15 and above could round up to infinity
    return largest == 0 ? 1.0F
                        : std::ldexp(1.0F, std::max(std::ilogb(largest) - largest_exponent, -126));
}

void encode_float16(std::span<const float> values, float step, std::byte* to) {
    const float inverse = 1.0F / step;
    for (const float value : values) {
        const uint16_t half = float16_of(value * inverse);
        std::memcpy(to, &half, sizeof half);
        to += sizeof half;
    }
}

// ---- 8-bit decibels

constexpr float decibel_step = 0.5F;
constexpr int least_code = 1;  // 0: zero, or too small
constexpr int most_code = 254;
constexpr uint8_t not_finite = 255;

// On the grid of half decibels, such that the largest value has the largest code.
float decibel_offset(float largest) {
    const double decibels = largest > 0 ? 10.0 * std::log10(static_cast<double>(largest)) : 0.0;
    const double step = decibel_step;
    return static_cast<float>(std::ceil(decibels / step) * step - most_code * step);
}

void encode_decibel8(std::span<const float> values, float offset, std::byte* to) {
    constexpr float steps_per_octave = 3.01029996F / decibel_step;  // 10 log10(2)
    const float first = offset / decibel_step;
    for (const float value : values) {
        uint8_t code = 0;
        if (!std::isfinite(value)) {
            code = not_finite;
        } else if (value > 0) {
            const long nearest = std::lrint(steps_per_octave * std::log2(value) - first);
            code = nearest < least_code ? uint8_t{0}
                                        : static_cast<uint8_t>(std::min(nearest, long{most_code}));
        }
        *to++ = std::byte{code};
    }
}

std::array<float, 256> decibel_values(float offset, float step) {
    std::array<float, 256> values{};
    for (int code = least_code; code <= most_code; ++code) {
        const double value =
            std::pow(10.0, (static_cast<double>(offset) + static_cast<double>(step) * code) / 10.0);
        values[static_cast<size_t>(code)] =
            static_cast<float>(std::min<double>(value, std::numeric_limits<float>::max()));
    }
    values[not_finite] = std::numeric_limits<float>::quiet_NaN();
    return values;
}

bool is_known(PacketCoding coding, uint16_t value_bytes) {
    return (coding == PacketCoding::float16 || coding == PacketCoding::decibel8) &&
           value_bytes == bytes_per_value(coding);
}

}  // namespace

void encode_coded_packet(std::span<const std::byte> packet_1_1, PacketCoding coding,
                         std::span<std::byte> to) {
    const SealedPacket sealed = read_sealed(packet_1_1);
    const uint32_t fft_size = sealed.header.fft_size;
    ECHELLE_INVARIANT(packet_1_1.size() == packet_bytes_1_1(fft_size));
    ECHELLE_INVARIANT(to.size() == coded_packet_bytes(coding, fft_size));
    const std::byte* floats = packet_1_1.data() + packet_header_bytes;
    ECHELLE_INVARIANT(std::bit_cast<uintptr_t>(floats) % alignof(float) == 0);
    const std::span<const float> values(reinterpret_cast<const float*>(floats), fft_size);

    const float largest = largest_of(values);
    const bool is_float16 = coding == PacketCoding::float16;
    const float offset = is_float16 ? 0.0F : decibel_offset(largest);
    const float step = is_float16 ? float16_step(largest) : decibel_step;
    const auto data = to.subspan(data_at, bytes_per_value(coding) * fft_size);
    if (is_float16) {
        encode_float16(values, step, data.data());
    } else {
        encode_decibel8(values, offset, data.data());
    }
    write_header(to.data(), sealed.header, packet_version_2_0);
    std::byte* block = to.data() + coding_at;
    store_big(block, coding);
    store_big(block + 2, static_cast<uint16_t>(bytes_per_value(coding)));
    store_big(block + 4, offset);
    store_big(block + 8, step);
    store_big(block + coding_crc_at, crc32({block, coding_crc_at}));
    write_trailer(data.data() + data.size(), sealed.trailer, crc32(data));
}

void CodedPacketView::values(std::span<float> to) const {
    ECHELLE_INVARIANT(to.size() == header.fft_size);
    if (coding == PacketCoding::float16) {
        for (size_t i = 0; i < to.size(); ++i) {
            uint16_t half = 0;
            std::memcpy(&half, data.data() + i * sizeof half, sizeof half);
            to[i] = step * float_of(half);
        }
        return;
    }
    const std::array<float, 256> table = decibel_values(offset, step);
    for (size_t i = 0; i < to.size(); ++i) {
        to[i] = table[std::to_integer<size_t>(data[i])];
    }
}

PacketError decode_coded_packet(std::span<const std::byte> bytes, CodedPacketView& view) {
    if (bytes.size() < packet_header_bytes) {
        return PacketError::too_short;
    }
    if (!header_is_intact(bytes.data())) {
        return PacketError::bad_crc;
    }
    CodedPacketView read;
    read.header = read_header(bytes.data());
    if (major_of(read.header.version) != 2) {
        return PacketError::unknown_major;
    }
    if (bytes.size() < data_at) {
        return PacketError::too_short;
    }
    const std::byte* block = bytes.data() + coding_at;
    if (load_big<uint32_t>(block + coding_crc_at) != crc32({block, coding_crc_at})) {
        return PacketError::bad_crc;
    }
    read.coding = load_big<PacketCoding>(block);
    if (!is_known(read.coding, load_big<uint16_t>(block + 2))) {
        return PacketError::unknown_coding;
    }
    read.offset = load_big<float>(block + 4);
    read.step = load_big<float>(block + 8);
    const auto body = bytes.subspan(data_at);
    if (read.header.fft_size > body.size() / bytes_per_value(read.coding)) {
        return PacketError::too_short;
    }
    read.data = body.first(bytes_per_value(read.coding) * read.header.fft_size);
    const auto rest = body.subspan(read.data.size());
    if (const PacketError error = check_trailer(rest); error != PacketError::none) {
        return error;
    }
    read.trailer = read_trailer(rest.data());
    if (read.trailer.data_crc32 != crc32(read.data)) {
        return PacketError::bad_crc;
    }
    view = read;
    return PacketError::none;
}

}  // namespace echelle
