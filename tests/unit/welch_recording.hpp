// For the tests of the Welch engine: a whole recording, cut into frames and blocks in any way, put
// through the engine and joined to one spectrum for each channel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/psd_axis.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "worker/fft_plans.hpp"
#include "worker/welch_engine.hpp"

namespace echelle::test {

struct Recording {
    uint32_t channels = 0;
    uint64_t samples = 0;
    bool is_complex = false;
    std::vector<int16_t> values;  // [channel][sample], complex [channel][sample][re, im]

    uint32_t parts() const { return is_complex ? 2 : 1; }
    int16_t at(uint32_t channel, uint64_t sample, uint32_t part) const {
        return values[(channel * samples + sample) * parts() + part];
    }
};

// How the recording is cut.
struct Cut {
    Layout layout = Layout::channel_major;
    uint32_t frame_samples = 256;
    uint32_t block_frames = 4;
    uint32_t block_channels = 2;
};

// What lies beyond the valid samples of a partial frame: it must not be read.
inline constexpr int16_t kBeyondTheEnd = 29999;

class FramedRecording {
  public:
    FramedRecording(const Recording& recording, const Cut& cut) {
        geometry_.channels = recording.channels;
        geometry_.samples = cut.frame_samples;
        geometry_.format = recording.is_complex ? SampleFormat::ci16 : SampleFormat::i16;
        geometry_.layout = cut.layout;
        for (uint64_t begin = 0; begin < recording.samples; begin += cut.frame_samples) {
            add_frame(recording, begin);
        }
        for (size_t f = 0; f < frames_.size(); ++f) {
            const uint64_t left = recording.samples - f * cut.frame_samples;
            views_.push_back({frames_[f].data(),
                              static_cast<uint32_t>(std::min<uint64_t>(left, cut.frame_samples))});
        }
    }

    const FrameGeometry& geometry() const { return geometry_; }
    std::span<const FrameView> views() const { return views_; }

  private:
    void add_frame(const Recording& recording, uint64_t begin) {
        const uint32_t parts = recording.parts();
        std::vector<int16_t> frame(geometry_.frame_values(), kBeyondTheEnd);
        const uint64_t valid = std::min<uint64_t>(geometry_.samples, recording.samples - begin);
        for (uint32_t c = 0; c < geometry_.channels; ++c) {
            for (uint64_t s = 0; s < valid; ++s) {
                const size_t at = geometry_.layout == Layout::channel_major
                                      ? size_t{c} * geometry_.samples + s
                                      : s * geometry_.channels + c;
                for (uint32_t part = 0; part < parts; ++part) {
                    frame[at * parts + part] = recording.at(c, begin + s, part);
                }
            }
        }
        frames_.push_back(std::move(frame));
    }

    FrameGeometry geometry_;
    std::vector<std::vector<int16_t>> frames_;
    std::vector<FrameView> views_;
};

struct Spectra {
    std::vector<std::vector<double>> values;  // [channel][bin]
    std::vector<ChannelSums> sums;            // over the whole recording
};

// Block for block through one engine, as the worker and the collector would.
class BlockwiseWelch {
  public:
    BlockwiseWelch(const Recording& recording, const WelchParameters& parameters, Rational rate,
                   const FftPlans& plans, const Cut& cut)
        : framed_(recording, cut), parameters_(parameters), cut_(cut) {
        stream_.geometry = framed_.geometry();
        stream_.rate = rate;
        history_frames_ = (parameters.nperseg + cut.frame_samples - 2) / cut.frame_samples;
        engine_ = std::make_unique<WelchEngine>(stream_, parameters, plans, cut.block_channels,
                                                cut.block_frames + history_frames_);
    }

    Spectra run() {
        const uint32_t channels = stream_.geometry.channels;
        Spectra result;
        result.sums.resize(channels);
        rows_.assign(channels, {});
        weights_.assign(channels, {});
        for (size_t f = 0; f < framed_.views().size(); f += cut_.block_frames) {
            for (uint32_t c = 0; c < channels; c += cut_.block_channels) {
                block(f, c, std::min(cut_.block_channels, channels - c), result);
            }
        }
        for (uint32_t c = 0; c < channels; ++c) {
            result.values.push_back(joined(c));
        }
        return result;
    }

  private:
    void block(size_t first_frame, uint32_t first_channel, uint32_t channels, Spectra& result) {
        const uint64_t begin = uint64_t{first_frame} * cut_.frame_samples;
        const SegmentGrid grid{parameters_.nperseg, parameters_.hop()};
        const size_t from = grid.first_sample_needed(begin) / cut_.frame_samples;
        const size_t to = std::min(first_frame + cut_.block_frames, framed_.views().size());
        BlockInput input;
        input.frames = framed_.views().subspan(from, to - from);
        input.own_frames = static_cast<uint32_t>(to - first_frame);
        input.first_sample = uint64_t{from} * cut_.frame_samples;
        input.first_channel = first_channel;
        input.channel_count = channels;
        const uint64_t segments = engine_->segments_in(input);
        const bool keeps_segments = parameters_.average_mode == AverageMode::median;
        const size_t bins = parameters_.bins(stream_.geometry.is_complex());
        const size_t values = bins * (keeps_segments ? segments : 1);
        // One float more on either side: nothing else may be written.
        std::vector<std::vector<float>> out(channels, std::vector<float>(values + 2, -1.0F));
        std::vector<float*> pointers;
        for (auto& row : out) {
            pointers.push_back(row.data() + 1);
        }
        std::vector<ChannelSums> sums(channels);
        engine_->compute(input, reduction(), pointers, sums);
        for (uint32_t c = 0; c < channels; ++c) {
            intact_ = intact_ && out[c].front() == -1.0F && out[c].back() == -1.0F;
            add(result.sums[first_channel + c], sums[c]);
            for (size_t row = 0; segments > 0 && row * bins < values; ++row) {
                const auto at = out[c].begin() + 1 + static_cast<ptrdiff_t>(row * bins);
                rows_[first_channel + c].emplace_back(at, at + static_cast<ptrdiff_t>(bins));
                weights_[first_channel + c].push_back(
                    keeps_segments ? 1.0 : static_cast<double>(segments));
            }
        }
    }

