#include "echelle/packet.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <libdeflate.h>

namespace echelle::client {
namespace {

constexpr size_t header_bytes = 20;
constexpr size_t coding_bytes = 16;
constexpr size_t trailer_bytes = 112;
constexpr uint32_t trailer_magic = 0x45434831;  // "ECH1"

// Takes big-endian fields one after the other; the caller has checked that they are there.
class Fields {
  public:
    explicit Fields(const std::byte* at) : at_(at) {}
    template <typename Unsigned>
    Unsigned take() {
        uint64_t value = 0;
        for (size_t i = 0; i < sizeof(Unsigned); ++i) {
            value = value << 8 | std::to_integer<uint64_t>(*at_++);
        }
        return static_cast<Unsigned>(value);
    }
    float take_float() { return std::bit_cast<float>(take<uint32_t>()); }
    double take_double() { return std::bit_cast<double>(take<uint64_t>()); }
    void skip(size_t bytes) { at_ += bytes; }

  private:
    const std::byte* at_;
};

uint32_t crc_of(std::span<const std::byte> bytes) {
    return libdeflate_crc32(0, bytes.data(), bytes.size());
}

std::string count_of(std::span<const std::byte> bytes) {
    return std::to_string(bytes.size()) + " bytes";
}

SpectrumPacket read_header(std::span<const std::byte> bytes, uint32_t major) {
    if (bytes.size() < header_bytes) {
        throw PacketTooShort("packet too short: " + count_of(bytes) + ", a header has 20");
    }
    Fields fields(bytes.data());
    SpectrumPacket packet;
    packet.version = fields.take<uint32_t>();
    packet.timestamp_us = fields.take<uint32_t>();
    packet.channel_id = fields.take<uint32_t>();
    packet.fft_size = fields.take<uint32_t>();
    if (fields.take<uint32_t>() != crc_of(bytes.first(16))) {
        throw PacketBadCrc("bad CRC: the packet's header is damaged");
    }
    if (packet.version >> 16 != major) {
        throw PacketUnknownMajor("unknown version " + std::to_string(packet.version >> 16) + "." +
                                 std::to_string(packet.version & 0xFFFF) + ": this reader knows " +
                                 std::to_string(major) + ".x");
    }
    return packet;
}

// Takes the data from the body and answers what stands behind them.
std::span<const std::byte> take_data(SpectrumPacket& packet, std::span<const std::byte> body,
                                     size_t value_bytes) {
    if (packet.fft_size > body.size() / value_bytes) {
        throw PacketTooShort("packet too short: " + count_of(body) + " for " +
                             std::to_string(packet.fft_size) + " values");
    }
    packet.data = body.first(value_bytes * packet.fft_size);
    return body.subspan(packet.data.size());
}

void check_trailer(std::span<const std::byte> bytes) {
    if (bytes.size() < 6) {
        throw PacketTooShort("packet too short: " + count_of(bytes) +
                             " after the data, a trailer has 112");
    }
    Fields fields(bytes.data());
    const auto magic = fields.take<uint32_t>();
    const size_t length = fields.take<uint16_t>();
    if (magic != trailer_magic || length < trailer_bytes) {
        throw PacketBadTrailer("bad trailer: not ECH1 with 112 bytes or more");
    }
    if (bytes.size() < length) {
        throw PacketTooShort("packet too short: its trailer is cut off");
    }
    if (bytes.size() > length) {
        throw PacketTooLong("packet too long: bytes follow its trailer");
    }
    Fields crc(bytes.data() + length - 4);
    if (crc.take<uint32_t>() != crc_of(bytes.first(length - 4))) {
        throw PacketBadCrc("bad CRC: the packet's trailer is damaged");
    }
}

Trailer read_trailer(std::span<const std::byte> bytes) {
    Fields fields(bytes.data() + 6);
    Trailer trailer;
    trailer.flags = fields.take<uint16_t>();
    trailer.sequence = fields.take<uint64_t>();
    trailer.timestamp_ns = std::bit_cast<int64_t>(fields.take<uint64_t>());
    trailer.first_sample = fields.take<uint64_t>();
    trailer.rate.numerator = fields.take<uint64_t>();
    trailer.rate.denominator = fields.take<uint64_t>();
    trailer.first_bin_hz = fields.take_double();
    trailer.bin_spacing_hz = fields.take_double();
    trailer.nperseg = fields.take<uint32_t>();
    trailer.noverlap = fields.take<uint32_t>();
    trailer.segments_averaged = fields.take<uint32_t>();
    trailer.segments_expected = fields.take<uint32_t>();
    trailer.window = fields.take<uint16_t>();
    trailer.scaling = fields.take<uint8_t>();
    trailer.detrend = fields.take<uint8_t>();
    trailer.average = fields.take<uint8_t>();
    fields.skip(3);
    trailer.mean = fields.take_float();
    trailer.rms = fields.take_float();
    trailer.over_range_count = fields.take<uint32_t>();
    trailer.worker = fields.take<uint32_t>();
    trailer.data_crc32 = fields.take<uint32_t>();
    return trailer;
}

void take_trailer(SpectrumPacket& packet, std::span<const std::byte> rest) {
    check_trailer(rest);
    packet.trailer = read_trailer(rest);
    if (packet.trailer->data_crc32 != crc_of(packet.data)) {
        throw PacketBadCrc("bad CRC: the packet's data are damaged");
    }
}

// IEEE 754 binary16.
float float_of_half(uint16_t half) {
    const int exponent = half >> 10 & 0x1F;
    const int fraction = half & 0x3FF;
    const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
        return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                             : std::numeric_limits<float>::quiet_NaN();
    }
    return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                 : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

float float_of_decibels(unsigned code, float offset, float step) {
    if (code == 0 || code == 255) {
        return code == 0 ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    }
    const double decibels = static_cast<double>(offset) + static_cast<double>(step) * code;
    return static_cast<float>(
        std::min<double>(std::pow(10.0, decibels / 10), std::numeric_limits<float>::max()));
}

}  // namespace

SpectrumPacket decode_packet(std::span<const std::byte> bytes) {
    SpectrumPacket packet = read_header(bytes, 1);
    const auto rest = take_data(packet, bytes.subspan(header_bytes), sizeof(float));
    if ((packet.version & 0xFFFF) != 0) {
        take_trailer(packet, rest);
    } else if (!rest.empty()) {
        throw PacketTooLong("packet too long: bytes follow its values");
    }
    return packet;
}

SpectrumPacket decode_coded_packet(std::span<const std::byte> bytes) {
    SpectrumPacket packet = read_header(bytes, 2);
    if (bytes.size() < header_bytes + coding_bytes) {
        throw PacketTooShort("packet too short: " + count_of(bytes) + ", its values begin at 36");
    }
    const auto block = bytes.subspan(header_bytes, coding_bytes);
    Fields fields(block.data());
    packet.coding = static_cast<Coding>(fields.take<uint16_t>());
    const auto value_bytes = fields.take<uint16_t>();
    packet.offset = fields.take_float();
    packet.step = fields.take_float();
    if (fields.take<uint32_t>() != crc_of(block.first(coding_bytes - 4))) {
        throw PacketBadCrc("bad CRC: the packet's coding block is damaged");
    }
    const bool known = (packet.coding == Coding::float16 && value_bytes == 2) ||
                       (packet.coding == Coding::decibel8 && value_bytes == 1);
    if (!known) {
        throw PacketUnknownCoding("unknown coding of " + std::to_string(value_bytes) +
                                  " bytes per value");
    }
    take_trailer(packet,
                 take_data(packet, bytes.subspan(header_bytes + coding_bytes), value_bytes));
    return packet;
}

void SpectrumPacket::copy_values(std::span<float> to) const {
    if (to.size() != fft_size) {
        throw std::invalid_argument("room for " + std::to_string(to.size()) + " values, not " +
                                    std::to_string(fft_size));
    }
    const auto byte_at = [this](size_t at) { return std::to_integer<uint32_t>(data[at]); };
    for (size_t i = 0; i < to.size(); ++i) {
        switch (coding) {
            case Coding::float32:
                to[i] = std::bit_cast<float>(byte_at(4 * i) | byte_at(4 * i + 1) << 8 |
                                             byte_at(4 * i + 2) << 16 | byte_at(4 * i + 3) << 24);
                break;
            case Coding::float16:
                to[i] = step * float_of_half(
                                   static_cast<uint16_t>(byte_at(2 * i) | byte_at(2 * i + 1) << 8));
                break;
            case Coding::decibel8:
                to[i] = float_of_decibels(byte_at(i), offset, step);
                break;
        }
    }
}

std::vector<float> SpectrumPacket::values() const {
    std::vector<float> copied(fft_size);
    copy_values(copied);
    return copied;
}

double SpectrumPacket::frequency(size_t index) const {
    if (!trailer) {
        throw std::logic_error("a packet of version 1.0 does not carry its frequencies");
    }
    return trailer->first_bin_hz + static_cast<double>(index) * trailer->bin_spacing_hz;
}

std::string SpectrumPacket::unit() const {
    if (!trailer) {
        return "";
    }
    const std::string base = (trailer->flags & flag::volts) != 0 ? "V^2" : "counts^2";
    return trailer->scaling == 0 ? base + "/Hz" : base;
}

}  // namespace echelle::client
