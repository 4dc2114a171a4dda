// A frame: S samples of each of C channels, as 16-bit integers.
//
// Shapes, in memory order (all int16, machine byte order):
//   channel-major i16   [channel][sample]           one 4 KiB row per channel at S = 2048
//   sample-major  i16   [sample][channel]
//   channel-major ci16  [channel][sample][re, im]
//   sample-major  ci16  [sample][channel][re, im]
// The last frame of a recording, or before a gap, may be partial: fewer samples are valid, the rows
// keep their full length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelle {

enum class SampleFormat : uint32_t { i16 = 1, ci16 = 2 };
enum class Layout : uint32_t { channel_major = 1, sample_major = 2 };

struct FrameGeometry {
    uint32_t channels = 128;
    uint32_t samples = 2048;  // per channel
    SampleFormat format = SampleFormat::i16;
    Layout layout = Layout::channel_major;

    bool is_complex() const { return format == SampleFormat::ci16; }
    // int16 values in one sample of one channel: 1 real, 2 complex.
    uint32_t values_per_sample() const { return is_complex() ? 2 : 1; }
    size_t bytes_per_sample() const { return sizeof(int16_t) * values_per_sample(); }
    size_t frame_values() const { return size_t{channels} * samples * values_per_sample(); }
    size_t frame_bytes() const { return frame_values() * sizeof(int16_t); }
    bool operator==(const FrameGeometry&) const = default;

    // Throws UsageError unless 1 <= channels <= 65,536, 1 <= samples <= 16,777,216, a frame is at
    // most 1 GiB, and the enums hold known values.
    void validate() const;
};

// "i16", "ci16"; "channel-major", "sample-major". The parsers throw UsageError.
std::string_view name_of(SampleFormat format);
std::string_view name_of(Layout layout);
SampleFormat parse_sample_format(std::string_view text);
Layout parse_layout(std::string_view text);

}  // namespace echelle
