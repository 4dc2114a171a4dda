#include "clients/record/spectrum_shape.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <span>
#include <utility>

namespace echelle::record {
namespace {

// In the order of docs/packet.md.
constexpr std::array windows{"boxcar",         "hann",    "hamming", "blackman",
                             "blackmanharris", "flattop", "kaiser",  "tukey"};
constexpr std::array scalings{"density", "spectrum"};
constexpr std::array detrends{"none", "constant"};
constexpr std::array averages{"mean", "median", "max"};

std::string name_of(std::span<const char* const> names, unsigned int number, const char* kind) {
    return number < names.size() ? names[number] : std::string(kind) + "-" + std::to_string(number);
}

std::string text_of(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.17g", value);
    return text.data();
}
std::string text_of(uint64_t value) {
    return std::to_string(value);
}
std::string text_of(uint32_t value) {
    return std::to_string(value);
}
const std::string& text_of(const std::string& value) {
    return value;
}

bool are_same(double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
template <typename Value>
bool are_same(const Value& a, const Value& b) {
    return a == b;
}

}  // namespace

SpectrumShape shape_of(const client::SpectrumPacket& packet, std::vector<uint32_t> channels) {
    const client::Trailer& trailer = packet.trailer.value();
    SpectrumShape shape;
    shape.channels = std::move(channels);
    shape.bins = packet.fft_size;
    shape.first_bin_hz = trailer.first_bin_hz;
    shape.bin_spacing_hz = trailer.bin_spacing_hz;
    shape.rate_numerator = trailer.rate.numerator;
    shape.rate_denominator = trailer.rate.denominator;
    shape.nperseg = trailer.nperseg;
    shape.noverlap = trailer.noverlap;
    shape.window = name_of(windows, trailer.window, "window");
    shape.scaling = name_of(scalings, trailer.scaling, "scaling");
    shape.detrend = name_of(detrends, trailer.detrend, "detrend");
    shape.average = name_of(averages, trailer.average, "average");
    shape.unit = packet.unit();
    return shape;
}

bool have_same_shape(const client::SpectrumPacket& a, const client::SpectrumPacket& b) {
    constexpr uint16_t kind = client::flag::two_sided | client::flag::volts;
    const client::Trailer& x = a.trailer.value();
    const client::Trailer& y = b.trailer.value();
    return a.fft_size == b.fft_size && are_same(x.first_bin_hz, y.first_bin_hz) &&
           are_same(x.bin_spacing_hz, y.bin_spacing_hz) && x.rate.numerator == y.rate.numerator &&
           x.rate.denominator == y.rate.denominator && x.nperseg == y.nperseg &&
           x.noverlap == y.noverlap && x.window == y.window && x.scaling == y.scaling &&
           x.detrend == y.detrend && x.average == y.average && (x.flags & kind) == (y.flags & kind);
}

std::string difference(const SpectrumShape& there, const SpectrumShape& here) {
    std::string text;
    const auto add = [&](const char* name, const auto& a, const auto& b) {
        if (!are_same(a, b)) {
            text += (text.empty() ? "" : ", ") + std::string(name) + " " + text_of(a) +
                    " there and " + text_of(b) + " here";
        }
    };
    add("number of channels", uint64_t{there.channels.size()}, uint64_t{here.channels.size()});
    if (text.empty() && there.channels != here.channels) {
        text = "other channel numbers";
    }
    add("bins", there.bins, here.bins);
    add("rate numerator", there.rate_numerator, here.rate_numerator);
    add("rate denominator", there.rate_denominator, here.rate_denominator);
    add("nperseg", there.nperseg, here.nperseg);
    add("noverlap", there.noverlap, here.noverlap);
    add("window", there.window, here.window);
    add("scaling", there.scaling, here.scaling);
    add("detrend", there.detrend, here.detrend);
    add("average", there.average, here.average);
    add("unit", there.unit, here.unit);
    add("first bin", there.first_bin_hz, here.first_bin_hz);
    add("bin spacing", there.bin_spacing_hz, here.bin_spacing_hz);
    return text;
}

}  // namespace echelle::record
