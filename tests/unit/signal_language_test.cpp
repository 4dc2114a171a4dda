#include "fpga_sim/signal_language.hpp"

#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

template <typename Component>
const Component& only(const SignalSpec& spec) {
    return std::get<Component>(spec.rules.at(0).components.at(0));
}

std::string refusal(std::string_view text) {
    try {
        parse_signal(text);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(SignalLanguage, ReadsTheExampleOfItsOwnDescription) {
    const SignalSpec spec = parse_signal(
        "0-3: tone(f=1MHz, a=8000, phase=90) + noise(sigma=100); *: noise(30) + dc(-12)");
    ASSERT_EQ(spec.rules.size(), 2U);
    const SignalRule& first = spec.rules[0];
    EXPECT_FALSE(first.every_channel);
    ASSERT_EQ(first.ranges.size(), 1U);
    EXPECT_EQ(first.ranges[0].first, 0U);
    EXPECT_EQ(first.ranges[0].last, 3U);
    ASSERT_EQ(first.components.size(), 2U);
    const auto& tone = std::get<ToneSignal>(first.components[0]);
    EXPECT_EQ(tone.frequency_hz, 1e6);
    EXPECT_EQ(tone.amplitude, 8000);
    EXPECT_EQ(tone.phase_degrees, 90);
    EXPECT_EQ(tone.channel_step_hz, 0);
    EXPECT_EQ(std::get<NoiseSignal>(first.components[1]).sigma, 100);
    EXPECT_TRUE(spec.rules[1].every_channel);
    EXPECT_EQ(std::get<NoiseSignal>(spec.rules[1].components.at(0)).sigma, 30);
    EXPECT_EQ(std::get<DcSignal>(spec.rules[1].components.at(1)).level, -12);
}

TEST(SignalLanguage, ReadsUnitsOrBaseUnits) {
    EXPECT_EQ(only<ToneSignal>(parse_signal("tone(1e6, 2)")).frequency_hz, 1e6);
    EXPECT_EQ(only<ToneSignal>(parse_signal("tone(2.5GHz, 2)")).frequency_hz, 2.5e9);
    EXPECT_EQ(only<ToneSignal>(parse_signal("tone(f = -3 kHz, a=2, df=5 Hz)")).frequency_hz, -3e3);
    EXPECT_EQ(only<ToneSignal>(parse_signal("tone(a=2,df=5kHz,f=0)")).channel_step_hz, 5e3);
    EXPECT_DOUBLE_EQ(only<ChirpSignal>(parse_signal("chirp(0, 1MHz, 20ms, 9)")).period_s, 0.02);
    EXPECT_FALSE(only<StepSignal>(parse_signal("step(500, 9)")).at_is_seconds);
    EXPECT_TRUE(only<StepSignal>(parse_signal("step(0.5s, 9)")).at_is_seconds);
    EXPECT_DOUBLE_EQ(only<StepSignal>(parse_signal("step(at=7us, level=9)")).at, 7e-6);
    // 20 log10(1/2) = -6.0206 dB; 0 dBFS is 32768 counts.
    EXPECT_NEAR(only<ToneSignal>(parse_signal("tone(1e6, -6.0206dBFS)")).amplitude, 16384, 0.01);
    EXPECT_EQ(only<CombSignal>(parse_signal("comb(1kHz, 2kHz, 12, 5)")).lines, 12U);
    EXPECT_EQ(only<DcSignal>(parse_signal("dc(level=1, im=-2)")).imaginary, -2);
    EXPECT_EQ(only<ClipSignal>(parse_signal("clip(.5)")).limit, 0.5);
}

TEST(SignalLanguage, SaysWhereAndWhatIsWrong) {
    struct Case {
        std::string_view text;
        int character;
        std::string_view hint;
    };
    const Case cases[] = {
        {"", 1, "the end"},
        {"ton(1,2)", 1, "use one of tone, chirp, comb, noise, dc, step, clip"},
        {"0-3 tone(1,2)", 5, "write ':'"},
        {"3-1: dc(1)", 1, "write the lower number first"},
        {"1,: dc(1)", 3, "write a channel number"},
        {"99999999999: dc(1)", 1, "0 to 65535"},
        {"*: ", 4, "the end"},
        {"tone(f=1e6)", 1, "lacks a: write tone(f, a, phase=0, df=0)"},
        {"tone(f=1e6, a=1", 16, "write ',' or ')'"},
        {"tone(f=1e6, a)", 14, "write '=' and a number"},
        {"tone(f=1e6, b=1)", 13, "has no argument 'b'"},
        {"tone(f=1e6, 5)", 13, "name it"},
        {"tone(1e6, 5, f=2)", 14, "given twice"},
        {"noise(1, 2)", 10, "too many arguments"},
        {"noise(nan)", 7, "has no argument 'nan'"},
        {"noise(sigma=inf)", 13, "write a number"},
        {"noise(sigma=-1)", 13, "out of range: write 0"},
        {"noise(1e400)", 7, "out of range"},
        {"noise(3 Hz)", 9, "use no unit"},
        {"tone(1 mHz, 1)", 8, "use Hz, kHz, MHz, GHz or no unit"},
        {"comb(1, 1, 2.5, 1)", 12, "whole number"},
        {"comb(1, 1, 5000, 1)", 12, "write 1 to 1000"},
        {"chirp(1, 2, 0, 3)", 13, "out of range"},
        {"dc(1) dc(2)", 7, "write '+' and a component"},
        {"dc(1) +", 8, "the end"},
        {"dc(1);", 7, "the end"},
        {"dc 1", 4, "write dc(level, im=0)"},
        {"dc(1)\x01", 6, "not printable"},
    };
    for (const Case& wrong : cases) {
        const std::string message = refusal(wrong.text);
        EXPECT_TRUE(
            message.starts_with("signal, character " + std::to_string(wrong.character) + ": "))
            << wrong.text << " -> " << message;
        EXPECT_NE(message.find(wrong.hint), std::string::npos) << wrong.text << " -> " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
    }
}

TEST(SignalLanguage, RefusesMoreComponentsThanNoiseStreams) {
    std::string text = "dc(1)";
    for (int i = 1; i < 1000; ++i) {
        text += "+dc(1)";
    }
    EXPECT_EQ(refusal(text), "accepted");
    EXPECT_NE(refusal(text + "+dc(1)").find("at most 1000"), std::string::npos);
}

TEST(SignalLanguage, TheFirstRuleThatNamesAChannelHolds) {
    const SignalSpec spec = parse_signal("1,4-5: dc(1); 0-2: dc(2)");
    const auto rules = spec.rules_by_channel(7);
    const SignalRule* const one = &spec.rules[0];
    const SignalRule* const two = &spec.rules[1];
    EXPECT_EQ(rules, (std::vector<const SignalRule*>{two, one, two, nullptr, one, one, nullptr}));
}

TEST(SignalLanguage, RefusesRulesThatCannotHold) {
    EXPECT_THROW(parse_signal("0-3: dc(1)").rules_by_channel(3), UsageError);
    EXPECT_NO_THROW(parse_signal("0-3: dc(1)").rules_by_channel(4));
    EXPECT_THROW(parse_signal("*: dc(1); 2: dc(2)").rules_by_channel(4), UsageError);
    // The rest may be nothing: one text for streams of any width.
    EXPECT_NO_THROW(parse_signal("0-3: dc(1); *: dc(2)").rules_by_channel(4));
}

TEST(SignalLanguage, TheDefaultIsARampBelowNyquist) {
    Stream stream;
    stream.rate = {10'000'000, 1};
    const SignalSpec spec = parse_signal(default_signal(stream));
    const auto& tone = only<ToneSignal>(spec);
    EXPECT_DOUBLE_EQ(tone.frequency_hz, 200e3);       // 2 % of 10 MS/s
    EXPECT_DOUBLE_EQ(tone.channel_step_hz, 31250.0);  // 40 % of it / 128
    EXPECT_EQ(std::get<NoiseSignal>(spec.rules[0].components.at(1)).sigma, 30);
}

}  // namespace
}  // namespace echelle
