#include "fpga_sim/frame_generator.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "fpga_sim/gaussian_noise.hpp"
#include "fpga_sim/philox.hpp"

namespace echelle {
namespace {

constexpr double two_pi = 2.0 * std::numbers::pi;

Stream stream_of(uint32_t channels, uint32_t samples, SampleFormat format = SampleFormat::i16,
                 Layout layout = Layout::channel_major) {
    Stream stream;
    stream.geometry = {channels, samples, format, layout};
    stream.rate = {10'000'000, 1};
    return stream;
}

std::vector<int16_t> frame_of(const Stream& stream, std::string_view signal, uint64_t first = 0,
                              uint64_t seed = 1) {
    std::vector<int16_t> frame(stream.geometry.frame_values());
    FrameGenerator(parse_signal(signal), stream, seed).generate(first, frame);
    return frame;
}

std::vector<double> noise_of(const NoiseStream& stream, size_t count) {
    std::vector<double> values(count);
    for (size_t done = 0; done < count; done += largest_noise_run) {
        unit_noise(stream, done,
                   std::span(values).subspan(done, std::min(largest_noise_run, count - done)));
    }
    return values;
}

double correlation(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        sum += a[i] * b[i];
    }
    return sum / static_cast<double>(std::min(a.size(), b.size()));
}

// Known answers of Random123 1.14 (tests/kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(
        philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
        (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, LanesAreIndependentBlocks) {
    std::array<std::array<uint32_t, 3>, 4> words{};
    for (uint32_t lane = 0; lane < 3; ++lane) {
        words[0][lane] = lane;
        words[2][lane] = 77;
    }
    philox4x32<3>(words, {5, 6});
    for (uint32_t lane = 0; lane < 3; ++lane) {
        EXPECT_EQ((PhiloxCounter{words[0][lane], words[1][lane], words[2][lane], words[3][lane]}),
                  philox4x32({lane, 0, 77, 0}, {5, 6}));
    }
}

double turns_value(Turns turns) {
    return static_cast<double>(turns) * 0x1p-128;
}

TEST(Turns, DoNotDriftOverAWeek) {
    constexpr uint64_t far = uint64_t{1} << 40;  // 30 hours at 10 MS/s
    // 2^40 mod 10 = 6; 2^40 * 0.5 * 3 / 200 = 8246337208.32.
    EXPECT_NEAR(turns_value(turns_per_sample(1e6, {10'000'000, 1}) * far), 0.6, 1e-14);
    EXPECT_NEAR(turns_value(turns_per_sample(-1e6, {10'000'000, 1}) * far), 0.4, 1e-14);
    EXPECT_NEAR(turns_value(turns_per_sample(0.5, {200, 3}) * far), 0.32, 1e-14);
    EXPECT_NEAR(turns_value(turns_per_sample(21e6, {10'000'000, 1}) * far), 0.6, 1e-14);
}

TEST(Turns, AreExactWhereAFractionIsBinary) {
    EXPECT_TRUE(turns_per_sample(2.5e6, {10'000'000, 1}) == Turns{1} << 126);
    EXPECT_TRUE(turns_per_sample(0x1p-60, {1, 1}) == Turns{1} << 68);
    EXPECT_TRUE(turns_per_sample(0x1p-128, {1, 1}) == 1);
    EXPECT_TRUE(turns_per_sample(0x1p-129, {1, 1}) == 0);
    EXPECT_TRUE(turns_per_sample(0x1p100, {1, 1}) == 0);
    EXPECT_TRUE(turns_per_sample(0x1p60, {3, 1}) == turns_per_sample(1, {3, 1}));  // 4^30 mod 3 = 1
    EXPECT_TRUE(turns_from(-0.25L) == Turns{3} << 126);
    EXPECT_TRUE(turns_from(-0x1p-200L) == 0);
}

TEST(Turns, UnitCircleIsAccurate) {
    const UnitCircle circle;
    Turns phase = 0;
    for (int i = 0; i < 100'000; ++i, phase += turns_from(0.6180339887498949L)) {
        const double angle = two_pi * turns_value(phase);
        ASSERT_NEAR(circle.at(phase).real(), std::cos(angle), 5e-12);
        ASSERT_NEAR(circle.at(phase).imag(), std::sin(angle), 5e-12);
    }
}

// Tolerances are five standard errors for 2^20 values: of the mean 1/sqrt(N), of the variance
// sqrt(2/N), of the fourth moment sqrt(96/N), of a correlation 1/sqrt(N).
TEST(Noise, HasTheMomentsOfAStandardNormal) {
    constexpr size_t count = size_t{1} << 20;
    const auto n = static_cast<double>(count);
    const std::vector<double> values = noise_of({42, 3, 0}, count);
    double mean = 0;
    double square = 0;
    double fourth = 0;
    for (const double x : values) {
        mean += x / n;
        square += x * x / n;
        fourth += x * x * x * x / n;
    }
    EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
    EXPECT_NEAR(square, 1, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / n));
}

