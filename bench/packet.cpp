// SpectrumPackets against what they cannot undercut (the CRC of the data, a memcpy) and against
// Protocol Buffers with the same fields and the same checks, at 128 and 2,052 bytes of values (32
// and 513 float32).
//
// Protocol Buffers' CRCs are made with the same libraries: of the 16 header bytes and, for 1.1, of
// the data and of the 108 trailer bytes. It is measured twice. As it is commonly written: a message
// for each packet, filled from the engine's values and serialised into a string. And at its best:
// the message and the bytes are reused, and for 1.1, which we seal in place, the values stand in
// the message already.
#include "common/packet.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include "common/crc32.hpp"
#include "common/topology.hpp"
#include "spectrum.pb.h"
#include "worker/aligned_array.hpp"

namespace echelle::bench {
namespace {

constexpr size_t trailer_bytes_under_crc = packet_trailer_bytes - 4;

std::vector<float> spectrum_of(size_t size) {
    std::mt19937 random(1);
    std::exponential_distribution<float> power(1e-3F);
    std::vector<float> values(size);
    std::generate(values.begin(), values.end(), [&] { return power(random); });
    return values;
}

PacketHeader header_of(size_t size) {
    PacketHeader header;
    header.timestamp_us = 0xD4C3B2A1;
    header.channel_id = 77;
    header.fft_size = static_cast<uint32_t>(size);
    return header;
}

PacketTrailer example_trailer() {
    PacketTrailer trailer;
    trailer.sequence = 123'456;
    trailer.timestamp_ns = 1'700'000'000'123'456'789;
    trailer.first_sample = 4'045'406'208;
    trailer.rate = {10'000'000, 1};
    trailer.bin_spacing_hz = 9765.625;
    trailer.nperseg = 1024;
    trailer.noverlap = 512;
    trailer.segments_averaged = 64;
    trailer.segments_expected = 64;
    trailer.mean = -0.25F;
    trailer.rms = 5657.0F;
    trailer.over_range_count = 3;
    trailer.worker = 1;
    return trailer;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
    return std::as_bytes(std::span(values));
}

// ---- what cannot be undercut

void bare_crc(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(values.data());
        benchmark::ClobberMemory();
        benchmark::DoNotOptimize(crc32(bytes_of(values)));
    }
}

void bare_memcpy(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    AlignedArray<std::byte> to(packet_bytes_1_0(static_cast<uint32_t>(values.size())));
    for (auto _ : state) {
        std::memcpy(to.data() + packet_header_bytes, values.data(), values.size() * sizeof(float));
        benchmark::DoNotOptimize(to.data());
        benchmark::ClobberMemory();
    }
}

// ---- ours

void seal_1_1_in_place(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    const PacketHeader header = header_of(values.size());
    AlignedArray<std::byte> packet(packet_bytes_1_1(header.fft_size));
    const std::span<std::byte> bytes(packet.data(), packet.size());
    std::copy(values.begin(), values.end(), packet_data(bytes, header.fft_size).begin());
    PacketTrailer trailer = example_trailer();
    for (auto _ : state) {
        benchmark::DoNotOptimize(trailer);
        seal_packet_1_1(bytes, header, trailer);
        benchmark::DoNotOptimize(packet.data());
        benchmark::ClobberMemory();
    }
}

void encode_1_0_with_copy(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    PacketHeader header = header_of(values.size());
    AlignedArray<std::byte> packet(packet_bytes_1_0(header.fft_size));
    const std::span<std::byte> bytes(packet.data(), packet.size());
    for (auto _ : state) {
        benchmark::DoNotOptimize(header);
        std::memcpy(packet.data() + packet_header_bytes, values.data(),
                    values.size() * sizeof(float));
        seal_packet_1_0(bytes, header);
        benchmark::DoNotOptimize(packet.data());
        benchmark::ClobberMemory();
    }
}

// ---- Protocol Buffers

// Stands for the bytes over which a user of Protocol Buffers takes the same CRC as ours.
struct CheckedBytes {
    std::array<std::byte, packet_header_bytes - 4> header{};
    std::array<std::byte, trailer_bytes_under_crc> trailer{};
};

template <class Message>
void set_header(Message& message, const PacketHeader& header, const CheckedBytes& checked) {
    message.set_version(header.version);
    message.set_timestamp_us(header.timestamp_us);
    message.set_channel_id(header.channel_id);
    message.set_fft_size(header.fft_size);
    message.set_header_crc32(crc32(checked.header));
}

void set_trailer(Spectrum11& message, const PacketTrailer& trailer, std::span<const std::byte> data,
                 const CheckedBytes& checked) {
    message.set_flags(trailer.flags);
    message.set_sequence(trailer.sequence);
    message.set_timestamp_ns(static_cast<uint64_t>(trailer.timestamp_ns));
    message.set_first_sample(trailer.first_sample);
    message.set_rate_numerator(trailer.rate.numerator);
    message.set_rate_denominator(trailer.rate.denominator);
    message.set_first_bin_hz(trailer.first_bin_hz);
    message.set_bin_spacing_hz(trailer.bin_spacing_hz);
    message.set_nperseg(trailer.nperseg);
    message.set_noverlap(trailer.noverlap);
    message.set_segments_averaged(trailer.segments_averaged);
    message.set_segments_expected(trailer.segments_expected);
    message.set_window(static_cast<uint32_t>(trailer.window));
    message.set_scaling(static_cast<uint32_t>(trailer.scaling));
    message.set_detrend(static_cast<uint32_t>(trailer.detrend));
    message.set_average(static_cast<uint32_t>(trailer.average));
    message.set_mean(trailer.mean);
    message.set_rms(trailer.rms);
    message.set_over_range_count(trailer.over_range_count);
    message.set_worker(trailer.worker);
    message.set_data_crc32(crc32(data));
    message.set_trailer_crc32(crc32(checked.trailer));
}

template <class Message>
void set_values(Message& message, const std::vector<float>& values) {
    message.mutable_values()->Clear();
    message.mutable_values()->Add(values.begin(), values.end());
}

void serialize_again(const google::protobuf::MessageLite& message, std::vector<uint8_t>& to) {
    to.resize(message.ByteSizeLong());  // of the same size each time: allocates once
    message.SerializeWithCachedSizesToArray(to.data());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
}

void protobuf_1_0(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    PacketHeader header = header_of(values.size());
    const CheckedBytes checked;
    for (auto _ : state) {
        benchmark::DoNotOptimize(header);
        Spectrum10 message;
        set_header(message, header, checked);
        set_values(message, values);
        benchmark::DoNotOptimize(message.SerializeAsString());
    }
}

void protobuf_1_0_reused(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    PacketHeader header = header_of(values.size());
    const CheckedBytes checked;
    Spectrum10 message;
    std::vector<uint8_t> bytes;
    for (auto _ : state) {
        benchmark::DoNotOptimize(header);
        set_header(message, header, checked);
        set_values(message, values);
        serialize_again(message, bytes);
    }
}

void protobuf_1_1(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    const PacketHeader header = header_of(values.size());
    PacketTrailer trailer = example_trailer();
    const CheckedBytes checked;
    for (auto _ : state) {
        benchmark::DoNotOptimize(trailer);
        Spectrum11 message;
        set_header(message, header, checked);
        set_values(message, values);
        set_trailer(message, trailer, bytes_of(values), checked);
        benchmark::DoNotOptimize(message.SerializeAsString());
    }
}

void protobuf_1_1_reused(benchmark::State& state) {
    const std::vector<float> values = spectrum_of(static_cast<size_t>(state.range(0)));
    const PacketHeader header = header_of(values.size());
    PacketTrailer trailer = example_trailer();
    const CheckedBytes checked;
    Spectrum11 message;
    set_values(message, values);
    std::vector<uint8_t> bytes;
    for (auto _ : state) {
        benchmark::DoNotOptimize(trailer);
        set_header(message, header, checked);
        set_trailer(message, trailer, bytes_of(values), checked);
        serialize_again(message, bytes);
    }
}

constexpr int64_t values_of_128_bytes = 32;
constexpr int64_t values_of_2052_bytes = 513;

BENCHMARK(bare_crc)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(seal_1_1_in_place)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(protobuf_1_1)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(protobuf_1_1_reused)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(bare_memcpy)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(encode_1_0_with_copy)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(protobuf_1_0)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);
BENCHMARK(protobuf_1_0_reused)->Arg(values_of_128_bytes)->Arg(values_of_2052_bytes);

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    echelle::bind_this_thread(echelle::usable_cpus().front().number);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
