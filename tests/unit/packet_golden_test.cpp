// The byte-exact packets that every language's reader must pass: written by
// tests/golden/packets/make_packets.py from docs/packet.md, not by the code tested here.
#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/packet.hpp"

namespace echelle {
namespace {

using nlohmann::json;

const std::string packets_dir = ECHELLE_GOLDEN_DIR "/packets/";

std::string read_file(const std::string& name) {
    std::ifstream file(packets_dir + name, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + packets_dir + name);
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void expect_header(const PacketHeader& header, const json& expected) {
    EXPECT_EQ(header.version, expected.at("version").get<uint32_t>());
    EXPECT_EQ(header.timestamp_us, expected.at("timestamp_us").get<uint32_t>());
    EXPECT_EQ(header.channel_id, expected.at("channel_id").get<uint32_t>());
    EXPECT_EQ(header.fft_size, expected.at("fft_size").get<uint32_t>());
}

void expect_values(const PacketView& view, const json& expected) {
    ASSERT_EQ(view.data.size(), 4 * expected.size());
    for (size_t index = 0; index < expected.size(); ++index) {
        const auto bits = std::stoul(expected[index].get<std::string>(), nullptr, 16);
        EXPECT_EQ(std::bit_cast<uint32_t>(view.value(index)), bits) << "value " << index;
    }
}

void expect_trailer(const PacketTrailer& trailer, const json& expected) {
    EXPECT_EQ(trailer.flags, expected.at("flags").get<uint16_t>());
    EXPECT_EQ(trailer.sequence, expected.at("sequence").get<uint64_t>());
    EXPECT_EQ(trailer.timestamp_ns, expected.at("timestamp_ns").get<int64_t>());
    EXPECT_EQ(trailer.first_sample, expected.at("first_sample").get<uint64_t>());
    EXPECT_EQ(trailer.rate.numerator, expected.at("rate").at(0).get<uint64_t>());
    EXPECT_EQ(trailer.rate.denominator, expected.at("rate").at(1).get<uint64_t>());
    EXPECT_EQ(trailer.first_bin_hz, expected.at("first_bin_hz").get<double>());
    EXPECT_EQ(trailer.bin_spacing_hz, expected.at("bin_spacing_hz").get<double>());
    EXPECT_EQ(trailer.nperseg, expected.at("nperseg").get<uint32_t>());
    EXPECT_EQ(trailer.noverlap, expected.at("noverlap").get<uint32_t>());
    EXPECT_EQ(trailer.segments_averaged, expected.at("segments_averaged").get<uint32_t>());
    EXPECT_EQ(trailer.segments_expected, expected.at("segments_expected").get<uint32_t>());
    EXPECT_EQ(static_cast<unsigned>(trailer.window), expected.at("window").get<unsigned>());
    EXPECT_EQ(static_cast<unsigned>(trailer.scaling), expected.at("scaling").get<unsigned>());
    EXPECT_EQ(static_cast<unsigned>(trailer.detrend), expected.at("detrend").get<unsigned>());
    EXPECT_EQ(static_cast<unsigned>(trailer.average), expected.at("average").get<unsigned>());
    EXPECT_EQ(trailer.mean, expected.at("mean").get<float>());
    EXPECT_EQ(trailer.rms, expected.at("rms").get<float>());
    EXPECT_EQ(trailer.over_range_count, expected.at("over_range_count").get<uint32_t>());
    EXPECT_EQ(trailer.worker, expected.at("worker").get<uint32_t>());
    EXPECT_EQ(trailer.data_crc32, expected.at("data_crc32").get<uint32_t>());
}

// The packet made anew from what was read: our writer must give the independent writer's bytes.
std::string sealed_again(const PacketView& view) {
    const uint32_t count = view.header.fft_size;
    const size_t bytes = view.has_trailer ? packet_bytes_1_1(count) : packet_bytes_1_0(count);
    std::vector<float> storage((bytes + 3) / 4);
    const auto packet = std::as_writable_bytes(std::span(storage)).first(bytes);
    const auto values = packet_data(packet, count);
    for (uint32_t index = 0; index < count; ++index) {
        values[index] = view.value(index);
    }
    if (view.has_trailer) {
        seal_packet_1_1(packet, view.header, view.trailer);
    } else {
        seal_packet_1_0(packet, view.header);
    }
    std::string text;
    for (const std::byte byte : packet) {
        text.push_back(std::bit_cast<char>(byte));
    }
    return text;
}

void check_vector(const json& expected) {
    const std::string bytes = read_file(expected.at("file").get<std::string>());
    ASSERT_EQ(bytes.size(), expected.at("bytes").get<size_t>());
    PacketView view;
    const PacketError error = decode_packet(std::as_bytes(std::span(bytes)), view);
    ASSERT_EQ(name_of(error), expected.at("error").get<std::string>());
    if (error != PacketError::none) {
        return;
    }
    expect_header(view.header, expected.at("header"));
    expect_values(view, expected.at("values_bits"));
    ASSERT_EQ(view.has_trailer, expected.contains("trailer"));
    if (view.has_trailer) {
        expect_trailer(view.trailer, expected.at("trailer"));
    }
    if (view.header.version <= packet_version_1_1) {
        EXPECT_EQ(sealed_again(view), bytes);
    }
}

TEST(GoldenPackets, AreReadAndWrittenByteForByte) {
    const json index = json::parse(read_file("index.json"));
    std::vector<std::string> errors_seen;
    for (const json& expected : index.at("packets")) {
        SCOPED_TRACE(expected.at("file").get<std::string>());
        check_vector(expected);
        errors_seen.push_back(expected.at("error").get<std::string>());
    }
    for (const auto error :
         {PacketError::none, PacketError::too_short, PacketError::too_long, PacketError::bad_crc,
          PacketError::unknown_major, PacketError::bad_trailer}) {
        EXPECT_NE(std::find(errors_seen.begin(), errors_seen.end(), name_of(error)),
                  errors_seen.end())
            << "no golden packet for " << name_of(error);
    }
}

}  // namespace
}  // namespace echelle
