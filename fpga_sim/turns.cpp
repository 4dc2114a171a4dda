#include "fpga_sim/turns.hpp"

#include <cmath>
#include <numbers>

namespace echelle {
namespace {

// remainder / divisor as a binary fraction of 128 bits, by long division.
Turns fraction(Turns remainder, uint64_t divisor) {
    Turns bits = 0;
    for (int i = 0; i < 128; ++i) {
        remainder *= 2;
        bits *= 2;
        if (remainder >= divisor) {
            remainder -= divisor;
            bits += 1;
        }
    }
    return bits;
}

// (whole + part / 2^128) / 2^shift, of which only the fraction counts.
Turns shifted_down(Turns whole, Turns part, int shift) {
    if (shift == 0) {
        return part;
    }
    if (shift < 128) {
        return (whole << (128 - shift)) | (part >> shift);
    }
    return shift < 256 ? whole >> (shift - 128) : 0;
}

}  // namespace

Turns turns_per_sample(double frequency_hz, Rational rate) {
    if (frequency_hz == 0.0) {
        return 0;
    }
    if (frequency_hz < 0.0) {
        return -turns_per_sample(-frequency_hz, rate);
    }
    // A double is exactly mantissa * 2^exponent, so f / rate is a quotient of integers.
    int exponent = 0;
    const auto mantissa =
        static_cast<uint64_t>(std::ldexp(std::frexp(frequency_hz, &exponent), 53));
    exponent -= 53;
    const Turns product = Turns{mantissa} * rate.denominator;
    Turns remainder = product % rate.numerator;
    if (exponent < 0) {
        return shifted_down(product / rate.numerator, fraction(remainder, rate.numerator),
                            -exponent);
    }
    for (; exponent > 0; --exponent) {
        remainder = remainder * 2 % rate.numerator;
    }
    return fraction(remainder, rate.numerator);
}

Turns turns_from(long double turns) {
    const long double part = turns - std::floor(turns);
    return part < 1.0L ? static_cast<Turns>(std::ldexp(part, 128)) : 0;
}

UnitCircle::UnitCircle() {
    for (size_t i = 0; i < directions_.size(); ++i) {
        directions_[i] = std::polar(1.0, 2.0 * std::numbers::pi * static_cast<double>(i) /
                                             static_cast<double>(directions_.size()));
    }
}

}  // namespace echelle
