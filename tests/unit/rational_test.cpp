#include "common/rational.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr uint64_t most = std::numeric_limits<uint64_t>::max();

TEST(Rational, ParsesDecimalsExactly) {
    const struct {
        const char* text;
        Rational expected;
    } cases[] = {
        {"48000", {48000, 1}},
        {"48e3", {48000, 1}},
        {"48E+3", {48000, 1}},
        {"2.048e6", {2'048'000, 1}},
        {"66.666", {33333, 500}},
        {"0.1", {1, 10}},
        {".5", {1, 2}},
        {"5.", {5, 1}},
        {"0001.2500", {5, 4}},
        {"1e-5", {1, 100'000}},
        {"1e19", {10'000'000'000'000'000'000U, 1}},
        {"18446744073709551615", {most, 1}},
        {"1000000000000000000000e-20", {10, 1}},
        {"200/3", {200, 3}},
        {"400/6", {200, 3}},
        {"18446744073709551615/18446744073709551615", {1, 1}},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(Rational::parse(text, "rate"), expected) << text;
    }
}

TEST(Rational, RefusesWhatIsNotAPositiveNumber) {
    const char* cases[] = {
        "",
        "0",
        "0.0",
        "0e5",
        "-1",
        "+1",
        "10M",
        "1e",
        "1e+",
        "1e+-3",
        "1.2.3",
        ".",
        "e3",
        "1 ",
        " 1",
        "1,5",
        "inf",
        "nan",
        "0x10",
        "200/0",
        "0/3",
        "1/",
        "/3",
        "1/2/3",
        "-1/3",
        "1/-3",
        "1.5/2",
        "1e20",
        "1e400",
        "1e-400",
        "1e-20",
        "18446744073709551616",
        "1e99999999999",
        "1e-99999999999",
        "18446744073709551616/3",
        "0.00000000000000000001",
    };
    for (const char* text : cases) {
        EXPECT_THROW(Rational::parse(text, "rate"), UsageError) << text;
    }
}

TEST(Rational, RefusalNamesTheThingAndTheValueOnOneLine) {
    try {
        Rational::parse("10M", "--rate");
        FAIL() << "accepted";
    } catch (const UsageError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("--rate"), std::string::npos) << message;
        EXPECT_NE(message.find("'10M'"), std::string::npos) << message;
    }
    try {
        Rational::parse(std::string(100'000, 'x'), "--rate");
        FAIL() << "accepted";
    } catch (const UsageError& error) {
        EXPECT_LT(std::string(error.what()).size(), 300U);
    }
}

// Expected values: Python's fractions, simplest fraction between the exact bounds.
TEST(Rational, FindsTheSimplestRatioNearADouble) {
    const struct {
        double value;
        Rational expected;
    } cases[] = {
        {48000.0, {48000, 1}},
        {66.666, {33333, 500}},
        {200.0 / 3.0, {200, 3}},
        {1.0 / 3.0, {1, 3}},
        {44100.5, {88201, 2}},
        {0x1.30dee04924925p+23, {69'930'001, 7}},
        {1e-5, {1, 100'000}},
        {0.1, {1, 10}},
        {0x1.921fb54442d18p+1, {74'724'506, 23'785'549}},
        {0x1p62, {uint64_t{1} << 62, 1}},
        {9007199254740993.0 * 4, {36028797018963968U, 1}},
        {1e15 + 0.5, {1'000'000'000'000'000, 1}},
        {3.0e-19, {1, 3'333'333'333'333'330'083U}},
        {0x1p-63, {1, 9'223'372'036'854'766'585U}},
        {1234567.891, {1'234'567'891, 1000}},
        {0x1.d4481eb076aa5p+24, {30'720'000'000, 1001}},
        {0x1.7e906c9adab3bp-39, {52, 19'129'730'940'915U}},
        {0x1.7700000000001p+15, {48000, 1}},
        {0x1.fffffffffffffp-1, {1, 1}},
    };
    for (const auto& [value, expected] : cases) {
        EXPECT_EQ(Rational::from_double(value, "rate"), expected) << value;
    }
}

TEST(Rational, RefusesDoublesThatAreNoRate) {
    const double cases[] = {0.0,    -0.0,   -1.0,         0x1p63,   1e300,
                            1e-300, 5e-324, std::nan(""), HUGE_VAL, -HUGE_VAL};
    for (const double value : cases) {
        EXPECT_THROW(Rational::from_double(value, "rate"), UsageError) << value;
    }
}

TEST(Rational, TextCanBeParsedAgain) {
    EXPECT_EQ((Rational{48000, 1}).text(), "48000");
    EXPECT_EQ((Rational{200, 3}).text(), "200/3");
}

// Expected values: Python's integers, floor(x + 1/2).
TEST(SampleTime, IsExactAtAnyIndex) {
    constexpr int64_t latest = std::numeric_limits<int64_t>::max();
    const struct {
        uint64_t index;
        Rational rate;
        int64_t expected;
    } cases[] = {
        {0, {48000, 1}, 0},
        {1, {48000, 1}, 20'833},
        {1, {200, 3}, 15'000'000},
        {2, {200, 3}, 30'000'000},
        {4'882'813, {10'000'000, 1}, 488'281'300},
        {9'007'199'254'740'993, {10'000'000, 1}, 900'719'925'474'099'300},
        {uint64_t{1} << 63, {10'000'000'000, 1}, 922'337'203'685'477'581},
        {1, {2'000'000'000, 1}, 1},
        {3, {2'000'000'000, 1}, 2},
        {most, {most, 1}, 1'000'000'000},
        {9'223'372'036, {1, 1}, 9'223'372'036'000'000'000},
        // Beyond the year 2262: the latest time there is.
        {9'223'372'037, {1, 1}, latest},
        {uint64_t{1} << 63, {10'000'000, 1}, latest},
        {uint64_t{1} << 63, {1, 1}, latest},
        {most, {1, most}, latest},
    };
    for (const auto& [index, rate, expected] : cases) {
        EXPECT_EQ(sample_time_ns(index, rate), expected) << index << " at " << rate.text();
    }
}

}  // namespace
}  // namespace echelle
