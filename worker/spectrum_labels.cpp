#include "worker/spectrum_labels.hpp"

#include <algorithm>
#include <cmath>

#include "common/psd_axis.hpp"

namespace echelle {

SpectrumLabels::SpectrumLabels(const Stream& stream, const WelchParameters& parameters)
    : stream_(stream),
      parameters_(parameters),
      bins_(parameters.bins(stream.geometry.is_complex())),
      unit_(parameters.volts_per_count > 0 ? parameters.volts_per_count : 1.0) {}

PacketHeader SpectrumLabels::header(uint32_t channel, uint64_t first_sample,
                                    uint32_t values) const {
    const int64_t time_ns = stream_.epoch_ns + sample_time_ns(first_sample, stream_.rate);
    PacketHeader header;
    header.timestamp_us = static_cast<uint32_t>(time_ns / 1000);
    header.channel_id = channel;
    header.fft_size = values;
    return header;
}

PacketTrailer SpectrumLabels::trailer(const ChannelSums& sums, uint64_t first_sample,
                                      uint64_t segments_averaged, uint64_t segments_expected,
                                      uint16_t flags) const {
    const auto count = [](uint64_t segments) {
        return static_cast<uint32_t>(std::min<uint64_t>(segments, UINT32_MAX));
    };
    const bool is_complex = stream_.geometry.is_complex();
    PacketTrailer trailer;
    trailer.flags = flags;
    if (segments_averaged < segments_expected) {
        trailer.flags |= PacketFlag::incomplete;
    }
    if (sums.over_range > 0) {
        trailer.flags |= PacketFlag::over_range;
    }
    if (is_complex) {
        trailer.flags |= PacketFlag::two_sided;
    }
    if (parameters_.volts_per_count > 0) {
        trailer.flags |= PacketFlag::volts;
    }
    trailer.timestamp_ns = stream_.epoch_ns + sample_time_ns(first_sample, stream_.rate);
    trailer.first_sample = first_sample;
    trailer.rate = stream_.rate;
    trailer.first_bin_hz = first_bin_hz(parameters_.nperseg, is_complex, stream_.rate);
    trailer.bin_spacing_hz = bin_spacing_hz(parameters_.nperseg, stream_.rate);
    trailer.nperseg = parameters_.nperseg;
    trailer.noverlap = parameters_.noverlap;
    trailer.segments_averaged = count(segments_averaged);
    trailer.segments_expected = count(segments_expected);
    trailer.window = parameters_.window.kind;
    trailer.scaling = parameters_.scaling;
    trailer.detrend = parameters_.detrend;
    trailer.average = parameters_.average_mode;
    if (sums.samples > 0) {
        const auto samples = static_cast<double>(sums.samples);
        const double mean = is_complex ? std::hypot(static_cast<double>(sums.sum_re),
                                                    static_cast<double>(sums.sum_im))
                                       : static_cast<double>(sums.sum_re);
        trailer.mean = static_cast<float>(mean / samples * unit_);
        trailer.rms =
            static_cast<float>(std::sqrt(static_cast<double>(sums.sum_squares) / samples) * unit_);
    }
    trailer.over_range_count = sums.over_range;
    return trailer;
}

}  // namespace echelle
