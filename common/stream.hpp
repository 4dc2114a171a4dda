// What a stream of frames is: everything about the samples that the Welch engine and the packets
// need and that does not change while the stream runs.
#pragma once

#include <cstdint>

#include "common/frame.hpp"
#include "common/rational.hpp"

namespace echelle {

struct Stream {
    FrameGeometry geometry;
    Rational rate;         // samples per second of each channel
    int64_t epoch_ns = 0;  // Unix time of sample 0, ns; 0 for a source without a clock of its own
    // A sample value at or below `over_range_low`, or at or above `over_range_high`, is counted as
    // over range: the ADC's rails (-32768 and 32767; -128 and 127 where 8-bit data were widened).
    int16_t over_range_low = INT16_MIN;
    int16_t over_range_high = INT16_MAX;

    // Wall time that one frame spans, ns.
    double frame_period_ns() const { return 1e9 * geometry.samples / rate.value(); }
};

}  // namespace echelle
