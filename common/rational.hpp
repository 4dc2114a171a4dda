// An exact positive ratio: sample rates such as 200/3 Hz, and the sample index -> time arithmetic
// that must never drift (digital_rf #4, #60, #85 are what a double does here).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace echelle {

struct Rational {
    uint64_t numerator = 0;
    uint64_t denominator = 1;

    double value() const {
        return static_cast<double>(numerator) / static_cast<double>(denominator);
    }
    bool is_positive() const { return numerator > 0 && denominator > 0; }
    bool operator==(const Rational&) const = default;

    // Lowest terms. Denominator must not be zero.
    static Rational reduced(uint64_t numerator, uint64_t denominator);
    // "48000", "48e3", "10M" is not accepted, "66.666", "200/3". Throws UsageError naming `what`.
    static Rational parse(std::string_view text, std::string_view what);
    // The ratio of smallest denominator within one part in 10^15 of `value`, which must be at
    // least 2^-63 and below 2^63; exact for every integer. Throws UsageError naming `what`
    // otherwise.
    static Rational from_double(double value, std::string_view what);

    std::string text() const;
};

// Nanoseconds from sample 0 to sample `index` at `rate` samples per second, rounded to nearest.
int64_t sample_time_ns(uint64_t index, Rational rate);

}  // namespace echelle
