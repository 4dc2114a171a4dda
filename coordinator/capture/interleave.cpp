#include "coordinator/capture/interleave.hpp"

#include <algorithm>
#include <cstddef>

#include "common/invariant.hpp"

namespace echelle {
namespace {

// Rows of a power of two bytes fall into the same sets of the first-level cache, which has eight
// ways or more: so eight channels at a time, a cache line of each.
constexpr size_t tile_channels = 8;
constexpr size_t tile_samples = 32;

struct Shape {
    size_t channels = 0;
    size_t samples = 0;      // to be taken
    size_t row_samples = 0;  // from one channel to the next
};

template <size_t values>
void interleave_tile(const int16_t* frame, const Shape& shape, size_t channel, size_t sample,
                     int16_t* out) {
    const size_t last_channel = std::min(channel + tile_channels, shape.channels);
    const size_t last_sample = std::min(sample + tile_samples, shape.samples);
    for (size_t s = sample; s < last_sample; ++s) {
        for (size_t c = channel; c < last_channel; ++c) {
            const int16_t* from = frame + (c * shape.row_samples + s) * values;
            int16_t* to = out + (s * shape.channels + c) * values;
            for (size_t v = 0; v < values; ++v) {
                to[v] = from[v];
            }
        }
    }
}

template <size_t values>
void interleave_all(const int16_t* frame, const Shape& shape, int16_t* out) {
    for (size_t sample = 0; sample < shape.samples; sample += tile_samples) {
        for (size_t channel = 0; channel < shape.channels; channel += tile_channels) {
            interleave_tile<values>(frame, shape, channel, sample, out);
        }
    }
}

}  // namespace

void interleave(std::span<const int16_t> frame, const FrameGeometry& geometry, uint32_t samples,
                std::span<int16_t> out) {
    ECHELLE_INVARIANT(frame.size() == geometry.frame_values() && samples <= geometry.samples &&
                      out.size() ==
                          size_t{samples} * geometry.channels * geometry.values_per_sample());
    const Shape shape{geometry.channels, samples, geometry.samples};
    if (geometry.is_complex()) {
        interleave_all<2>(frame.data(), shape, out.data());
    } else {
        interleave_all<1>(frame.data(), shape, out.data());
    }
}

}  // namespace echelle