TEST(Noise, FillsSixteenEquallyLikelyBinsEqually) {
    // Upper edges from scipy.stats.norm.ppf(k / 16).
    constexpr double edges[] = {
        -1.5341205443525463, -1.1503493803760079,  -0.887146559018876,  -0.6744897501960817,
        -0.4887764111146695, -0.31863936396437514, -0.1573106846101707, 0.0,
        0.1573106846101707,  0.31863936396437514,  0.4887764111146695,  0.6744897501960817,
        0.887146559018876,   1.1503493803760079,   1.5341205443525463};
    constexpr size_t count = size_t{1} << 20;
    std::array<double, 16> bins{};
    size_t beyond_ziggurat = 0;
    for (const double x : noise_of({7, 0, 0}, count)) {
        bins[static_cast<size_t>(std::upper_bound(std::begin(edges), std::end(edges), x) -
                                 std::begin(edges))] += 1;
        beyond_ziggurat += std::abs(x) > 3.442619855899 ? 1 : 0;
    }
    const double expected = static_cast<double>(count) / 16;
    double chi_square = 0;
    for (const double filled : bins) {
        chi_square += (filled - expected) * (filled - expected) / expected;
    }
    EXPECT_LT(chi_square, 15 + 5 * std::sqrt(30.0));  // 15 degrees of freedom, variance 30
    // 2 * scipy.stats.norm.sf(3.4426…) = 5.7611e-4 of 2^20: 604.1, standard deviation 24.6.
    EXPECT_NEAR(static_cast<double>(beyond_ziggurat), 604.1, 5 * 24.6);
}

TEST(Noise, IsWhiteAndEveryStreamIsItsOwn) {
    constexpr size_t count = size_t{1} << 20;
    const double tolerance = 5 / std::sqrt(static_cast<double>(count));
    const std::vector<double> values = noise_of({42, 3, 0}, count);
    for (size_t lag = 1; lag <= 16; ++lag) {
        EXPECT_NEAR(correlation(values, std::span(values).subspan(lag)), 0, tolerance) << lag;
    }
    for (const NoiseStream& other : {NoiseStream{43, 3, 0}, NoiseStream{uint64_t{42} << 32, 3, 0},
                                     NoiseStream{42, 4, 0}, NoiseStream{42, 3, 1}}) {
        EXPECT_NEAR(correlation(values, noise_of(other, count)), 0, tolerance);
    }
}

