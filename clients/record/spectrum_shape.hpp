// What all spectra of one file have in common. Spectra of another shape never share a file with
// them. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "echelle/packet.hpp"

namespace echelle::record {

struct SpectrumShape {
    std::vector<uint32_t> channels;  // their numbers, ascending
    uint32_t bins = 0;
    double first_bin_hz = 0;
    double bin_spacing_hz = 0;
    uint64_t rate_numerator = 0;  // samples per second
    uint64_t rate_denominator = 1;
    uint32_t nperseg = 0;
    uint32_t noverlap = 0;
    std::string window;  // "hann" …; "window-N" for a number that docs/packet.md did not have yet
    std::string scaling;  // "density", "spectrum"
    std::string detrend;  // "none", "constant"
    std::string average;  // "mean", "median", "max"
    std::string unit;     // "counts^2/Hz" …

    bool operator==(const SpectrumShape&) const = default;
};

// Of a packet with a trailer.
SpectrumShape shape_of(const client::SpectrumPacket& packet, std::vector<uint32_t> channels);

// Whether two packets, both with trailers, have the same shape but for their channels.
bool have_same_shape(const client::SpectrumPacket& a, const client::SpectrumPacket& b);

// What differs, for a message: "nperseg 1024 there, 512 here". Empty when nothing does.
std::string difference(const SpectrumShape& there, const SpectrumShape& here);

}  // namespace echelle::record
