#include "bench/welch_work.hpp"

#include <algorithm>

#include "common/packet.hpp"
#include "fpga_sim/frame_generator.hpp"
#include "fpga_sim/sim_options.hpp"

namespace echelle::bench {
namespace {

// Making a frame costs milliseconds: so many are made, and copied over the rest of the ring.
constexpr uint64_t different_frames = 16;

SimOptions default_simulation(const FrameGeometry& geometry) {
    SimArguments arguments;
    arguments.channels = geometry.channels;
    arguments.samples = geometry.samples;
    arguments.format = geometry.format;
    arguments.layout = geometry.layout;
    return complete_sim_options(arguments);
}

BlockPlan plan_of(const Stream& stream, const WelchParameters& welch, const WorkShape& shape) {
    BlockPlanRequest request;
    request.frames_per_integration = shape.average;
    request.most_workers = shape.workers;
    if (shape.ring_frames > 0) {
        request.ring_frames = shape.ring_frames;
    }
    return plan_blocks(stream, welch, request);
}

}  // namespace

WelchWork::WelchWork(const WorkShape& shape)
    : stream_(default_simulation(shape.geometry).stream),
      plan_(plan_of(stream_, welch_, shape)),
      ring_(Ring::anonymous(stream_, plan_.ring_frames)),
      fftw_(welch_.nperseg, stream_.geometry.is_complex(), welch_.pair_channels, shape.effort,
            FftKind::fftw),
      plans_(welch_.nperseg, stream_.geometry.is_complex(), welch_.pair_channels, shape.effort,
             shape.fft),
      engine_(stream_, welch_, plans_, plan_.block_channels, plan_.most_listed_frames()),
      labels_(stream_, welch_),
      sums_(channels()),
      in_(welch_.nperseg),
      out_(welch_.nperseg) {
    fill_ring();
    for (uint32_t channel = 0; channel < channels(); ++channel) {
        packets_.emplace_back(packet_bytes_1_1(bins()));
        values_.push_back(
            packet_data({packets_.back().data(), packets_.back().size()}, bins()).data());
    }
    const int16_t* const samples = ring_.frame(0).data();
    for (uint32_t i = 0; i < welch_.nperseg; ++i) {
        in_[i] = {static_cast<float>(samples[2 * i]), static_cast<float>(samples[2 * i + 1])};
    }
}

void WelchWork::fill_ring() {
    const SimOptions simulation = default_simulation(stream_.geometry);
    const FrameGenerator generator(simulation.signal, stream_, simulation.seed);
    for (uint64_t position = 0; position < ring_.slot_count(); ++position) {
        const std::span<int16_t> frame = ring_.frame(position);
        if (position < different_frames) {
            generator.generate(position * stream_.geometry.samples, frame);
        } else {
            const std::span<int16_t> original = ring_.frame(position % different_frames);
            std::copy(original.begin(), original.end(), frame.begin());
        }
    }
}

std::vector<FrameView> WelchWork::views_of(uint64_t group) const {
    const uint64_t first = group * plan_.group_frames;
    const uint64_t history = std::min<uint64_t>(first, plan_.history_frames);
    std::vector<FrameView> views;
    for (uint64_t position = first - history; position < first + plan_.group_frames; ++position) {
        views.push_back({ring_.frame(position).data(), stream_.geometry.samples});
    }
    return views;
}

BlockInput WelchWork::block_of(const std::vector<FrameView>& views, uint64_t group,
                               uint32_t first_channel) const {
    BlockInput block;
    block.frames = views;
    block.own_frames = plan_.group_frames;
    const uint64_t history = views.size() - plan_.group_frames;
    block.first_sample = (group * plan_.group_frames - history) * stream_.geometry.samples;
    block.first_channel = first_channel;
    block.channel_count = std::min(plan_.block_channels, channels() - first_channel);
    return block;
}

uint64_t WelchWork::transforms_for(uint64_t segments, uint32_t channels) const {
    const bool paired = welch_.pair_channels && !stream_.geometry.is_complex();
    return segments * (paired ? (channels + 1) / 2 : channels);
}

void WelchWork::transform(uint64_t group) {
    const std::vector<FrameView> views = views_of(group);
    for (uint32_t first = 0; first < channels(); first += plan_.block_channels) {
        const BlockInput block = block_of(views, group, first);
        const uint64_t count = transforms_for(engine_.segments_in(block), block.channel_count);
        for (uint64_t i = 0; i < count; ++i) {
            fftw_.complex_transform(in_.data(), out_.data());
        }
    }
}

void WelchWork::compute(uint64_t group) {
    const std::vector<FrameView> views = views_of(group);
    for (uint32_t first = 0; first < channels(); first += plan_.block_channels) {
        const BlockInput block = block_of(views, group, first);
        engine_.compute(block, BlockReduction::mean, {values_.data() + first, block.channel_count},
                        {sums_.data() + first, block.channel_count});
    }
}

void WelchWork::seal(uint64_t group) {
    const uint64_t first_sample = group * plan_.group_frames * stream_.geometry.samples;
    for (uint32_t channel = 0; channel < channels(); ++channel) {
        const ChannelSums& sums = sums_[channel];
        seal_packet_1_1({packets_[channel].data(), packets_[channel].size()},
                        labels_.header(channel, first_sample, bins()),
                        labels_.trailer(sums, first_sample, sums.segments, sums.segments, 0));
    }
}

}  // namespace echelle::bench
