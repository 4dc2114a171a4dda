#include "coordinator/integrator.hpp"

#include <algorithm>
#include <utility>

#include "common/psd_axis.hpp"

namespace echelle {
namespace {

bool is_whole(const BlockDescriptor& block) {
    return block.first_of_integration && block.last_of_integration;
}

void add_sums(ChannelSums& total, const ChannelSums& part) {
    total.sum_re += part.sum_re;
    total.sum_im += part.sum_im;
    total.sum_squares += part.sum_squares;
    total.samples += part.samples;
    total.over_range += part.over_range;
    total.segments += part.segments;
}

}  // namespace

Integrator::Integrator(const Stream& stream, const WelchParameters& welch,
                       uint64_t frames_per_integration, std::vector<SpectrumSink*> sinks)
    : mode_(welch.average_mode),
      frames_per_integration_(frames_per_integration),
      samples_per_frame_(stream.geometry.samples),
      hop_(welch.hop()),
      labels_(stream, welch),
      sinks_(std::move(sinks)),
      channels_(stream.geometry.channels),
      packet_storage_((packet_bytes_1_1(labels_.bins()) + 3) / 4) {}

// What is true for a block whether or not it has a result.
void Integrator::enter(const BlockDescriptor& block) {
    if (open_ && block.integration != integration_) {
        // The integration's last frame was lost: a loss, not the stream's end.
        close_integration(false);
    }
    if (block.index_in_group == 0 && block.gap_before) {
        for (Channel& channel : channels_) {
            channel.gap = true;
        }
    }
    // The whole stream is never cut short by its own end.
    ends_in_short_frame_ = frames_per_integration_ != 0 && block.ends_stream &&
                           block.own_samples < uint64_t{block.own_frames} * samples_per_frame_;
    if (is_whole(block)) {
        return;
    }
    if (!open_) {
        open_ = true;
        integration_ = block.integration;
        first_sample_ = block.first_sample;
        frames_seen_ = 0;
        segments_expected_ = 0;
        segments_lost_ = 0;
        saw_last_frame_ = false;
    }
    if (block.index_in_group == 0) {
        frames_seen_ += block.own_frames;
        segments_expected_ += block.segments + block.segments_cut;
        segments_lost_ += block.segments_lost;
    }
    saw_last_frame_ = saw_last_frame_ || block.last_of_integration;
}

bool Integrator::add(const BlockDescriptor& block, const BlockResult& result) {
    if (!check(block, result)) {
        add_missing(block);
        return false;
    }
    enter(block);
    if (is_whole(block)) {
        pass_through(block, result);
    } else {
        merge(block, result);
    }
    if (open_ && block.last_of_integration && block.index_in_group + 1 == block.blocks_in_group) {
        close_integration(false);
    }
    return true;
}

void Integrator::add_missing(const BlockDescriptor& block) {
    enter(block);
    for (uint32_t i = 0; i < block.channel_count; ++i) {
        channels_[block.first_channel + i].gap = true;
    }
    if (is_whole(block)) {
        books_.empty += block.channel_count;
    }
    if (open_ && block.last_of_integration && block.index_in_group + 1 == block.blocks_in_group) {
        close_integration(false);
    }
}

void Integrator::finish() {
    if (open_) {
        close_integration(frames_per_integration_ != 0 && !saw_last_frame_);
    }
}

bool Integrator::check(const BlockDescriptor& block, const BlockResult& result) {
    const uint32_t values = result.header().values;
    views_.assign(block.channel_count, PacketView{});
    if (values == 0) {
        return true;
    }
    uint64_t errors = 0;
    for (uint32_t i = 0; i < block.channel_count; ++i) {
        const PacketError error = decode_packet(result.packet(i, values), views_[i]);
        errors += error != PacketError::none ? 1 : 0;
    }
    books_.crc_errors += errors;
    return errors == 0;
}

void Integrator::pass_through(const BlockDescriptor& block, const BlockResult& result) {
    const uint32_t values = result.header().values;
    for (uint32_t i = 0; i < block.channel_count; ++i) {
        Channel& channel = channels_[block.first_channel + i];
        if (values == 0) {
            books_.empty += 1;
            continue;
        }
        PacketTrailer trailer = views_[i].trailer;
        if (std::exchange(channel.gap, false)) {
            trailer.flags |= PacketFlag::gap_before;
        }
        if (ends_in_short_frame_) {
            trailer.flags |= PacketFlag::partial;
        }
        trailer.sequence = channel.sequence++;
        const auto packet = result.packet(i, values);
        reseal_trailer(packet, trailer);
        emit(packet, trailer.flags);
    }
}

void Integrator::merge(const BlockDescriptor& block, const BlockResult& result) {
    for (uint32_t i = 0; i < block.channel_count; ++i) {
        Channel& channel = channels_[block.first_channel + i];
        const ChannelSums& sums = result.sums(i);
        const uint32_t worker = result.header().worker;
        channel.worker = !channel.has_parts || channel.worker == worker ? worker : worker_unknown;
        channel.has_parts = true;
        add_sums(channel.sums, sums);
        if (result.header().values > 0) {
            merge_values(channel, views_[i], sums.segments);
            channel.segments += sums.segments;
        }
    }
}

void Integrator::merge_values(Channel& channel, const PacketView& part, uint32_t segments) {
    const size_t count = part.header.fft_size;
    // The engine wrote aligned float32 of this machine's byte order.
    const auto* values = reinterpret_cast<const float*>(part.data.data());
    if (mode_ == AverageMode::median) {
        channel.rows.insert(channel.rows.end(), values, values + count);
        return;
    }
    if (channel.values.empty()) {
        channel.values.assign(count, 0.0);
    }
    double* total = channel.values.data();
    if (mode_ == AverageMode::max) {
        for (size_t bin = 0; bin < count; ++bin) {
            total[bin] = std::max(total[bin], static_cast<double>(values[bin]));
        }
        return;
    }
    const double weight = segments;
    for (size_t bin = 0; bin < count; ++bin) {
        total[bin] += weight * static_cast<double>(values[bin]);
    }
}

// What the frames that no group held would have given. Where the integration's extent is not known
// (the whole stream, or cut short by its end) only the losses between its frames are.
uint64_t Integrator::segments_missing(bool cut_short) const {
    if (frames_per_integration_ == 0 || cut_short) {
        return segments_lost_;
    }
    const uint64_t samples = (frames_per_integration_ - frames_seen_) * samples_per_frame_;
    return (samples + hop_ - 1) / hop_;
}

void Integrator::close_integration(bool cut_short) {
    open_ = false;
    const uint64_t expected = segments_expected_ + segments_missing(cut_short);
    const bool is_partial = cut_short || ends_in_short_frame_;
    for (uint32_t number = 0; number < channels_.size(); ++number) {
        Channel& channel = channels_[number];
        if (channel.segments == 0) {
            books_.empty += 1;
        } else {
            emit_merged(number, channel, expected,
                        is_partial ? uint16_t{PacketFlag::partial} : uint16_t{0});
        }
        channel.sums = {};
        channel.segments = 0;
        channel.has_parts = false;
        channel.worker = worker_unknown;
        std::fill(channel.values.begin(), channel.values.end(), 0.0);
        channel.rows.clear();
    }
}

void Integrator::emit_merged(uint32_t channel_number, Channel& channel, uint64_t segments_expected,
                             uint16_t flags) {
    const uint32_t bins = labels_.bins();
    const auto packet =
        std::as_writable_bytes(std::span(packet_storage_)).first(packet_bytes_1_1(bins));
    values_of(channel, packet_data(packet, bins));
    if (std::exchange(channel.gap, false)) {
        flags |= PacketFlag::gap_before;
    }
    PacketTrailer trailer =
        labels_.trailer(channel.sums, first_sample_, channel.segments, segments_expected, flags);
    trailer.sequence = channel.sequence++;
    trailer.worker = channel.worker;
    seal_packet_1_1(packet, labels_.header(channel_number, first_sample_, bins), trailer);
    emit(packet, trailer.flags);
}

void Integrator::values_of(Channel& channel, std::span<float> values) {
    if (mode_ == AverageMode::median) {
        const uint64_t rows = channel.rows.size() / values.size();
        const double bias = median_bias(rows);
        column_.resize(rows);
        for (size_t bin = 0; bin < values.size(); ++bin) {
            for (uint64_t row = 0; row < rows; ++row) {
                column_[row] = channel.rows[row * values.size() + bin];
            }
            values[bin] = static_cast<float>(static_cast<double>(median_in_place(column_)) / bias);
        }
        return;
    }
    const double divisor = mode_ == AverageMode::mean ? static_cast<double>(channel.segments) : 1.0;
    for (size_t bin = 0; bin < values.size(); ++bin) {
        values[bin] = static_cast<float>(channel.values[bin] / divisor);
    }
}

void Integrator::emit(std::span<const std::byte> packet, uint16_t flags) {
    books_.out += 1;
    books_.incomplete += (flags & PacketFlag::incomplete) != 0 ? 1 : 0;
    for (SpectrumSink* sink : sinks_) {
        sink->write(packet);
    }
}

}  // namespace echelle
