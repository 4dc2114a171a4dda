#include "common/window.hpp"

#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/welch_parameters.hpp"

namespace echelle {
namespace {

TEST(Window, EqualsScipy) {
    std::ifstream file(std::string(ECHELLE_GOLDEN_DIR) + "/welch/windows.json");
    ASSERT_TRUE(file) << "no windows.json in " << ECHELLE_GOLDEN_DIR;
    const auto golden = nlohmann::json::parse(file);
    ASSERT_GT(golden.size(), 50U);
    for (const auto& entry : golden) {
        const std::string text = entry["window"];
        const uint32_t n = entry["n"];
        SCOPED_TRACE(text + " of " + std::to_string(n));
        const std::vector<double> seen = Window::parse(text).coefficients(n);
        ASSERT_EQ(seen.size(), n);
        for (uint32_t i = 0; i < n; ++i) {
            EXPECT_NEAR(seen[i], entry["values"][i].get<double>(), 1e-15) << "coefficient " << i;
        }
    }
}

TEST(Window, PeriodicHannByHand) {
    const std::vector<double> w = Window{}.coefficients(4);
    const std::vector<double> expected{0.0, 0.5, 1.0, 0.5};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(w[i], expected[i], 1e-15);
    }
}

TEST(Window, ParsesWhatItPrints) {
    for (const char* text : {"boxcar", "hann", "hamming", "blackman", "blackmanharris", "flattop",
                             "kaiser,8.6", "kaiser,0", "tukey,0.25", "kaiser,1e-05"}) {
        EXPECT_EQ(Window::parse(text).text(), text);
        EXPECT_EQ(Window::parse(Window::parse(text).text()), Window::parse(text));
    }
    EXPECT_EQ(Window::parse("tukey"), (Window{WindowKind::tukey, 0.5}));
    EXPECT_EQ(Window::parse("kaiser,8.6"), (Window{WindowKind::kaiser, 8.6}));
}

TEST(Window, RefusesWhatItCannotRead) {
    for (const char* text :
         {"",          ",",          "Hann",         "hann ",        "hanning",
          "kaiser",    "kaiser,",    "kaiser,x",     "kaiser,nan",   "kaiser,inf",
          "kaiser,-1", "kaiser,701", "kaiser,8.6,1", "kaiser,1e999", "kaiser, 8.6",
          "tukey,1.5", "tukey,-0.1", "tukey,",       "hann,",        "hann,1",
          "boxcar,0"}) {
        EXPECT_THROW(Window::parse(text), UsageError) << text;
    }
}

TEST(Window, RefusalNamesTheKnownWindows) {
    try {
        Window::parse("gauss");
        FAIL() << "gauss was accepted";
    } catch (const UsageError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("gauss"), std::string::npos);
        EXPECT_NE(message.find("blackmanharris"), std::string::npos);
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
}

TEST(WelchParameters, DefaultsAreValidAndScipys) {
    const WelchParameters parameters;
    EXPECT_NO_THROW(parameters.validate());
    EXPECT_EQ(parameters.window.text(), "hann");
    EXPECT_EQ(parameters.hop(), 512U);
    EXPECT_EQ(parameters.bins(false), 513U);
    EXPECT_EQ(parameters.bins(true), 1024U);
}

TEST(WelchParameters, RefusesWhatHasNoMeaning) {
    const auto refused = [](auto change) {
        WelchParameters parameters;
        change(parameters);
        EXPECT_THROW(parameters.validate(), UsageError);
    };
    refused([](WelchParameters& p) { p.nperseg = 0; });
    refused([](WelchParameters& p) { p.nperseg = (1U << 24) + 1; });
    refused([](WelchParameters& p) { p.noverlap = p.nperseg; });
    refused([](WelchParameters& p) { p.volts_per_count = -1.0; });
    refused([](WelchParameters& p) { p.volts_per_count = std::nan(""); });
    refused([](WelchParameters& p) { p.volts_per_count = HUGE_VAL; });
    refused([](WelchParameters& p) { p.window = {WindowKind::kaiser, -2.0}; });
    refused([](WelchParameters& p) { p.window = {WindowKind::tukey, std::nan("")}; });
    refused([](WelchParameters& p) { p.window = {WindowKind::hann, 1.0}; });
}

TEST(WelchParameters, NamesAreReadBack) {
    for (const Detrend value : {Detrend::none, Detrend::constant}) {
        EXPECT_EQ(parse_detrend(name_of(value)), value);
    }
    for (const Scaling value : {Scaling::density, Scaling::spectrum}) {
        EXPECT_EQ(parse_scaling(name_of(value)), value);
    }
    for (const AverageMode value : {AverageMode::mean, AverageMode::median, AverageMode::max}) {
        EXPECT_EQ(parse_average_mode(name_of(value)), value);
    }
    EXPECT_EQ(name_of(Detrend::none), "none");
    EXPECT_EQ(name_of(Scaling::spectrum), "spectrum");
    EXPECT_EQ(name_of(AverageMode::max), "max");
    EXPECT_THROW(parse_detrend("linear"), UsageError);
    EXPECT_THROW(parse_scaling(""), UsageError);
    EXPECT_THROW(parse_average_mode("maximum"), UsageError);
}

}  // namespace
}  // namespace echelle
