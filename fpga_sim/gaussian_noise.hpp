// White Gaussian noise whose value depends on nothing but (seed, channel, stream, index).
//
// Ziggurat of 128 layers: G. Marsaglia, W. W. Tsang, "The ziggurat method for generating random
// variables", J. Stat. Softw. 5 (8), 2000, with disjoint bits for layer and abscissa as J. A.
// Doornik asks for ("An improved ziggurat method to generate normal random samples", 2005). The
// random words are Philox's: value `index` uses word index % 4 of block index / 4; the one value in
// 80 that the first word does not settle draws from blocks of its own. The tails are not cut.
#pragma once

#include <cstdint>
#include <span>

namespace echelle {

// Names one sequence of noise.
struct NoiseStream {
    uint64_t seed = 0;
    uint32_t channel = 0;
    uint16_t component = 0;  // tells several noises of one channel apart
};

// The most values that one call of unit_noise makes.
inline constexpr size_t largest_noise_run = 1024;

// Values first_index, first_index + 1, … of the stream: mean 0, standard deviation 1. At most
// largest_noise_run of them. Thread-safe.
void unit_noise(const NoiseStream& stream, uint64_t first_index, std::span<double> values);

}  // namespace echelle
