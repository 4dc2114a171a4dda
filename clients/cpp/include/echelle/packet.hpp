// Reads SpectrumPackets: one channel's spectrum each, with where, when and how it was made.
// Echelle's docs/packet.md defines every byte. MIT licence; shares no code with the coordinator.
//
// A packet refers to the bytes that it was decoded from, and copies nothing. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace echelle::client {

// The ways in which bytes are not a packet.
class PacketError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};
class PacketTooShort : public PacketError {  // fewer bytes than the packet says
  public:
    using PacketError::PacketError;
};
class PacketTooLong : public PacketError {  // more bytes than it says
  public:
    using PacketError::PacketError;
};
class PacketBadCrc : public PacketError {  // damaged bytes
  public:
    using PacketError::PacketError;
};
class PacketUnknownMajor : public PacketError {  // a major version that the reader does not know
  public:
    using PacketError::PacketError;
};
class PacketBadTrailer : public PacketError {  // 1.1 or later without a trailer of its kind
  public:
    using PacketError::PacketError;
};
class PacketUnknownCoding : public PacketError {  // 2.x with values coded in an unknown way
  public:
    using PacketError::PacketError;
};

namespace flag {
inline constexpr uint16_t gap_before = 1;  // samples are missing in or before this spectrum
inline constexpr uint16_t incomplete = 2;  // fewer segments averaged than expected
inline constexpr uint16_t over_range = 4;  // over_range_count is not 0
inline constexpr uint16_t two_sided = 8;   // a complex channel: DC in the middle
inline constexpr uint16_t volts = 16;      // V^2/Hz or V^2, else counts^2/Hz or counts^2
inline constexpr uint16_t partial = 32;    // a part of an integration
}  // namespace flag

struct Rational {
    uint64_t numerator = 0;
    uint64_t denominator = 1;
    double value() const {
        return static_cast<double>(numerator) / static_cast<double>(denominator);
    }
};

// What 1.1 added. Numbers that a later version may define are kept as they are.
struct Trailer {
    uint16_t flags = 0;
    uint64_t sequence = 0;      // counts the spectra of this channel from 0
    int64_t timestamp_ns = 0;   // Unix time of the first sample
    uint64_t first_sample = 0;  // its index in the stream
    Rational rate;              // samples per second
    double first_bin_hz = 0;
    double bin_spacing_hz = 0;
    uint32_t nperseg = 0;
    uint32_t noverlap = 0;
    uint32_t segments_averaged = 0;
    uint32_t segments_expected = 0;
    uint16_t window = 0;  // 0 boxcar, 1 hann, 2 hamming, … (docs/packet.md)
    uint8_t scaling = 0;  // 0 density, 1 spectrum
    uint8_t detrend = 0;  // 0 none, 1 constant
    uint8_t average = 0;  // 0 mean, 1 median, 2 max
    float mean = 0;       // counts or volts
    float rms = 0;
    uint32_t over_range_count = 0;
    uint32_t worker = 0xFFFFFFFF;
    uint32_t data_crc32 = 0;
};

enum class Coding : uint16_t { float32 = 0, float16 = 1, decibel8 = 2 };

struct SpectrumPacket {
    uint32_t version = 0;       // major in the high 16 bits, minor in the low
    uint32_t timestamp_us = 0;  // low 32 bits of microseconds since the Unix epoch
    uint32_t channel_id = 0;
    uint32_t fft_size = 0;  // the number of values
    std::span<const std::byte> data;
    std::optional<Trailer> trailer;  // not in 1.0
    Coding coding = Coding::float32;
    float offset = 0;  // of 2.x: docs/packet.md
    float step = 1;

    // All values in unit(), decoded where they are coded; `to` holds fft_size.
    void copy_values(std::span<float> to) const;
    std::vector<float> values() const;
    // Frequency of value `index`, Hz. Throws std::logic_error for version 1.0.
    double frequency(size_t index) const;
    // "counts^2/Hz", "V^2" …; empty for version 1.0.
    std::string unit() const;
};

// Reads exactly one packet of version 1.x, or of 2.x. Throws a PacketError.
SpectrumPacket decode_packet(std::span<const std::byte> bytes);
SpectrumPacket decode_coded_packet(std::span<const std::byte> bytes);

}  // namespace echelle::client
