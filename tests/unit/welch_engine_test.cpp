// The Welch engine against a double-precision reference on random shapes, and what it promises
// beyond scipy's numbers.
#include "worker/welch_engine.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/welch_recording.hpp"
#include "tests/unit/welch_reference.hpp"

namespace echelle::test {
namespace {

constexpr Rational kRate{10'000'000, 1};

Recording noise(uint32_t channels, uint64_t samples, bool is_complex, uint32_t seed,
                double sigma = 1000.0) {
    Recording recording{channels, samples, is_complex, {}};
    std::mt19937 random(seed);
    for (uint32_t c = 0; c < channels; ++c) {
        // Every channel at its own level, on its own DC.
        std::normal_distribution<double> level(300.0 * c, sigma * (1.0 + 0.1 * c));
        for (uint64_t i = 0; i < samples * recording.parts(); ++i) {
            const double value = std::clamp(std::rint(level(random)), -32768.0, 32767.0);
            recording.values.push_back(static_cast<int16_t>(value));
        }
    }
    return recording;
}

Spectra spectra_of(const Recording& recording, const WelchParameters& parameters, const Cut& cut) {
    const FftPlans plans(parameters.nperseg, recording.is_complex, parameters.pair_channels,
                         FftEffort::estimate);
    BlockwiseWelch welch(recording, parameters, kRate, plans, cut);
    Spectra spectra = welch.run();
    EXPECT_TRUE(welch.intact()) << "something beside the spectra was written";
    return spectra;
}

std::vector<std::vector<double>> reference(const Recording& recording,
                                           const WelchParameters& parameters) {
    const DirectWelch direct(parameters, kRate.value());
    std::vector<std::vector<double>> result;
    for (uint32_t c = 0; c < recording.channels; ++c) {
        result.push_back(direct.spectrum(recording, c));
    }
    return result;
}

class RandomShape {
  public:
    explicit RandomShape(uint32_t seed) : random_(seed) {
        const char* const windows[] = {"boxcar",  "hann",       "hamming", "blackman",
                                       "flattop", "kaiser,8.6", "tukey",   "blackmanharris"};
        parameters.nperseg = up_to(seed % 4 == 0 ? 300 : 64);
        parameters.noverlap = up_to(parameters.nperseg) - 1;
        parameters.window = Window::parse(windows[up_to(8) - 1]);
        parameters.detrend = up_to(2) == 1 ? Detrend::none : Detrend::constant;
        parameters.scaling = up_to(2) == 1 ? Scaling::density : Scaling::spectrum;
        parameters.average_mode = static_cast<AverageMode>(up_to(3) - 1);
        parameters.pair_channels = up_to(4) != 1;
        parameters.volts_per_count = up_to(3) == 1 ? 1e-6 : 0.0;
        cut.layout = up_to(2) == 1 ? Layout::channel_major : Layout::sample_major;
        cut.frame_samples = up_to(100);
        cut.block_frames = up_to(12);
        channels = up_to(seed % 8 == 0 ? 20 : 5);
        cut.block_channels = up_to(channels);
        is_complex = up_to(3) == 1;
        samples = parameters.nperseg + up_to(500);
    }

    std::string text() const {
        return std::to_string(channels) + " channels x " + std::to_string(samples) + ", nperseg " +
               std::to_string(parameters.nperseg) + ", noverlap " +
               std::to_string(parameters.noverlap) + ", window " + parameters.window.text() +
               ", frames of " + std::to_string(cut.frame_samples) + ", blocks of " +
               std::to_string(cut.block_frames) + " x " + std::to_string(cut.block_channels);
    }

    WelchParameters parameters;
    Cut cut;
    uint32_t channels = 1;
    bool is_complex = false;
    uint64_t samples = 0;

  private:
    uint32_t up_to(uint32_t most) { return static_cast<uint32_t>(1 + random_() % most); }

    std::mt19937 random_;
};

TEST(WelchEngine, EqualsTheDefinitionOnRandomShapes) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
        const RandomShape shape(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + shape.text());
        const Recording recording = noise(shape.channels, shape.samples, shape.is_complex, seed);
        const Spectra spectra = spectra_of(recording, shape.parameters, shape.cut);
        const auto expected = reference(recording, shape.parameters);
        EXPECT_LE(worst_power_error(spectra.values, expected, kPromise), 1.0);
    }
}

// More segments in one block than are added in float.
TEST(WelchEngine, ManySegmentsInOneBlockStayExact) {
    const Recording recording = noise(2, 20000, false, 4);
    WelchParameters parameters;
    parameters.nperseg = 16;
    parameters.noverlap = 15;
    const Spectra spectra = spectra_of(recording, parameters, {Layout::channel_major, 20000, 1, 2});
    EXPECT_EQ(spectra.sums[0].segments, 19985U);
    const auto expected = reference(recording, parameters);
    EXPECT_LE(worst_power_error(spectra.values, expected, {1e-6, 1e-15}), 1.0);
}

