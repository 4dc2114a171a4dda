// The components of the signal language as a table: their names, what their arguments are called,
// in which units they may be written, and how they are made. The parser reads by this table, and so
// do its messages.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpga_sim/signal_language.hpp"

namespace echelle {

inline constexpr double largest_signal_number = 1e15;
inline constexpr size_t most_signal_parameters = 4;

enum class Quantity { frequency, amplitude, angle, duration, moment, number };

// A number as written, in the base unit: Hz, counts, degrees, seconds. A moment without a unit is
// in samples.
struct SignalValue {
    double number = 0;
    bool has_unit = false;
};
using SignalValues = std::array<SignalValue, most_signal_parameters>;

struct SignalParameter {
    std::string_view name;
    Quantity quantity = Quantity::number;
    std::optional<double> otherwise;  // the value when it is not written
    double smallest = -largest_signal_number;
    double largest = largest_signal_number;
    bool whole = false;
};

struct SignalForm {
    std::string_view name;
    std::vector<SignalParameter> parameters;  // at most most_signal_parameters
    SignalComponent (*make)(const SignalValues& values);

    // As it is written: "tone(f, a, phase=0, df=0)".
    std::string text() const;
};

std::span<const SignalForm> signal_forms();
// "tone, chirp, …"
std::string signal_form_names();

// The number in the quantity's base unit; absent when the quantity has no unit of that name.
std::optional<double> in_base_unit(Quantity quantity, double number, std::string_view unit);
// "Hz, kHz, MHz, GHz or no unit"
std::string units_of(Quantity quantity);

// 12 significant digits, as the language reads them.
std::string signal_number_text(double number);

}  // namespace echelle
