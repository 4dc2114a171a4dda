// The Welch engine against scipy.signal.welch on whole recordings (tests/golden/welch).
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/welch_recording.hpp"

namespace echelle::test {
namespace {

// In amplitude: half of 1e-5 of the bin, or -140 dB of the peak (docs/welch.md, "Precision").
constexpr Tolerance kKept{1e-5, 1e-14};

template <typename T>
std::vector<T> read_binary(const std::string& name) {
    std::ifstream file(std::string(ECHELLE_GOLDEN_DIR) + "/welch/" + name, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    const std::string text = bytes.str();
    std::vector<T> values(text.size() / sizeof(T));
    std::copy_n(text.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
    return values;
}

class WelchGolden : public ::testing::Test {
  protected:
    void SetUp() override {
        std::ifstream file(std::string(ECHELLE_GOLDEN_DIR) + "/welch/welch.json");
        ASSERT_TRUE(file) << "no welch.json in " << ECHELLE_GOLDEN_DIR;
        golden_ = nlohmann::json::parse(file);
        values_ = read_binary<double>("welch.f64");
        real_ = recording("real", false);
        complex_ = recording("complex", true);
        ASSERT_GT(golden_["cases"].size(), 80U);
    }

    Recording recording(const std::string& name, bool is_complex) const {
        const auto& shape = golden_["recordings"][name];
        Recording recording{shape["channels"], shape["samples"], is_complex,
                            read_binary<int16_t>("recording_" + name + ".i16")};
        EXPECT_EQ(recording.values.size(),
                  size_t{recording.channels} * recording.samples * recording.parts());
        return recording;
    }

    static WelchParameters parameters_of(const nlohmann::json& c) {
        WelchParameters parameters;
        parameters.nperseg = c["nperseg"];
        parameters.noverlap = c["noverlap"];
        parameters.window = Window::parse(c["window"].get<std::string>());
        parameters.detrend = parse_detrend(c["detrend"].get<std::string>());
        parameters.scaling = parse_scaling(c["scaling"].get<std::string>());
        parameters.average_mode = parse_average_mode(c["average"].get<std::string>());
        parameters.volts_per_count = c["volts_per_count"];
        return parameters;
    }

    // One vector for each channel.
    std::vector<std::vector<double>> expected(const nlohmann::json& c, size_t channels,
                                              size_t bins) const {
        std::vector<std::vector<double>> result;
        const size_t offset = c["offset"];
        for (size_t channel = 0; channel < channels; ++channel) {
            const auto begin = values_.begin() + static_cast<ptrdiff_t>(offset + channel * bins);
            result.emplace_back(begin, begin + static_cast<ptrdiff_t>(bins));
        }
        return result;
    }

    void compare_all(const Cut& cut, bool pair_channels) const {
        for (const auto& c : golden_["cases"]) {
            SCOPED_TRACE(c.dump());
            const Recording& recording = c["complex"].get<bool>() ? complex_ : real_;
            WelchParameters parameters = parameters_of(c);
            parameters.pair_channels = pair_channels;
            const Rational rate{c["rate"][0], c["rate"][1]};
            const auto should =
                expected(c, recording.channels, parameters.bins(recording.is_complex));
            for (const FftKind kind : {FftKind::own, FftKind::fftw}) {
                const FftPlans plans(parameters.nperseg, recording.is_complex, pair_channels,
                                     FftEffort::estimate, kind);
                BlockwiseWelch welch(recording, parameters, rate, plans, cut);
                const Spectra spectra = welch.run();
                EXPECT_TRUE(welch.intact());
                EXPECT_LE(worst_amplitude_error(spectra.values, should, kKept), 1.0)
                    << name_of(kind);
            }
        }
    }

    nlohmann::json golden_;
    std::vector<double> values_;
    Recording real_;
    Recording complex_;
};

TEST_F(WelchGolden, ChannelMajorPairs) {
    compare_all({Layout::channel_major, 256, 4, 2}, true);
}

TEST_F(WelchGolden, SampleMajorPairs) {
    compare_all({Layout::sample_major, 100, 7, 4}, true);
}

TEST_F(WelchGolden, ChannelsAlone) {
    compare_all({Layout::channel_major, 333, 2, 5}, false);
}

TEST_F(WelchGolden, SampleMajorOfShortFrames) {
    compare_all({Layout::sample_major, 17, 20, 3}, true);
}

TEST_F(WelchGolden, OneFrameOfAll) {
    compare_all({Layout::channel_major, 2600, 1, 5}, true);
}

}  // namespace
}  // namespace echelle::test
