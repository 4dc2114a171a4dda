#include "clients/mqtt/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace echelle::mqtt {
namespace {

constexpr uint32_t most_doublings = 40;
constexpr uint32_t most_take_over_doublings = 4;

}  // namespace

Backoff::Backoff(BackoffLimits limits, uint64_t seed) : limits_(limits), random_(seed) {}

double Backoff::drawn(double from_s, double to_s) {
    return std::uniform_real_distribution<double>(from_s, to_s)(random_);
}

double Backoff::next_s() {
    const double whole_s =
        std::min(limits_.most_s, std::ldexp(limits_.least_s, static_cast<int>(failures_)));
    failures_ = std::min(failures_ + 1, most_doublings);
    return drawn(whole_s / 4, whole_s);
}

double Backoff::next_after_take_over_s() {
    const double least_s = std::ldexp(limits_.most_s, static_cast<int>(take_overs_));
    take_overs_ = std::min(take_overs_ + 1, most_take_over_doublings);
    return drawn(least_s, 2 * least_s);
}

void Backoff::reset() {
    failures_ = 0;
    take_overs_ = 0;
}

}  // namespace echelle::mqtt
