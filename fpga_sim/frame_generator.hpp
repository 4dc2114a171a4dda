// Makes the frames of a simulated ADC. The value of a sample depends on nothing but (signal, seed,
// rate, channel, sample index): any frame can be made alone, in any order, on any thread, and both
// layouts hold the same values.
//
// The sum of a channel's components, in double precision, is rounded half to even and saturates at
// -32768 and 32767. Complex channels carry e^(+i 2 pi f t), with noise of its own in re and im; a
// real channel is the real part.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "common/stream.hpp"
#include "fpga_sim/signal_language.hpp"
#include "fpga_sim/turns.hpp"

namespace echelle {

class FrameGenerator {
  public:
    // Throws UsageError when the signal does not fit the stream: a channel that does not exist, a
    // chirp shorter than two samples or longer than 2^40, an imaginary part on real channels.
    FrameGenerator(const SignalSpec& signal, const Stream& stream, uint64_t seed);

    // The frame whose first sample is `first_sample`; `frame` holds frame_values() int16. Allocates
    // nothing. Thread-safe.
    void generate(uint64_t first_sample, std::span<int16_t> frame) const;

  private:
    // The components with everything that can be worked out beforehand.
    struct Tone {
        Turns step;
        Turns phase;
        double amplitude;
    };
    struct Comb {
        Turns first_step;
        Turns spacing_step;
        uint32_t lines;
        double amplitude;
    };
    struct Chirp {
        Turns step;          // from sample 0 of a sweep to sample 1
        Turns acceleration;  // growth of the step with every sample
        uint64_t period;     // samples
        double amplitude;
    };
    struct Noise {
        uint16_t component;
        double sigma;
    };
    struct Level {
        uint64_t from;  // sample index
        double real;
        double imaginary;
    };
    struct Clip {
        double limit;
    };
    using Component = std::variant<Tone, Comb, Chirp, Noise, Level, Clip>;
    struct Compiler;
    struct Chunk;
    struct Adder;

    UnitCircle circle_;
    FrameGeometry geometry_;
    uint64_t seed_;
    std::vector<std::vector<Component>> channels_;
};

}  // namespace echelle
