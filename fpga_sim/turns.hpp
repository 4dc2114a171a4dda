// Phase as a fraction of a turn, in fixed point: 2^128 is one turn, and wrapping round is what
// unsigned integers do anyway. A tone's phase is step * sample index, exact in integers: it does
// not drift, and does not depend on where a frame begins. The step itself is off by less than
// 2^-128 turns, so sample 2^40 is off by less than 2^-88 turns.
#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include "common/rational.hpp"

namespace echelle {

__extension__ using Turns = unsigned __int128;

// Turns per sample of a frequency in Hz; any finite double, negative ones turn backwards. Whole
// turns vanish: a frequency beyond the Nyquist frequency aliases, as it does in an ADC without a
// filter.
Turns turns_per_sample(double frequency_hz, Rational rate);

// The fractional part of a finite number of turns.
Turns turns_from(long double turns);

// e^(i 2 pi phase), to 4e-12: a table of 1024 directions, and Taylor's series between them.
class UnitCircle {
  public:
    UnitCircle();

    std::complex<double> at(Turns phase) const {
        constexpr int table_shift = 64 - table_bits;
        constexpr double radians_per_step = 6.283185307179586477 * 0x1p-64;
        const auto turn = static_cast<uint64_t>(phase >> 64);
        const uint64_t nearest = turn + (uint64_t{1} << (table_shift - 1));
        const std::complex<double>& near = directions_[nearest >> table_shift];
        const auto rest = static_cast<int64_t>(turn - (nearest >> table_shift << table_shift));
        const double angle = static_cast<double>(rest) * radians_per_step;  // |angle| <= pi / 1024
        const double square = angle * angle;
        const double cosine = 1.0 - 0.5 * square;
        const double sine = angle - angle * square * (1.0 / 6.0);
        return {near.real() * cosine - near.imag() * sine,
                near.imag() * cosine + near.real() * sine};
    }

  private:
    static constexpr int table_bits = 10;
    std::array<std::complex<double>, 1 << table_bits> directions_;
};

}  // namespace echelle
