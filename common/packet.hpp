// SpectrumPacket: one channel's spectrum on the wire. docs/packet.md defines every byte; this room
// writes and reads it. Version 1.0 is header + data; 1.1 appends a trailer.
//
//   byte 0    header, 20 bytes, big-endian
//   byte 20   fft_size little-endian float32 values
//   then      (1.1) trailer, 112 bytes, big-endian
//
// Nothing here allocates, and nothing trusts a length it has read. Any thread may call anything;
// a PacketView refers to the caller's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/rational.hpp"
#include "common/welch_parameters.hpp"

namespace echelle {

inline constexpr uint32_t packet_version_1_0 = 0x00010000;
inline constexpr uint32_t packet_version_1_1 = 0x00010001;
inline constexpr size_t packet_header_bytes = 20;
inline constexpr size_t packet_trailer_bytes = 112;
inline constexpr uint32_t packet_trailer_magic = 0x45434831;  // "ECH1"
inline constexpr uint32_t worker_unknown = 0xFFFFFFFF;        // merged from several workers

enum PacketFlag : uint16_t {
    gap_before = 1 << 0,  // samples are missing inside this spectrum or between it and the last one
    incomplete = 1 << 1,  // fewer segments averaged than expected
    over_range = 1 << 2,  // over_range_count > 0
    two_sided = 1 << 3,   // complex channel: DC in the middle
    volts = 1 << 4,       // V^2/Hz or V^2, else counts^2/Hz or counts^2
    partial = 1 << 5,     // a part of an integration, or one that the stream's end cut short
};

struct PacketHeader {
    uint32_t version = packet_version_1_0;
    uint32_t timestamp_us = 0;  // low 32 bits of microseconds since the Unix epoch
    uint32_t channel_id = 0;
    uint32_t fft_size = 0;  // number of float32 values that follow
};

struct PacketTrailer {
    uint16_t flags = 0;
    uint64_t sequence = 0;      // counts the spectra of this channel from 0
    int64_t timestamp_ns = 0;   // Unix time of the first sample
    uint64_t first_sample = 0;  // its index in the stream
    Rational rate;              // samples/s
    double first_bin_hz = 0;
    double bin_spacing_hz = 0;
    uint32_t nperseg = 0;
    uint32_t noverlap = 0;
    uint32_t segments_averaged = 0;
    uint32_t segments_expected = 0;
    WindowKind window = WindowKind::hann;
    Scaling scaling = Scaling::density;
    Detrend detrend = Detrend::constant;
    AverageMode average = AverageMode::mean;
    float mean = 0;  // counts or volts; complex channels: magnitude of the complex mean
    float rms = 0;   // counts or volts
    uint32_t over_range_count = 0;
    uint32_t worker = worker_unknown;
    uint32_t data_crc32 = 0;  // of the data bytes
};

// The ways in which bytes are not a packet.
enum class PacketError {
    none,
    too_short,      // fewer bytes than header, data or trailer say
    too_long,       // more bytes than they say
    bad_crc,        // header, data or trailer CRC differs
    unknown_major,  // a major version that this reader does not know: 1.x stays available elsewhere
    bad_trailer,    // 1.1 or later whose trailer has another magic or less than 112 bytes
    unknown_coding,  // 2.x: values coded in a way that this reader does not know
};
std::string_view name_of(PacketError error);

constexpr size_t packet_bytes_1_0(uint32_t fft_size) {
    return packet_header_bytes + size_t{4} * fft_size;
}
constexpr size_t packet_bytes_1_1(uint32_t fft_size) {
    return packet_bytes_1_0(fft_size) + packet_trailer_bytes;
}

// Where the engine writes its fft_size values before the packet is sealed. `packet` must start at a
// multiple of 4 bytes and hold packet_bytes_1_0(fft_size) at least.
std::span<float> packet_data(std::span<std::byte> packet, uint32_t fft_size);

// Makes a packet of values that already stand at byte 20: writes the header with its CRC; for 1.1
// also the trailer (data_crc32 is computed, the field in `trailer` ignored). `packet` holds exactly
// packet_bytes_1_0 or packet_bytes_1_1 of header.fft_size; header.version is set by the function.
void seal_packet_1_0(std::span<std::byte> packet, PacketHeader header);
void seal_packet_1_1(std::span<std::byte> packet, PacketHeader header, PacketTrailer trailer);

// Replaces the trailer of a sealed 1.1 packet, keeping data and its CRC: what the collector does to
// number a spectrum that a worker made.
void reseal_trailer(std::span<std::byte> packet, PacketTrailer trailer);

// A decoded packet. `data` is unaligned when the caller's bytes are: value() reads it all the same.
struct PacketView {
    PacketHeader header;
    std::span<const std::byte> data;  // 4 * fft_size bytes, little-endian float32
    bool has_trailer = false;         // false for 1.0
    PacketTrailer trailer;            // meaningful when has_trailer

    float value(size_t index) const;
};

// Checks lengths, version and every CRC of exactly one packet. `view` is meaningful only when the
// answer is none.
PacketError decode_packet(std::span<const std::byte> bytes, PacketView& view);

}  // namespace echelle
