#include "coordinator/options.hpp"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "echelle-coordinator");
    return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, DefaultsAreThoseOfTheDesign) {
    const Options options = parse({}).options;
    EXPECT_EQ(options.source, "sim:");
    EXPECT_EQ(options.welch.nperseg, 1024U);
    EXPECT_EQ(options.welch.noverlap, 512U);
    EXPECT_EQ(options.welch.window, Window{});
    EXPECT_EQ(options.welch.detrend, Detrend::constant);
    EXPECT_EQ(options.welch.scaling, Scaling::density);
    EXPECT_EQ(options.welch.average_mode, AverageMode::mean);
    EXPECT_TRUE(options.welch.pair_channels);
    EXPECT_EQ(options.average.frames, 16U);
    EXPECT_EQ(options.notify, NotifyKind::zmq);
    EXPECT_EQ(options.pin, "auto");
    EXPECT_DOUBLE_EQ(options.budget_us, 100);
}

TEST(Options, NoverlapFollowsNpersegAsInScipy) {
    EXPECT_EQ(parse({"--nperseg", "101"}).options.welch.noverlap, 50U);
    EXPECT_EQ(parse({"--nperseg", "1"}).options.welch.noverlap, 0U);
    EXPECT_EQ(parse({"--nperseg", "100", "--noverlap", "0"}).options.welch.noverlap, 0U);
}

TEST(Options, AverageTakesFramesAllOrSeconds) {
    Stream stream;
    stream.rate = {10'000'000, 1};
    EXPECT_EQ(Average::parse("all").frames_for(stream), 0U);
    EXPECT_EQ(Average::parse("7").frames_for(stream), 7U);
    EXPECT_EQ(Average::parse("0.1s").frames_for(stream), 488U);  // 0.1 s / 204.8 us = 488.28
    EXPECT_EQ(Average::parse("1e-9s").frames_for(stream), 1U);
}

TEST(Options, WhatIsWrongIsNamed) {
    const struct {
        std::vector<const char*> arguments;
        const char* expected;
    } wrong[] = {
        {{"--workers", "0"}, "--workers '0'"},
        {{"--workers", "two"}, "--workers 'two'"},
        {{"--nperseg", "0"}, "--nperseg '0'"},
        {{"--nperseg", "256", "--noverlap", "256"}, "noverlap"},
        {{"--window", "hunn"}, "hunn"},
        {{"--window", "kaiser"}, "kaiser"},
        {{"--average", "0"}, "--average '0'"},
        {{"--average", "s"}, "--average ''"},
        {{"--average-mode", "mode"}, "mode"},
        {{"--rate", "-1"}, "--rate"},
        {{"--channels", "0"}, "--channels '0'"},
        {{"--on-overrun", "wait"}, "--on-overrun 'wait'"},
        {{"--notify", "mail"}, "mail"},
        {{"--budget-us", "nan"}, "--budget-us 'nan'"},
        {{"--volts-per-count", "0"}, "--volts-per-count '0'"},
        {{"--pair-channels", "yes"}, "--pair-channels 'yes'"},
        {{"--no-such-option"}, "no-such-option"},
    };
    for (const auto& example : wrong) {
        try {
            parse(example.arguments);
            ADD_FAILURE() << example.arguments[0] << " was accepted";
        } catch (const UsageError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(example.expected), std::string::npos) << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        }
    }
}

TEST(Options, AFileGivesWhatTheCommandLineDoesNot) {
    char name[] = "/tmp/echelle-test-XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    std::ofstream(name) << "nperseg = 512\nwindow = \"kaiser,8.6\"\nquiet = true\n";
    const Options options = parse({"--config", name, "--nperseg", "256"}).options;
    EXPECT_EQ(options.welch.nperseg, 256U);
    EXPECT_EQ(options.welch.window.kind, WindowKind::kaiser);
    EXPECT_TRUE(options.quiet);
    std::remove(name);
    close(fd);
}

TEST(Options, AFileWithAnUnknownNameIsRefused) {
    char name[] = "/tmp/echelle-test-XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    std::ofstream(name) << "workerz = 2\n";
    EXPECT_THROW(parse({"--config", name}), UsageError);
    std::remove(name);
    close(fd);
}

TEST(Options, WorkersAreANumberOrARange) {
    EXPECT_FALSE(WorkerRange::parse("3").scales_itself());
    EXPECT_EQ(WorkerRange::parse("2..8").most, 8U);
    for (const char* wrong : {"0", "8..2", "2..", "..8", "2...8", "-1"}) {
        EXPECT_THROW(WorkerRange::parse(wrong), UsageError) << wrong;
    }
}

TEST(Options, HelpIsAnswered) {
    const ParsedOptions help = parse({"--help"});
    EXPECT_FALSE(help.run);
    EXPECT_NE(help.text.find("--nperseg"), std::string::npos);
}

}  // namespace
}  // namespace echelle
