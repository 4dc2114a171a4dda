#include "clients/hub/spectrum_average.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr uint16_t kind_flags = PacketFlag::two_sided | PacketFlag::volts;
constexpr uint64_t most_counted = std::numeric_limits<uint32_t>::max();

uint32_t counted(uint64_t sum) {
    return static_cast<uint32_t>(std::min(sum, most_counted));
}

bool is_same_kind(const PacketTrailer& one, const PacketTrailer& other) {
    return (one.flags & kind_flags) == (other.flags & kind_flags) && one.rate == other.rate &&
           one.first_bin_hz == other.first_bin_hz && one.bin_spacing_hz == other.bin_spacing_hz &&
           one.nperseg == other.nperseg && one.noverlap == other.noverlap &&
           one.window == other.window && one.scaling == other.scaling &&
           one.detrend == other.detrend && one.average == other.average;
}

}  // namespace

bool SpectrumAverage::follows(const CheckedSpectrum& spectrum) const {
    return spectrum.header.fft_size == header_.fft_size &&
           spectrum.trailer.sequence > last_sequence_ &&
           spectrum.trailer.first_sample >= trailer_.first_sample &&
           is_same_kind(spectrum.trailer, trailer_);
}

void SpectrumAverage::begin(const CheckedSpectrum& spectrum) {
    clear();
    header_ = spectrum.header;
    trailer_ = spectrum.trailer;
    trailer_.segments_averaged = 0;
    trailer_.segments_expected = 0;
    trailer_.over_range_count = 0;
    sums_.assign(header_.fft_size, trailer_.average == AverageMode::max
                                       ? -std::numeric_limits<double>::infinity()
                                       : 0.0);
}

bool SpectrumAverage::add(const CheckedSpectrum& spectrum) {
    const PacketTrailer& added = spectrum.trailer;
    if (spectra_ == 0) {
        begin(spectrum);
    } else if (!follows(spectrum)) {
        return false;
    } else if (const uint64_t missing = added.sequence - last_sequence_ - 1; missing > 0) {
        // Spectra that did not reach the hub: their segments are expected, and missing.
        trailer_.flags |= PacketFlag::gap_before;
        trailer_.segments_expected = counted(
            trailer_.segments_expected + std::min(missing, most_counted) * added.segments_expected);
    }
    trailer_.flags |= added.flags;
    trailer_.segments_averaged =
        counted(uint64_t{trailer_.segments_averaged} + added.segments_averaged);
    trailer_.segments_expected =
        counted(uint64_t{trailer_.segments_expected} + added.segments_expected);
    trailer_.over_range_count =
        counted(uint64_t{trailer_.over_range_count} + added.over_range_count);
    trailer_.worker = added.worker == trailer_.worker ? trailer_.worker : worker_unknown;
    last_sequence_ = added.sequence;
    ++spectra_;
    add_values(spectrum);
    return true;
}

void SpectrumAverage::add_values(const CheckedSpectrum& spectrum) {
    const double weight = spectrum.trailer.segments_averaged;
    if (weight == 0) {
        return;  // values of nothing
    }
    std::vector<float> values(spectrum.header.fft_size);
    spectrum.values(values);
    if (trailer_.average == AverageMode::max) {
        for (size_t i = 0; i < values.size(); ++i) {
            const double value = values[i];
            sums_[i] = std::isnan(value) || value > sums_[i] ? value : sums_[i];
        }
    } else {
        for (size_t i = 0; i < values.size(); ++i) {
            sums_[i] += weight * static_cast<double>(values[i]);
        }
    }
    const double mean = spectrum.trailer.mean;
    const double rms = spectrum.trailer.rms;
    weight_ += weight;
    mean_sum_ += weight * mean;
    square_sum_ += weight * rms * rms;
}

std::vector<std::byte> SpectrumAverage::take(uint64_t sequence) {
    ECHELLE_INVARIANT(spectra_ > 0);
    std::vector<std::byte> packet(packet_bytes_1_1(header_.fft_size));
    const auto values = packet_data(packet, header_.fft_size);
    const bool is_max = trailer_.average == AverageMode::max;
    for (size_t i = 0; i < values.size(); ++i) {
        const double value = is_max ? sums_[i] : sums_[i] / weight_;
        values[i] = weight_ > 0 ? static_cast<float>(value) : 0.0F;
    }
    trailer_.sequence = sequence;
    if (weight_ > 0) {
        trailer_.mean = static_cast<float>(mean_sum_ / weight_);
        trailer_.rms = static_cast<float>(std::sqrt(square_sum_ / weight_));
    }
    constexpr auto counted_flags =
        static_cast<uint16_t>(PacketFlag::incomplete | PacketFlag::over_range);
    trailer_.flags &= static_cast<uint16_t>(~counted_flags);
    if (trailer_.segments_averaged < trailer_.segments_expected) {
        trailer_.flags |= PacketFlag::incomplete;
    }
    if (trailer_.over_range_count > 0) {
        trailer_.flags |= PacketFlag::over_range;
    }
    seal_packet_1_1(packet, header_, trailer_);
    clear();
    return packet;
}

void SpectrumAverage::clear() {
    spectra_ = 0;
    sums_.clear();
    weight_ = 0;
    mean_sum_ = 0;
    square_sum_ = 0;
}

}  // namespace echelle