TEST(WelchEngine, ValuesDoNotDependOnHowChannelsAreCut) {
    const Recording recording = noise(128, 900, false, 7);
    WelchParameters parameters;
    parameters.nperseg = 128;
    parameters.noverlap = 50;
    const Spectra whole = spectra_of(recording, parameters, {Layout::channel_major, 256, 2, 128});
    for (const uint32_t channels : {2U, 6U, 16U, 62U, 64U, 126U}) {
        for (const Layout layout : {Layout::channel_major, Layout::sample_major}) {
            const Spectra cut = spectra_of(recording, parameters, {layout, 256, 2, channels});
            EXPECT_EQ(cut.values, whole.values) << channels << " channels in a block";
        }
    }
    const Recording iq = noise(16, 900, true, 8);
    const Spectra whole_iq = spectra_of(iq, parameters, {Layout::channel_major, 256, 2, 16});
    EXPECT_EQ(spectra_of(iq, parameters, {Layout::sample_major, 256, 2, 3}).values,
              whole_iq.values);
}

// A block that begins with an odd channel transforms it alone: the same spectra but for rounding.
TEST(WelchEngine, OddBlocksPairByTheStreamsChannels) {
    const Recording recording = noise(7, 700, false, 9);
    WelchParameters parameters;
    parameters.nperseg = 100;
    parameters.noverlap = 50;
    const auto expected = reference(recording, parameters);
    for (const uint32_t channels : {1U, 3U, 5U, 7U}) {
        const Cut cut{Layout::sample_major, 70, 3, channels};
        EXPECT_LE(
            worst_power_error(spectra_of(recording, parameters, cut).values, expected, kPromise),
            1.0);
    }
    // Blocks of 3: channels 0 1 | 2, then 3 | 4 5, then 6. Channels 4 and 5 are a pair, as they are
    // in one block of all: bit for bit the same.
    const Spectra threes = spectra_of(recording, parameters, {Layout::channel_major, 70, 3, 3});
    const Spectra whole = spectra_of(recording, parameters, {Layout::channel_major, 70, 3, 7});
    EXPECT_EQ(threes.values[4], whole.values[4]);
    EXPECT_EQ(threes.values[5], whole.values[5]);
}

struct BlockOutput {
    std::vector<std::vector<float>> values;
    std::vector<ChannelSums> sums;
};

// The whole recording as one block.
BlockOutput one_block(const Recording& recording, const WelchParameters& parameters,
                      BlockReduction reduction, size_t rows, Stream stream = {}) {
    const Cut cut{Layout::channel_major, static_cast<uint32_t>(recording.samples), 1,
                  recording.channels};
    const FramedRecording framed(recording, cut);
    stream.geometry = framed.geometry();
    stream.rate = kRate;
    const FftPlans plans(parameters.nperseg, recording.is_complex, parameters.pair_channels,
                         FftEffort::estimate);
    WelchEngine engine(stream, parameters, plans, recording.channels, 1);
    BlockOutput out;
    out.values.assign(recording.channels,
                      std::vector<float>(rows * parameters.bins(recording.is_complex), -1.0F));
    out.sums.resize(recording.channels);
    std::vector<float*> pointers;
    for (auto& row : out.values) {
        pointers.push_back(row.data());
    }
    engine.compute({framed.views(), 1, 0, 0, recording.channels}, reduction, pointers, out.sums);
    return out;
}

std::vector<std::vector<double>> in_double(const std::vector<std::vector<float>>& values) {
    std::vector<std::vector<double>> result(values.size());
    for (size_t c = 0; c < values.size(); ++c) {
        result[c].assign(values[c].begin(), values[c].end());
    }
    return result;
}

TEST(WelchEngine, MedianOfABlockEqualsTheDefinition) {
    for (const uint64_t samples : {64U, 96U, 128U, 512U, 640U}) {  // odd and even segment counts
        for (const bool is_complex : {false, true}) {
            const Recording recording = noise(3, samples, is_complex, 12);
            WelchParameters parameters;
            parameters.nperseg = 64;
            parameters.noverlap = 32;
            for (const AverageMode mode : {AverageMode::median, AverageMode::mean}) {
                // The engine gives a median when asked, whatever the stream's own mode is.
                parameters.average_mode = mode;
                const BlockOutput out = one_block(recording, parameters, BlockReduction::median, 1);
                parameters.average_mode = AverageMode::median;
                EXPECT_LE(worst_power_error(in_double(out.values), reference(recording, parameters),
                                            kPromise),
                          1.0);
            }
        }
    }
}

