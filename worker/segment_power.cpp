#include "worker/segment_power.hpp"

#include <algorithm>
#include <vector>

#include "worker/kernels.hpp"

namespace echelle {
namespace {

// scipy.signal's scaling: density by 1 / (fs sum w^2), spectrum by 1 / (sum w)^2.
double scale_of(const std::vector<double>& window, const WelchParameters& parameters,
                double rate_hz) {
    double sum = 0.0;
    double sum_squares = 0.0;
    for (const double w : window) {
        sum += w;
        sum_squares += w * w;
    }
    const double volts = parameters.volts_per_count;
    const double unit = volts > 0.0 ? volts * volts : 1.0;
    return parameters.scaling == Scaling::density ? unit / (rate_hz * sum_squares)
                                                  : unit / (sum * sum);
}

}  // namespace

SegmentPower::SegmentPower(const Stream& stream, const WelchParameters& parameters,
                           const FftPlans& plans)
    : plans_(&plans),
      nperseg_(parameters.nperseg),
      is_complex_(stream.geometry.is_complex()),
      window_(parameters.nperseg),
      in_(parameters.nperseg),
      out_(size_t{parameters.nperseg} + 1),
      workspace_(parameters.nperseg),
      joined_(size_t{2} * parameters.nperseg) {
    const std::vector<double> window = parameters.window.coefficients(nperseg_);
    scale_ = scale_of(window, parameters, stream.rate.value());
    std::transform(window.begin(), window.end(), window_.data(),
                   [](double w) { return static_cast<float>(w); });
}

size_t SegmentPower::width(TransformChannels channels) const {
    return channels.is_pair ? 2 * bins() : bins();
}

// The segment's samples of one channel in one row: where they lie, if no frame ends within them.
const int16_t* SegmentPower::unbroken(const SampleRows& rows, uint32_t channel, uint64_t position,
                                      int16_t* scratch) const {
    if (position % rows.frame_samples + nperseg_ <= rows.frame_samples) {
        return rows.at(position / rows.frame_samples, channel, position % rows.frame_samples);
    }
    int16_t* to = scratch;
    rows.for_each_run(
        position, position + nperseg_, [&](uint64_t frame, uint64_t offset, size_t count) {
            to = std::copy_n(rows.at(frame, channel, offset), count * rows.sample_values, to);
        });
    return scratch;
}

void SegmentPower::transform_split(const SampleRows& rows, TransformChannels channels,
                                   uint64_t position, SegmentMean first_mean,
                                   SegmentMean second_mean) {
    const int16_t* const first = unbroken(rows, channels.channel, position, joined_.data());
    if (is_complex_) {
        result_ =
            plans_->split()->of_complex(first, window_.data(), first_mean, second_mean, workspace_);
        return;
    }
    const int16_t* const second =
        unbroken(rows, channels.channel + 1, position, joined_.data() + nperseg_);
    result_ = plans_->split()->of_pair(first, second, window_.data(), first_mean, second_mean,
                                       workspace_);
}

void SegmentPower::transform(const SampleRows& rows, TransformChannels channels, uint64_t position,
                             SegmentMean first_mean, SegmentMean second_mean) {
    if (is_split(channels)) {
        transform_split(rows, channels, position, first_mean, second_mean);
        return;
    }
    const bool alone = !is_complex_ && !channels.is_pair;
    float* const real_in = reinterpret_cast<float*>(in_.data());
    size_t done = 0;
    rows.for_each_run(position, position + nperseg_,
                      [&](uint64_t frame, uint64_t offset, size_t count) {
                          const int16_t* first = rows.at(frame, channels.channel, offset);
                          const float* window = window_.data() + done;
                          if (is_complex_) {
                              kernels::load_complex(first, window, first_mean, second_mean, count,
                                                    in_.data() + done);
                          } else if (alone) {
                              kernels::load_real(first, window, first_mean, count, real_in + done);
                          } else {
                              kernels::load_pair(first, first + rows.row_values, window, first_mean,
                                                 second_mean, count, in_.data() + done);
                          }
                          done += count;
                      });
    if (alone) {
        plans_->real_transform(real_in, out_.data());
    } else {
        plans_->complex_transform(in_.data(), out_.data());
        out_[nperseg_] = out_[0];  // the transform is periodic: what separates a pair reads both
    }
}

void SegmentPower::add_to(TransformChannels channels, float* power) {
    if (is_split(channels)) {
        if (is_complex_) {
            kernels::add_split_power(result_, nperseg_, power);
        } else {
            kernels::add_split_pair_power(result_, nperseg_, power, power + bins());
        }
    } else if (channels.is_pair) {
        kernels::add_pair_power(out_.data(), nperseg_, power);
    } else {
        kernels::add_power(out_.data(), width(channels), power);
    }
}

void SegmentPower::keep_larger(TransformChannels channels, float* power) {
    if (is_split(channels)) {
        if (is_complex_) {
            kernels::max_split_power(result_, nperseg_, power);
        } else {
            kernels::max_split_pair_power(result_, nperseg_, power, power + bins());
        }
    } else if (channels.is_pair) {
        kernels::max_pair_power(out_.data(), nperseg_, power);
    } else {
        kernels::max_power(out_.data(), width(channels), power);
    }
}

void SegmentPower::finish(TransformChannels channels, const float* power, double divisor,
                          float* first, float* second) const {
    const double scale = scale_ / divisor;
    if (is_complex_) {
        finish_two_sided(power, scale, first);
        return;
    }
    if (channels.is_pair) {
        const double pair_scale = 2.0 * scale / 4.0;  // separated powers are four times too large
        if (is_split(channels)) {
            kernels::scale_power(power, bins(), pair_scale, first);
            kernels::scale_power(power + bins(), bins(), pair_scale, second);
        } else {
            kernels::scale_pair_power(power, bins(), pair_scale, first, second);
        }
        undouble(second);
    } else {
        kernels::scale_power(power, bins(), 2.0 * scale, first);
    }
    undouble(first);
}

// DC and, for an even nperseg, Nyquist stand for themselves alone in a one-sided spectrum.
void SegmentPower::undouble(float* values) const {
    values[0] *= 0.5F;
    if (nperseg_ % 2 == 0) {
        values[nperseg_ / 2] *= 0.5F;
    }
}

// numpy.fft.fftshift: the negative frequencies first.
void SegmentPower::finish_two_sided(const float* power, double scale, float* values) const {
    const size_t not_negative = (size_t{nperseg_} + 1) / 2;
    const size_t negative = nperseg_ - not_negative;
    kernels::scale_power(power + not_negative, negative, scale, values);
    kernels::scale_power(power, not_negative, scale, values + negative);
}

}  // namespace echelle
