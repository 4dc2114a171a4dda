// The simulator's signal language: what stands on which channel, in one line of text.
//
//   0-3: tone(f=1MHz, a=8000, phase=90) + noise(sigma=100); *: noise(30) + dc(-12)
//
//   SPEC      = RULE { ";" RULE }
//   RULE      = [ CHANNELS ":" ] COMPONENT { "+" COMPONENT }       no CHANNELS means "*"
//   CHANNELS  = ( "*" | RANGE { "," RANGE } )
//   RANGE     = N [ "-" M ]                                         both included, counted from 0
//   COMPONENT = NAME "(" [ ARGUMENT { "," ARGUMENT } ] ")"
//   ARGUMENT  = [ NAME "=" ] NUMBER [ UNIT ]                        unnamed ones first, in order
//
//   tone(f, a, phase=0, df=0)   a e^(i 2 pi ((f + channel * df) t + phase / 360)); real: the cosine
//   chirp(f0, f1, t, a)         linear sweep from f0 to f1 within t, then again from f0
//   comb(f0, spacing, n, a)     n tones at f0, f0 + spacing, …, each of amplitude a, all in phase
//   at
//                               sample 0: the peak is n * a
//   noise(sigma)                white and Gaussian; complex: sigma in each of re and im
//   dc(level, im=0)             a constant
//   step(at, level)             0 before `at`, a constant from it on; real part only
//   clip(limit)                 limits the sum of what stands before it to [-limit, limit]; re and
//                               im each
//
// Frequencies take Hz, kHz, MHz, GHz (Hz when nothing is written) and may be negative or beyond the
// Nyquist frequency: they alias. Amplitudes are peak counts, or dBFS (0 dBFS = 32768 counts). phase
// is in degrees (deg), t in s, ms, us or ns, `at` in samples, or in time with one of those units.
// The first rule that names a channel holds for it; a channel that none names is silent. Blanks
// mean nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/stream.hpp"

namespace echelle {

struct ToneSignal {
    double frequency_hz = 0;
    double amplitude = 0;  // counts, peak
    double phase_degrees = 0;
    double channel_step_hz = 0;  // added to the frequency once per channel number
};
struct ChirpSignal {
    double start_hz = 0;
    double stop_hz = 0;
    double period_s = 0;
    double amplitude = 0;
};
struct CombSignal {
    double first_hz = 0;
    double spacing_hz = 0;
    uint32_t lines = 0;
    double amplitude = 0;
};
struct NoiseSignal {
    double sigma = 0;  // counts
};
struct DcSignal {
    double level = 0;
    double imaginary = 0;
};
struct StepSignal {
    double at = 0;
    bool at_is_seconds = false;  // else samples
    double level = 0;
};
struct ClipSignal {
    double limit = 0;
};
using SignalComponent = std::variant<ToneSignal, ChirpSignal, CombSignal, NoiseSignal, DcSignal,
                                     StepSignal, ClipSignal>;

struct ChannelRange {
    uint32_t first = 0;
    uint32_t last = 0;  // included
};

struct SignalRule {
    bool every_channel = false;  // "*"
    std::vector<ChannelRange> ranges;
    std::vector<SignalComponent> components;  // at most 1000
    size_t character = 1;                     // where the rule begins in the text, from 1
};

struct SignalSpec {
    std::string text;
    std::vector<SignalRule> rules;

    // The rule that holds for each channel, null where none does. Throws UsageError when a rule
    // names a channel that the stream lacks, or can never hold because earlier ones name all its
    // channels.
    std::vector<const SignalRule*> rules_by_channel(uint32_t channels) const;
};

// Throws UsageError that says at which character what was expected.
SignalSpec parse_signal(std::string_view text);

// What is generated when nothing is asked for: on every channel a tone of 8000 counts in noise of
// 30, from 2 % of the sample rate on channel 0 upwards in equal steps to below 42 %, so that a
// waterfall of all channels shows a ramp.
std::string default_signal(const Stream& stream);

}  // namespace echelle