    BlockReduction reduction() const {
        switch (parameters_.average_mode) {
            case AverageMode::median:
                return BlockReduction::segments;
            case AverageMode::max:
                return BlockReduction::maximum;
            case AverageMode::mean:
                break;
        }
        return BlockReduction::mean;
    }

    static void add(ChannelSums& total, const ChannelSums& part) {
        total.sum_re += part.sum_re;
        total.sum_im += part.sum_im;
        total.sum_squares += part.sum_squares;
        total.samples += part.samples;
        total.over_range += part.over_range;
        total.segments += part.segments;
    }

    std::vector<double> joined(uint32_t channel) const {
        const auto& rows = rows_[channel];
        std::vector<double> result;
        for (size_t k = 0; !rows.empty() && k < rows[0].size(); ++k) {
            std::vector<double> column;
            for (const auto& row : rows) {
                column.push_back(double{row[k]});
            }
            result.push_back(reduce(column, weights_[channel]));
        }
        return result;
    }

    double reduce(std::vector<double>& column, const std::vector<double>& weights) const {
        if (parameters_.average_mode == AverageMode::max) {
            return *std::max_element(column.begin(), column.end());
        }
        if (parameters_.average_mode == AverageMode::median) {
            std::sort(column.begin(), column.end());
            const size_t n = column.size();
            return (column[(n - 1) / 2] + column[n / 2]) / 2.0 / median_bias(n);
        }
        double sum = 0.0;
        double weight = 0.0;
        for (size_t i = 0; i < column.size(); ++i) {
            sum += column[i] * weights[i];
            weight += weights[i];
        }
        return sum / weight;
    }

  public:
    // Whether every value beside the spectra was left alone.
    bool intact() const { return intact_; }

  private:
    FramedRecording framed_;
    WelchParameters parameters_;
    Cut cut_;
    Stream stream_;
    uint32_t history_frames_ = 0;
    std::unique_ptr<WelchEngine> engine_;
    std::vector<std::vector<std::vector<float>>> rows_;  // [channel][block or segment][bin]
    std::vector<std::vector<double>> weights_;
    bool intact_ = true;
};

// What is allowed between two spectra: a part of each bin's power, or of the strongest channel's
// peak power, whichever is larger.
struct Tolerance {
    double relative = 0.0;
    double of_peak = 0.0;
};

// What the product promises for channels of moderate dynamic range.
inline constexpr Tolerance kPromise{1e-4, 1e-13};

// The largest error over all bins as a multiple of what is allowed. An output that is not finite,
// or of another shape, is infinitely wrong.
//
// In amplitude, the square root of power, an error is what single precision adds to the signal:
// so many dB below its strongest tone, whatever else is in the bin. In power the same error weighs
// more the stronger the bin is.
template <class Measure>
double worst_error(const std::vector<std::vector<double>>& seen,
                   const std::vector<std::vector<double>>& expected, Tolerance tolerance,
                   Measure measure) {
    double peak = 0.0;
    for (const auto& channel : expected) {
        peak = std::max(peak, *std::max_element(channel.begin(), channel.end()));
    }
    if (seen.size() != expected.size()) {
        return std::numeric_limits<double>::infinity();
    }
    double worst = 0.0;
    for (size_t c = 0; c < expected.size(); ++c) {
        if (seen[c].size() != expected[c].size()) {
            return std::numeric_limits<double>::infinity();
        }
        for (size_t k = 0; k < expected[c].size(); ++k) {
            if (!std::isfinite(seen[c][k])) {
                return std::numeric_limits<double>::infinity();
            }
            const double error = measure(seen[c][k], expected[c][k], peak, tolerance);
            worst = std::max(worst, std::isnan(error) ? 0.0 : error);
        }
    }
    return worst;
}

inline double worst_power_error(const std::vector<std::vector<double>>& seen,
                                const std::vector<std::vector<double>>& expected,
                                Tolerance tolerance) {
    return worst_error(seen, expected, tolerance,
                       [](double is, double should, double peak, Tolerance allowed) {
                           return std::abs(is - should) /
                                  std::max(allowed.relative * should, allowed.of_peak * peak);
                       });
}

inline double worst_amplitude_error(const std::vector<std::vector<double>>& seen,
                                    const std::vector<std::vector<double>>& expected,
                                    Tolerance tolerance) {
    return worst_error(seen, expected, tolerance,
                       [](double is, double should, double peak, Tolerance allowed) {
                           return std::abs(std::sqrt(is) - std::sqrt(should)) /
                                  std::max(allowed.relative / 2.0 * std::sqrt(should),
                                           std::sqrt(allowed.of_peak * peak));
                       });
}

}  // namespace echelle::test
