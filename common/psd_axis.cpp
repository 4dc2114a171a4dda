#include "common/psd_axis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/invariant.hpp"

namespace echelle {

namespace {

// 1 - 1/2 + 1/3 - ... + 1/terms, for an odd number of terms. Few terms are added one by one, the
// smallest first. Many follow from Boole's summation formula (DLMF 24.17.1), whose first neglected
// term, 1/(4 terms^6), is below a double's resolution from 513 terms on: so no count takes long.
double alternating_harmonic(uint64_t terms) {
    constexpr uint64_t most_added = 511;
    if (terms <= most_added) {
        double sum = 0.0;
        for (uint64_t pair = terms / 2; pair >= 1; --pair) {
            const double even = 2.0 * static_cast<double>(pair);
            sum += 1.0 / (even + 1.0) - 1.0 / even;
        }
        return 1.0 + sum;
    }
    const double inverse = 1.0 / static_cast<double>(terms);
    const double square = inverse * inverse;
    return std::numbers::ln2 + (0.5 * inverse - 0.25 * square + 0.125 * square * square);
}

}  // namespace

double bin_spacing_hz(uint32_t nperseg, Rational rate) {
    ECHELLE_INVARIANT(nperseg > 0 && rate.denominator > 0);
    // One rounding, not two: the product is exact for every rate below 2^29 in its denominator.
    return static_cast<double>(rate.numerator) /
           (static_cast<double>(rate.denominator) * static_cast<double>(nperseg));
}

double first_bin_hz(uint32_t nperseg, bool is_complex, Rational rate) {
    if (!is_complex) {
        return 0.0;
    }
    // Made from the spacing, so that first + index * spacing is exactly 0 at DC. Subtracted from 0
    // because the negation would give -0.0 for one bin.
    const uint32_t bins_below_dc = nperseg / 2;
    return 0.0 - bins_below_dc * bin_spacing_hz(nperseg, rate);
}

double median_bias(uint64_t n) {
    ECHELLE_INVARIANT(n >= 1);
    // Allen et al., gr-qc/0509116, appendix B, for odd n; scipy takes the odd number below an
    // even n.
    return alternating_harmonic(n % 2 == 1 ? n : n - 1);
}

float median_in_place(std::span<float> values) {
    ECHELLE_INVARIANT(!values.empty());
    // numpy answers NaN when any value is; besides, nth_element needs an order that NaN has not.
    if (std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); })) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    const float below = *std::max_element(values.begin(), middle);
    // In double, where the sum of two floats cannot overflow; the same float otherwise.
    return static_cast<float>(0.5 * (static_cast<double>(below) + static_cast<double>(*middle)));
}

}  // namespace echelle
