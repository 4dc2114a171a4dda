#include "fpga_sim/signal_forms.hpp"

#include <charconv>
#include <cmath>

namespace echelle {
namespace {

constexpr double full_scale = 32768;
constexpr double largest_line_count = 1000;

struct Unit {
    Quantity quantity;
    std::string_view name;
    double factor;
};
constexpr std::array units{
    Unit{Quantity::frequency, "Hz", 1},    Unit{Quantity::frequency, "kHz", 1e3},
    Unit{Quantity::frequency, "MHz", 1e6}, Unit{Quantity::frequency, "GHz", 1e9},
    Unit{Quantity::angle, "deg", 1},       Unit{Quantity::duration, "s", 1},
    Unit{Quantity::duration, "ms", 1e-3},  Unit{Quantity::duration, "us", 1e-6},
    Unit{Quantity::duration, "ns", 1e-9},  Unit{Quantity::moment, "s", 1},
    Unit{Quantity::moment, "ms", 1e-3},    Unit{Quantity::moment, "us", 1e-6},
    Unit{Quantity::moment, "ns", 1e-9},    Unit{Quantity::amplitude, "dBFS", 0},
};

}  // namespace

std::span<const SignalForm> signal_forms() {
    static const std::array<SignalForm, 7> all{
        SignalForm{"tone",
                   {{"f", Quantity::frequency, {}},
                    {"a", Quantity::amplitude, {}},
                    {"phase", Quantity::angle, 0.0},
                    {"df", Quantity::frequency, 0.0}},
                   [](const SignalValues& v) -> SignalComponent {
                       return ToneSignal{v[0].number, v[1].number, v[2].number, v[3].number};
                   }},
        SignalForm{"chirp",
                   {{"f0", Quantity::frequency, {}},
                    {"f1", Quantity::frequency, {}},
                    {"t", Quantity::duration, {}, 1e-9},
                    {"a", Quantity::amplitude, {}}},
                   [](const SignalValues& v) -> SignalComponent {
                       return ChirpSignal{v[0].number, v[1].number, v[2].number, v[3].number};
                   }},
        SignalForm{"comb",
                   {{"f0", Quantity::frequency, {}},
                    {"spacing", Quantity::frequency, {}},
                    {"n", Quantity::number, {}, 1, largest_line_count, true},
                    {"a", Quantity::amplitude, {}}},
                   [](const SignalValues& v) -> SignalComponent {
                       return CombSignal{v[0].number, v[1].number,
                                         static_cast<uint32_t>(v[2].number), v[3].number};
                   }},
        SignalForm{
            "noise",
            {{"sigma", Quantity::number, {}, 0}},
            [](const SignalValues& v) -> SignalComponent { return NoiseSignal{v[0].number}; }},
        SignalForm{"dc",
                   {{"level", Quantity::number, {}}, {"im", Quantity::number, 0.0}},
                   [](const SignalValues& v) -> SignalComponent {
                       return DcSignal{v[0].number, v[1].number};
                   }},
        SignalForm{"step",
                   {{"at", Quantity::moment, {}, 0}, {"level", Quantity::number, {}}},
                   [](const SignalValues& v) -> SignalComponent {
                       return StepSignal{v[0].number, v[0].has_unit, v[1].number};
                   }},
        SignalForm{
            "clip",
            {{"limit", Quantity::number, {}, 0}},
            [](const SignalValues& v) -> SignalComponent { return ClipSignal{v[0].number}; }},
    };
    return all;
}

std::string SignalForm::text() const {
    std::string all(name);
    char separator = '(';
    for (const SignalParameter& parameter : parameters) {
        all += separator == '(' ? "(" : ", ";
        all += parameter.name;
        all += parameter.otherwise ? "=0" : "";
        separator = ',';
    }
    return all + ")";
}

std::string signal_form_names() {
    std::string names;
    for (const SignalForm& form : signal_forms()) {
        names += (names.empty() ? "" : ", ") + std::string(form.name);
    }
    return names;
}

std::optional<double> in_base_unit(Quantity quantity, double number, std::string_view unit) {
    if (quantity == Quantity::amplitude && unit == "dBFS") {
        return full_scale * std::pow(10.0, number / 20.0);
    }
    for (const Unit& known : units) {
        if (known.quantity == quantity && known.name == unit) {
            return number * known.factor;
        }
    }
    return std::nullopt;
}

std::string units_of(Quantity quantity) {
    std::string list;
    for (const Unit& unit : units) {
        if (unit.quantity == quantity) {
            list += (list.empty() ? "" : ", ") + std::string(unit.name);
        }
    }
    return list.empty() ? "no unit" : list + " or no unit";
}

std::string signal_number_text(double number) {
    std::array<char, 40> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number,
                                            std::chars_format::general, 12);
    return {text.data(), end};
}

}  // namespace echelle