TEST(WelchEngine, SumsByHand) {
    Recording recording{2, 4, false, {-32768, 32767, 5, -32768, 1, 2, 3, 4}};
    WelchParameters parameters;
    parameters.nperseg = 2;
    parameters.noverlap = 0;
    const BlockOutput out = one_block(recording, parameters, BlockReduction::mean, 1);
    EXPECT_EQ(out.sums[0].sum_re, -32764);
    EXPECT_EQ(out.sums[0].sum_squares, 2 * 1073741824ULL + 1073676289ULL + 25);
    EXPECT_EQ(out.sums[0].over_range, 3U);
    EXPECT_EQ(out.sums[0].samples, 4U);
    EXPECT_EQ(out.sums[0].segments, 2U);
    EXPECT_EQ(out.sums[1].sum_re, 10);
    EXPECT_EQ(out.sums[1].sum_im, 0);
    EXPECT_EQ(out.sums[1].sum_squares, 30U);
    EXPECT_EQ(out.sums[1].over_range, 0U);

    recording = {1, 4, true, {-128, 5, 127, 127, 0, -200, 1, 1}};
    Stream stream;
    stream.over_range_low = -128;
    stream.over_range_high = 127;
    const BlockOutput iq = one_block(recording, parameters, BlockReduction::mean, 1, stream);
    EXPECT_EQ(iq.sums[0].sum_re, 0);
    EXPECT_EQ(iq.sums[0].sum_im, -67);
    EXPECT_EQ(iq.sums[0].sum_squares, 16384U + 25 + 2 * 16129 + 40000 + 2);
    EXPECT_EQ(iq.sums[0].over_range, 3U);  // the second sample counts once
}

TEST(WelchEngine, SumsTakeEachSampleOnceHoweverBlocksAreCut) {
    for (const bool is_complex : {false, true}) {
        const Recording recording = noise(3, 1111, is_complex, 21);
        WelchParameters parameters;
        parameters.nperseg = 150;
        parameters.noverlap = 149;
        for (const Detrend detrend : {Detrend::none, Detrend::constant}) {
            parameters.detrend = detrend;
            const Spectra spectra =
                spectra_of(recording, parameters, {Layout::sample_major, 40, 3, 2});
            for (uint32_t c = 0; c < 3; ++c) {
                int64_t sums[2] = {0, 0};
                uint64_t squares = 0;
                for (uint64_t i = 0; i < recording.samples; ++i) {
                    for (uint32_t part = 0; part < recording.parts(); ++part) {
                        const int64_t value = recording.at(c, i, part);
                        sums[part] += value;
                        squares += static_cast<uint64_t>(value * value);
                    }
                }
                EXPECT_EQ(spectra.sums[c].sum_re, sums[0]);
                EXPECT_EQ(spectra.sums[c].sum_im, sums[1]);
                EXPECT_EQ(spectra.sums[c].sum_squares, squares);
                EXPECT_EQ(spectra.sums[c].samples, 1111U);
                EXPECT_EQ(spectra.sums[c].segments, 962U);
            }
        }
    }
}

TEST(WelchEngine, WithoutASegmentOnlyTheSumsAreWritten) {
    const Recording recording = noise(2, 63, false, 2);
    WelchParameters parameters;
    parameters.nperseg = 64;
    parameters.noverlap = 0;
    for (const BlockReduction reduction : {BlockReduction::mean, BlockReduction::maximum,
                                           BlockReduction::median, BlockReduction::segments}) {
        const BlockOutput out = one_block(recording, parameters, reduction, 1);
        EXPECT_EQ(out.values[1], std::vector<float>(33, -1.0F));
        EXPECT_EQ(out.sums[1].segments, 0U);
        EXPECT_EQ(out.sums[1].samples, 63U);
        EXPECT_NE(out.sums[1].sum_re, 0);
    }
}

TEST(WelchEngine, AllSamplesAtTheRail) {
    const Recording recording{3, 256, false, std::vector<int16_t>(size_t{3} * 256, -32768)};
    WelchParameters parameters;
    parameters.nperseg = 64;
    parameters.noverlap = 32;
    parameters.window = Window::parse("boxcar");
    // The mean is exact, and so is its removal.
    BlockOutput out = one_block(recording, parameters, BlockReduction::mean, 1);
    EXPECT_EQ(out.values[0], std::vector<float>(33, 0.0F));
    EXPECT_EQ(out.values[2], std::vector<float>(33, 0.0F));
    // With it: all power is in the DC bin, x^2 N / fs.
    parameters.detrend = Detrend::none;
    out = one_block(recording, parameters, BlockReduction::mean, 1);
    for (const auto& values : out.values) {
        EXPECT_FLOAT_EQ(values[0], static_cast<float>(1073741824.0 * 64.0 / 1e7));
        EXPECT_LT(*std::max_element(values.begin() + 1, values.end()), 1e-13F * values[0]);
    }
}

}  // namespace
}  // namespace echelle::test
