// From the ring's rows of channels to the order in which files have samples.
#pragma once

#include <cstdint>
#include <span>

#include "common/frame.hpp"

namespace echelle {

// Puts the first `samples` samples of a channel-major frame, [channel][sample](re, im), into `out`
// as [sample][channel](re, im). `out` holds samples x channels x values_per_sample().
void interleave(std::span<const int16_t> frame, const FrameGeometry& geometry, uint32_t samples,
                std::span<int16_t> out);

}  // namespace echelle
