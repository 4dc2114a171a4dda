#include "common/rational.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

// Not pedantic ISO C++, but exact: products of two 64-bit numbers must not round.
__extension__ using uint128 = unsigned __int128;

constexpr uint64_t largest = std::numeric_limits<uint64_t>::max();
constexpr int largest_power_of_ten = 38;  // 10^38 < 2^128 < 10^39

[[noreturn]] void refuse(std::string_view what, std::string_view seen, std::string_view why) {
    constexpr size_t longest_quoted = 60;
    const bool cut = seen.size() > longest_quoted;
    throw UsageError(std::string(what) + " '" + std::string(seen.substr(0, longest_quoted)) +
                     (cut ? "...' " : "' ") + std::string(why) +
                     ": give a positive number such as 48000, 2.048e6 or 200/3");
}

uint128 greatest_common_divisor(uint128 a, uint128 b) {
    while (b != 0) {
        const uint128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint128 power_of_ten(int exponent) {
    uint128 power = 1;
    for (int i = 0; i < exponent; ++i) {
        power *= 10;
    }
    return power;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A decimal as written: `digits` x 10^exponent, without leading or trailing zeros in `digits`.
struct Decimal {
    std::string digits;
    int64_t exponent = 0;
};

// Reads "12", ".5", "48e3", "2.048E+6"; an empty `digits` means zero. False: not a decimal.
bool read_decimal(std::string_view text, Decimal& decimal) {
    size_t at = 0;
    size_t digits_seen = 0;
    bool after_point = false;
    for (; at < text.size() && (is_digit(text[at]) || text[at] == '.'); ++at) {
        if (text[at] == '.') {
            if (after_point) {
                return false;
            }
            after_point = true;
            continue;
        }
        ++digits_seen;
        decimal.exponent -= after_point ? 1 : 0;
        if (!decimal.digits.empty() || text[at] != '0') {
            decimal.digits += text[at];
        }
    }
    if (digits_seen == 0) {
        return false;
    }
    if (at < text.size()) {
        if (text[at] != 'e' && text[at] != 'E') {
            return false;
        }
        std::string_view written = text.substr(at + 1);
        if (written.starts_with('+') && written.size() > 1 && is_digit(written[1])) {
            written.remove_prefix(1);
        }
        int32_t exponent = 0;
        const char* const end = written.data() + written.size();
        const auto [stop, error] = std::from_chars(written.data(), end, exponent);
        if (error == std::errc::result_out_of_range && stop == end) {
            exponent = written.starts_with('-') ? std::numeric_limits<int32_t>::min()
                                                : std::numeric_limits<int32_t>::max();
        } else if (error != std::errc() || stop != end) {
            return false;
        }
        decimal.exponent += exponent;
    }
    while (decimal.digits.ends_with('0')) {
        decimal.digits.pop_back();
        ++decimal.exponent;
    }
    return true;
}

Rational parse_decimal(std::string_view text, std::string_view what) {
    Decimal decimal;
    if (!read_decimal(text, decimal)) {
        refuse(what, text, "is not a positive number");
    }
    if (decimal.digits.empty()) {
        refuse(what, text, "is zero");
    }
    if (decimal.digits.size() > static_cast<size_t>(largest_power_of_ten) ||
        decimal.exponent < -largest_power_of_ten || decimal.exponent > largest_power_of_ten) {
        refuse(what, text, "has too many digits or too large an exponent");
    }
    uint128 numerator = 0;
    for (const char digit : decimal.digits) {
        numerator = numerator * 10 + static_cast<unsigned>(digit - '0');
    }
    uint128 denominator = 1;
    if (decimal.exponent < 0) {
        denominator = power_of_ten(static_cast<int>(-decimal.exponent));
    }
    for (int64_t i = 0; i < decimal.exponent && numerator <= largest; ++i) {
        numerator *= 10;
    }
    const uint128 divisor = greatest_common_divisor(numerator, denominator);
    ECHELLE_INVARIANT(divisor != 0);
    numerator /= divisor;
    denominator /= divisor;
    if (numerator > largest || denominator > largest) {
        refuse(what, text, "does not fit a ratio of 64-bit numbers");
    }
    return {static_cast<uint64_t>(numerator), static_cast<uint64_t>(denominator)};
}

uint64_t parse_term(std::string_view term, std::string_view text, std::string_view what) {
    uint64_t value = 0;
    const char* const end = term.data() + term.size();
    const auto [stop, error] = std::from_chars(term.data(), end, value);
    if (error == std::errc::result_out_of_range) {
        refuse(what, text, "does not fit a ratio of 64-bit numbers");
    }
    if (error != std::errc() || stop != end) {
        refuse(what, text, "is not a ratio of two whole numbers");
    }
    if (value == 0) {
        refuse(what, text, "has a zero in it");
    }
    return value;
}

// whole + rest / divisor, rest < divisor.
struct MixedNumber {
    uint128 whole = 0;
    uint128 rest = 0;
    uint128 divisor = 1;
};

struct Ratio {
    uint128 numerator = 0;
    uint128 denominator = 1;
};

MixedNumber divide(uint128 dividend, uint128 divisor) {
    return {dividend / divisor, dividend % divisor, divisor};
}

// dividend x 2^shift / divisor by long division, for products wider than 128 bits.
MixedNumber divide_shifted(uint128 dividend, int shift, uint128 divisor) {
    MixedNumber result = divide(dividend, divisor);
    for (int i = 0; i < shift; ++i) {
        result.rest *= 2;
        result.whole *= 2;
        if (result.rest >= divisor) {
            result.rest -= divisor;
            ++result.whole;
        }
    }
    return result;
}

// The ratio of smallest denominator in [low, high]: the two continued fractions as far as they
// agree, then the smallest term between them (Knuth, TAOCP 2, 4.5.3, exercise 39). The depth is the
// number of terms, under 150 for 103-bit numbers.
Ratio simplest_between(const MixedNumber& low, const MixedNumber& high) {
    if (low.rest == 0) {
        return {low.whole, 1};
    }
    if (low.whole < high.whole) {
        return {low.whole + 1, 1};
    }
    const Ratio inverse =
        simplest_between(divide(high.divisor, high.rest), divide(low.divisor, low.rest));
    return {low.whole * inverse.numerator + inverse.denominator, inverse.numerator};
}

// `fraction` x 2^exponent with a 53-bit `fraction`, not an integer, at least 2^-63.
Ratio simplest_near(uint64_t fraction, int exponent) {
    constexpr uint64_t parts = 1'000'000'000'000'000;  // the tolerance is one part of these
    const uint128 low = uint128{fraction} * (parts - 1);
    const uint128 high = uint128{fraction} * (parts + 1);
    const int shift = -exponent;  // positive: the value is not an integer
    if (shift <= 53) {            // 2^53 x 10^15 < 2^128
        const uint128 divisor = uint128{parts} << shift;
        return simplest_between(divide(low, divisor), divide(high, divisor));
    }
    // Below 1: work on the reciprocal, whose simplest ratio is the same one upside down.
    const Ratio inverse =
        simplest_between(divide_shifted(parts, shift, high), divide_shifted(parts, shift, low));
    return {inverse.denominator, inverse.numerator};
}

}  // namespace

Rational Rational::reduced(uint64_t numerator, uint64_t denominator) {
    ECHELLE_INVARIANT(denominator != 0);
    const uint64_t divisor = std::gcd(numerator, denominator);
    return {numerator / divisor, denominator / divisor};
}

Rational Rational::parse(std::string_view text, std::string_view what) {
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return parse_decimal(text, what);
    }
    return reduced(parse_term(text.substr(0, slash), text, what),
                   parse_term(text.substr(slash + 1), text, what));
}

Rational Rational::from_double(double value, std::string_view what) {
    constexpr double smallest = 0x1p-63;
    constexpr double limit = 0x1p63;
    if (!(value >= smallest && value < limit)) {
        char seen[32] = {};
        std::to_chars(seen, seen + sizeof seen - 1, value);
        refuse(what, seen, "is not between 2^-63 and 2^63");
    }
    if (value == std::floor(value)) {
        return {static_cast<uint64_t>(value), 1};
    }
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    const Ratio ratio =
        simplest_near(static_cast<uint64_t>(std::ldexp(fraction, 53)), exponent - 53);
    if (ratio.numerator > largest || ratio.denominator > largest) {
        refuse(what, std::to_string(value), "does not fit a ratio of 64-bit numbers");
    }
    return {static_cast<uint64_t>(ratio.numerator), static_cast<uint64_t>(ratio.denominator)};
}

std::string Rational::text() const {
    const std::string top = std::to_string(numerator);
    return denominator == 1 ? top : top + "/" + std::to_string(denominator);
}

int64_t sample_time_ns(uint64_t index, Rational rate) {
    ECHELLE_INVARIANT(rate.is_positive());
    constexpr uint64_t ns_per_s = 1'000'000'000;
    constexpr auto latest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const uint128 ticks = uint128{index} * rate.denominator;  // of 1 / numerator seconds
    const uint128 seconds = ticks / rate.numerator;
    const uint128 rest = ticks % rate.numerator;
    if (seconds > latest / ns_per_s) {
        return static_cast<int64_t>(latest);
    }
    const uint128 ns = seconds * ns_per_s + (rest * ns_per_s + rate.numerator / 2) / rate.numerator;
    return static_cast<int64_t>(ns < latest ? ns : latest);
}

}  // namespace echelle
