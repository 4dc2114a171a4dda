#include "fpga_sim/frame_generator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "common/error.hpp"
#include "common/invariant.hpp"
#include "fpga_sim/gaussian_noise.hpp"

namespace echelle {
namespace {

constexpr size_t chunk_samples = 512;  // of one channel: the sums stay in the first-level cache
constexpr double longest_sweep_samples = 0x1p40;
static_assert(2 * chunk_samples <= largest_noise_run);

// Rounds half to even and saturates. Adding 1.5 * 2^52 leaves the integer in the low mantissa bits,
// rounded as the processor always rounds: what lrint gives, without a call for each sample.
int16_t quantised(double value) {
    const double limited = std::clamp(value, -32768.0, 32767.0);
    return static_cast<int16_t>(std::bit_cast<uint64_t>(limited + 0x1.8p52));
}

}  // namespace

// Samples [first, first + count) of one channel while they are being summed up.
struct FrameGenerator::Chunk {
    uint64_t first = 0;
    size_t count = 0;
    std::array<double, chunk_samples> real{};
    std::array<double, chunk_samples> imaginary{};
};

struct FrameGenerator::Compiler {
    const Stream& stream;
    uint32_t channel;
    uint16_t index;  // of the component in its rule

    Turns turns(double frequency_hz) const { return turns_per_sample(frequency_hz, stream.rate); }

    Component operator()(const ToneSignal& tone) const {
        return Tone{turns(tone.frequency_hz + channel * tone.channel_step_hz),
                    turns_from(tone.phase_degrees / 360.0L), tone.amplitude};
    }
    Component operator()(const CombSignal& comb) const {
        return Comb{turns(comb.first_hz), turns(comb.spacing_hz), comb.lines, comb.amplitude};
    }
    // Sample m of a sweep: turns = f0 m / rate + k m^2 / 2 with k = (f1 - f0) / (rate * period).
    // The step from m to m + 1 is then f0 / rate + k / 2 + k m.
    Component operator()(const ChirpSignal& chirp) const {
        const double samples = std::round(chirp.period_s * stream.rate.value());
        if (samples < 2 || samples > longest_sweep_samples) {
            throw UsageError("signal: a chirp of t=" + std::to_string(chirp.period_s) +
                             " s is too " + (samples < 2 ? "short" : "long") +
                             " at this sample rate: give 2 to 2^40 samples");
        }
        const long double k = (static_cast<long double>(chirp.stop_hz) - chirp.start_hz) *
                              stream.rate.denominator / stream.rate.numerator / samples;
        return Chirp{turns(chirp.start_hz) + turns_from(k / 2), turns_from(k),
                     static_cast<uint64_t>(samples), chirp.amplitude};
    }
    Component operator()(const NoiseSignal& noise) const { return Noise{index, noise.sigma}; }
    Component operator()(const DcSignal& dc) const {
        if (dc.imaginary != 0 && !stream.geometry.is_complex()) {
            throw UsageError("signal: dc has im=" + std::to_string(dc.imaginary) +
                             ", but the channels are real: leave im out or take format ci16");
        }
        return Level{0, dc.level, dc.imaginary};
    }
    Component operator()(const StepSignal& step) const {
        const double at =
            step.at_is_seconds ? std::round(step.at * stream.rate.value()) : std::ceil(step.at);
        // A moment beyond every index that a stream can reach never comes.
        return Level{at < 0x1p63 ? static_cast<uint64_t>(at) : UINT64_MAX, step.level, 0};
    }
    Component operator()(const ClipSignal& clip) const { return Clip{clip.limit}; }
};

// Adds one component to a chunk; clip limits what is there.
struct FrameGenerator::Adder {
    const UnitCircle& circle;
    uint64_t seed;
    uint32_t channel;
    bool is_complex;
    Chunk& chunk;

    void add_tone(Turns step, Turns phase, double amplitude) const {
        phase += step * chunk.first;
        if (is_complex) {
            for (size_t i = 0; i < chunk.count; ++i, phase += step) {
                const std::complex<double> direction = circle.at(phase);
                chunk.real[i] += amplitude * direction.real();
                chunk.imaginary[i] += amplitude * direction.imag();
            }
        } else {
            for (size_t i = 0; i < chunk.count; ++i, phase += step) {
                chunk.real[i] += amplitude * circle.at(phase).real();
            }
        }
    }