TEST(Noise, DoesNotDependOnHowItIsCutIntoRuns) {
    const std::vector<double> whole = noise_of({1, 2, 3}, 4096);
    for (const size_t first : {0UL, 1UL, 2UL, 3UL, 1022UL, 3000UL}) {
        std::vector<double> part(997);
        unit_noise({1, 2, 3}, first, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
    }
}

// round(8000 cos(2 pi f n / rate + 30 deg)), n = 2^40 …, with exact fractions in Python.
TEST(FrameGenerator, ToneIsRightFarFromTheStart) {
    const auto frame =
        frame_of(stream_of(1, 8), "tone(f=1234567, a=8000, phase=30)", uint64_t{1} << 40);
    EXPECT_EQ(frame, (std::vector<int16_t>{7374, 7437, 3244, -2804, -7248, -7545, -3525, 2512}));
}

TEST(FrameGenerator, ComplexToneTurnsTheWayItsSignSays) {
    const auto frame = frame_of(stream_of(1, 4, SampleFormat::ci16),
                                "tone(f=-1234567, a=8000, phase=30)", uint64_t{1} << 40);
    EXPECT_EQ(frame, (std::vector<int16_t>{1001, 7937, 6272, 4966, 7955, -847, 5086, -6175}));
    // A quarter turn per sample, forwards: 1, i, -1, -i.
    EXPECT_EQ(frame_of(stream_of(1, 4, SampleFormat::ci16), "tone(f=2.5MHz, a=100)"),
              (std::vector<int16_t>{100, 0, 0, 100, -100, 0, 0, -100}));
}

// Quantising adds an error of 1/sqrt(12) counts; on the amplitude found by correlation over N
// samples that is sqrt(2 / N) / sqrt(12) = 0.009, and 30 counts of noise make it 0.94.
TEST(FrameGenerator, ToneHasItsAmplitudeFrequencyAndPhaseOnEveryChannel) {
    const Stream stream = stream_of(4, 2048);
    const auto frame = frame_of(stream, "tone(f=1MHz, a=8000, phase=90, df=250kHz) + noise(30)");
    for (uint32_t channel = 0; channel < 4; ++channel) {
        std::complex<double> sum = 0;
        // Whole turns at each of the four frequencies: 2000 samples of 10 MS/s.
        for (uint32_t n = 0; n < 2000; ++n) {
            const double turns = (1e6 + channel * 250e3) / 10e6 * n;
            sum +=
                static_cast<double>(frame[channel * 2048 + n]) * std::polar(1.0, -two_pi * turns);
        }
        const std::complex<double> phasor = sum * 2.0 / 2000.0;
        EXPECT_NEAR(phasor.real(), 0, 5 * 0.95);
        EXPECT_NEAR(phasor.imag(), 8000, 5 * 0.95);  // e^(i 90 deg)
    }
}

TEST(FrameGenerator, CoversNoiseInBothPartsOfComplexChannels) {
    const auto frame = frame_of(stream_of(1, 65536, SampleFormat::ci16), "noise(sigma=300)");
    double re = 0;
    double im = 0;
    double cross = 0;
    for (size_t i = 0; i < frame.size(); i += 2) {
        re += frame[i] * frame[i] / 65536.0;
        im += frame[i + 1] * frame[i + 1] / 65536.0;
        cross += frame[i] * frame[i + 1] / 65536.0;
    }
    const double error = 300.0 * 300.0 / std::sqrt(65536.0);  // standard error of a product
    EXPECT_NEAR(re, 90000, 5 * std::sqrt(2.0) * error);
    EXPECT_NEAR(im, 90000, 5 * std::sqrt(2.0) * error);
    EXPECT_NEAR(cross, 0, 5 * error);
}

TEST(FrameGenerator, RoundsHalfToEvenAndSaturates) {
    struct Case {
        const char* signal;
        int16_t expected;
    };
    for (const Case& c :
         {Case{"dc(0.5)", 0}, Case{"dc(1.5)", 2}, Case{"dc(2.5)", 2}, Case{"dc(-0.5)", 0},
          Case{"dc(-1.5)", -2}, Case{"dc(-2.5)", -2}, Case{"dc(32766.5)", 32766},
          Case{"dc(32767.4)", 32767}, Case{"dc(-32768.4)", -32768}, Case{"dc(40000)", 32767},
          Case{"dc(-1e15)", -32768}, Case{"dc(7.49)", 7}, Case{"dc(-7.51)", -8}}) {
        EXPECT_EQ(frame_of(stream_of(1, 1), c.signal)[0], c.expected) << c.signal;
    }
}

// scipy.signal.chirp(t, f0=1e5, t1=1e-3, f1=2e6) * 10000, rounded; it starts again after 1 ms.
TEST(FrameGenerator, ChirpFollowsScipyAndRepeats) {
    const auto frame = frame_of(stream_of(1, 25'000), "chirp(100kHz, 2MHz, 1ms, 10000)");
    const std::pair<size_t, int16_t> expected[] = {{0, 10000},    {1, 9980},    {2, 9921},
                                                   {3, 9822},     {777, -9994}, {5000, -10000},
                                                   {9998, -8089}, {9999, 3091}};
    for (const auto& [index, value] : expected) {
        EXPECT_EQ(frame[index], value) << index;
        EXPECT_EQ(frame[10'000 + index], value) << index;
    }
    const auto later = frame_of(stream_of(1, 100), "chirp(100kHz, 2MHz, 1ms, 10000)",
                                uint64_t{1} << 40);  // 2^40 mod 10000 = 7776
    EXPECT_TRUE(std::equal(later.begin(), later.end(), frame.begin() + 7776));
}

TEST(FrameGenerator, CombStepAndClip) {
    // Lines at 0, 2.5 and 5 MHz of 10 MS/s: 1 + cos(pi n / 2) + cos(pi n) = 3, 0, 1, 0.
    EXPECT_EQ(frame_of(stream_of(1, 4), "comb(0, 2.5MHz, 3, 100)"),
              (std::vector<int16_t>{300, 0, 100, 0}));
    EXPECT_EQ(frame_of(stream_of(1, 5), "step(12, 7) + dc(1)", 10),
              (std::vector<int16_t>{1, 1, 8, 8, 8}));
    EXPECT_EQ(frame_of(stream_of(1, 3), "step(0.1us, 7)"), (std::vector<int16_t>{0, 7, 7}));
    EXPECT_EQ(frame_of(stream_of(1, 2, SampleFormat::ci16), "dc(50, im=-50) + clip(20) + dc(1)"),
              (std::vector<int16_t>{21, -20, 21, -20}));
}

TEST(FrameGenerator, UnnamedChannelsAreSilent) {
    EXPECT_EQ(frame_of(stream_of(3, 2), "1: dc(9)"), (std::vector<int16_t>{0, 0, 9, 9, 0, 0}));
}

constexpr const char* everything =
    "0: tone(1.23MHz, 5000) + noise(100); 1: chirp(-1MHz, 3MHz, 77us, 9000); "
    "*: comb(10kHz, 333kHz, 5, 900) + step(3000, 500) + noise(50) + noise(20) + clip(2000)";

class EveryFormat : public testing::TestWithParam<SampleFormat> {};

TEST_P(EveryFormat, ASampleDoesNotDependOnItsFrame) {
    const Stream whole = stream_of(3, 6000, GetParam());
    const Stream part = stream_of(3, 777, GetParam());
    const auto long_frame = frame_of(whole, everything);
    const FrameGenerator generator(parse_signal(everything), part, 1);
    const size_t parts = part.geometry.values_per_sample();
    for (const size_t first : {5000UL, 777UL, 0UL, 2999UL}) {
        std::vector<int16_t> frame(part.geometry.frame_values());
        generator.generate(first, frame);
        for (size_t channel = 0; channel < 3; ++channel) {
            EXPECT_TRUE(std::equal(frame.begin() + channel * 777 * parts,
                                   frame.begin() + (channel + 1) * 777 * parts,
                                   long_frame.begin() + (channel * 6000 + first) * parts))
                << "channel " << channel << " from " << first;
        }
    }
}

TEST_P(EveryFormat, LayoutsHoldTheSameValues) {
    const auto rows = frame_of(stream_of(3, 1500, GetParam()), everything, 2500);
    const auto columns =
        frame_of(stream_of(3, 1500, GetParam(), Layout::sample_major), everything, 2500);
    const size_t parts = GetParam() == SampleFormat::ci16 ? 2 : 1;
    for (size_t channel = 0; channel < 3; ++channel) {
        for (size_t n = 0; n < 1500; ++n) {
            for (size_t part = 0; part < parts; ++part) {
                ASSERT_EQ(rows[(channel * 1500 + n) * parts + part],
                          columns[(n * 3 + channel) * parts + part]);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(FrameGenerator, EveryFormat,
                         testing::Values(SampleFormat::i16, SampleFormat::ci16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(FrameGenerator, TheSeedChangesTheNoiseAndNothingElse) {
    const Stream stream = stream_of(1, 1000);
    EXPECT_EQ(frame_of(stream, "noise(100)", 0, 5), frame_of(stream, "noise(100)", 0, 5));
    EXPECT_NE(frame_of(stream, "noise(100)", 0, 5), frame_of(stream, "noise(100)", 0, 6));
    EXPECT_EQ(frame_of(stream, "tone(1e6,9)", 0, 5), frame_of(stream, "tone(1e6,9)", 0, 6));
}

TEST(FrameGenerator, RefusesWhatTheStreamCannotCarry) {
    EXPECT_THROW(frame_of(stream_of(2, 8), "2: dc(1)"), UsageError);
    EXPECT_THROW(frame_of(stream_of(2, 8), "dc(1, im=2)"), UsageError);
    EXPECT_THROW(frame_of(stream_of(2, 8), "chirp(0, 1e6, 100ns, 9)"), UsageError);
    EXPECT_THROW(frame_of(stream_of(2, 8), "chirp(0, 1e6, 1e9, 9)"), UsageError);
}

}  // namespace
}  // namespace echelle