    void operator()(const Tone& tone) const { add_tone(tone.step, tone.phase, tone.amplitude); }

    void operator()(const Comb& comb) const {
        Turns step = comb.first_step;
        for (uint32_t line = 0; line < comb.lines; ++line, step += comb.spacing_step) {
            add_tone(step, 0, comb.amplitude);
        }
    }

    void operator()(const Chirp& chirp) const {
        uint64_t m = chunk.first % chirp.period;
        // m (m - 1) / 2 accelerations have been added up on the way to sample m.
        Turns phase = chirp.step * m + chirp.acceleration * (Turns{m} * (m - (m > 0)) / 2);
        Turns step = chirp.step + chirp.acceleration * m;
        for (size_t i = 0; i < chunk.count; ++i) {
            const std::complex<double> direction = circle.at(phase);
            chunk.real[i] += chirp.amplitude * direction.real();
            chunk.imaginary[i] += chirp.amplitude * direction.imag();
            phase += step;
            step += chirp.acceleration;
            if (++m == chirp.period) {
                m = 0;
                phase = 0;
                step = chirp.step;
            }
        }
    }

    void operator()(const Noise& noise) const {
        std::array<double, 2 * chunk_samples> values;  // filled by unit_noise
        const size_t parts = is_complex ? 2 : 1;
        unit_noise({seed, channel, noise.component}, chunk.first * parts,
                   std::span(values).first(chunk.count * parts));
        for (size_t i = 0; i < chunk.count; ++i) {
            chunk.real[i] += noise.sigma * values[i * parts];
            // On a real channel this repeats the value into a sum that nobody reads.
            chunk.imaginary[i] += noise.sigma * values[i * parts + parts - 1];
        }
    }

    void operator()(const Level& level) const {
        const uint64_t skipped = level.from > chunk.first ? level.from - chunk.first : 0;
        for (size_t i = skipped; i < chunk.count; ++i) {
            chunk.real[i] += level.real;
            chunk.imaginary[i] += level.imaginary;
        }
    }

    void operator()(const Clip& clip) const {
        for (size_t i = 0; i < chunk.count; ++i) {
            chunk.real[i] = std::clamp(chunk.real[i], -clip.limit, clip.limit);
            chunk.imaginary[i] = std::clamp(chunk.imaginary[i], -clip.limit, clip.limit);
        }
    }
};

FrameGenerator::FrameGenerator(const SignalSpec& signal, const Stream& stream, uint64_t seed)
    : geometry_(stream.geometry), seed_(seed) {
    const std::vector<const SignalRule*> rules = signal.rules_by_channel(geometry_.channels);
    channels_.resize(geometry_.channels);
    for (uint32_t channel = 0; channel < geometry_.channels; ++channel) {
        if (rules[channel] == nullptr) {
            continue;
        }
        uint16_t index = 0;
        for (const SignalComponent& component : rules[channel]->components) {
            channels_[channel].push_back(std::visit(Compiler{stream, channel, index++}, component));
        }
    }
}

void FrameGenerator::generate(uint64_t first_sample, std::span<int16_t> frame) const {
    ECHELLE_INVARIANT(frame.size() == geometry_.frame_values());
    const size_t parts = geometry_.values_per_sample();
    const bool rows = geometry_.layout == Layout::channel_major;
    const size_t stride = parts * (rows ? 1 : geometry_.channels);
    Chunk chunk;
    for (uint32_t channel = 0; channel < geometry_.channels; ++channel) {
        int16_t* out = frame.data() + parts * channel * (rows ? size_t{geometry_.samples} : 1);
        for (uint32_t done = 0; done < geometry_.samples; done += chunk_samples) {
            chunk.first = first_sample + done;
            chunk.count = std::min<size_t>(chunk_samples, geometry_.samples - done);
            chunk.real.fill(0.0);
            chunk.imaginary.fill(0.0);
            const Adder adder{circle_, seed_, channel, geometry_.is_complex(), chunk};
            for (const Component& component : channels_[channel]) {
                std::visit(adder, component);
            }
            for (size_t i = 0; i < chunk.count; ++i, out += stride) {
                out[0] = quantised(chunk.real[i]);
                if (parts == 2) {
                    out[1] = quantised(chunk.imaginary[i]);
                }
            }
        }
    }
}

}  // namespace echelle
