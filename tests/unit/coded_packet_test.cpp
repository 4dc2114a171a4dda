// SpectrumPacket 2.0 against byte-exact packets that numpy made from docs/packet.md
// (tests/golden/packets_2), and its stated errors over many values.
#include "common/coded_packet.hpp"

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace echelle {
namespace {

using nlohmann::json;

std::string read_file(const std::string& name) {
    std::ifstream file(ECHELLE_GOLDEN_DIR "/packets_2/" + name, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read the golden file " + name);
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<float> floats_of(const json& bits) {
    std::vector<float> values;
    for (const json& text : bits) {
        values.push_back(text == "nan" ? std::numeric_limits<float>::quiet_NaN()
                                       : std::bit_cast<float>(static_cast<uint32_t>(
                                             std::stoul(text.get<std::string>(), nullptr, 16))));
    }
    return values;
}

// A sealed 1.1 packet; in floats, for its alignment.
std::vector<float> packet_of(const std::vector<float>& values, const PacketHeader& header,
                             const PacketTrailer& trailer) {
    std::vector<float> storage(packet_bytes_1_1(header.fft_size) / sizeof(float));
    const auto packet = std::as_writable_bytes(std::span(storage));
    std::copy(values.begin(), values.end(), packet_data(packet, header.fft_size).begin());
    seal_packet_1_1(packet, header, trailer);
    return storage;
}

std::vector<std::byte> coded(const std::vector<float>& values, PacketCoding coding,
                             PacketHeader header, const PacketTrailer& trailer) {
    header.fft_size = static_cast<uint32_t>(values.size());
    const auto packet = packet_of(values, header, trailer);
    std::vector<std::byte> bytes(coded_packet_bytes(coding, header.fft_size));
    encode_coded_packet(std::as_bytes(std::span(packet)), coding, bytes);
    return bytes;
}

std::vector<float> values_of(const CodedPacketView& view) {
    std::vector<float> values(view.header.fft_size);
    view.values(values);
    return values;
}

void check_vector(const json& expected) {
    const std::string text = read_file(expected.at("file").get<std::string>());
    const auto bytes = std::as_bytes(std::span(text));
    CodedPacketView view;
    const PacketError error = decode_coded_packet(bytes, view);
    ASSERT_EQ(name_of(error), expected.at("error").get<std::string>());
    if (error != PacketError::none) {
        return;
    }
    EXPECT_EQ(view.header.version, expected.at("header").at("version").get<uint32_t>());
    EXPECT_EQ(view.header.channel_id, expected.at("header").at("channel_id").get<uint32_t>());
    EXPECT_EQ(view.header.timestamp_us, expected.at("header").at("timestamp_us").get<uint32_t>());
    EXPECT_EQ(static_cast<unsigned>(view.coding), expected.at("coding").at("coding"));
    EXPECT_EQ(view.offset, expected.at("coding").at("offset").get<float>());
    EXPECT_EQ(view.step, expected.at("coding").at("step").get<float>());
    EXPECT_EQ(view.trailer.sequence, expected.at("trailer").at("sequence").get<uint64_t>());
    EXPECT_EQ(view.trailer.data_crc32, expected.at("trailer").at("data_crc32").get<uint32_t>());
    const auto wanted = floats_of(expected.at("values_bits"));
    const auto read = values_of(view);
    ASSERT_EQ(read.size(), wanted.size());
    for (size_t i = 0; i < read.size(); ++i) {
        if (std::isnan(wanted[i])) {
            EXPECT_TRUE(std::isnan(read[i])) << "value " << i;
        } else {
            EXPECT_FLOAT_EQ(read[i], wanted[i]) << "value " << i;
        }
    }
    if (view.header.version == packet_version_2_0) {
        const auto made =
            coded(floats_of(expected.at("source_bits")), view.coding, view.header, view.trailer);
        EXPECT_TRUE(std::equal(made.begin(), made.end(), bytes.begin(), bytes.end()));
    }
}

TEST(CodedPacket, GoldenPacketsAreReadAndWrittenByteForByte) {
    const json index = json::parse(read_file("index.json"));
    ASSERT_GE(index.at("packets").size(), 30U);
    for (const json& expected : index.at("packets")) {
        SCOPED_TRACE(expected.at("file").get<std::string>());
        check_vector(expected);
    }
}

// Spectra as they are: some hundred dB between the noise and the strongest line.
std::vector<float> spectrum(uint32_t seed, double level) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> noise(1.0);
    std::uniform_real_distribution<double> decibels(-140.0, 0.0);
    std::vector<float> values(513);
    for (float& value : values) {
        value = static_cast<float>(level * noise(random) * std::pow(10.0, decibels(random) / 10));
    }
    return values;
}

TEST(CodedPacket, Float16IsAsCloseAsStated) {
    for (const double level : {1e-30, 1e-6, 1.0, 3e7, 1e35}) {
        const auto values = spectrum(7, level);
        const auto bytes = coded(values, PacketCoding::float16, {}, {});
        CodedPacketView view;
        ASSERT_EQ(decode_coded_packet(bytes, view), PacketError::none);
        const double largest = *std::max_element(values.begin(), values.end());
        const auto read = values_of(view);
        for (size_t i = 0; i < values.size(); ++i) {
            const double allowed =
                std::max(std::ldexp(double{values[i]}, -11), std::ldexp(largest, -39));
            ASSERT_NEAR(read[i], values[i], allowed) << "value " << i << " of level " << level;
        }
    }
}

TEST(CodedPacket, DecibelsAreAsCloseAsStated) {
    for (const double level : {1e-30, 1e-6, 1.0, 3e7, 1e35}) {
        const auto values = spectrum(8, level);
        const auto bytes = coded(values, PacketCoding::decibel8, {}, {});
        CodedPacketView view;
        ASSERT_EQ(decode_coded_packet(bytes, view), PacketError::none);
        const double largest = *std::max_element(values.begin(), values.end());
        const auto read = values_of(view);
        for (size_t i = 0; i < values.size(); ++i) {
            const double below = 10 * std::log10(largest / values[i]);
            if (below <= 126.0) {
                ASSERT_NEAR(10 * std::log10(double{read[i]}), 10 * std::log10(double{values[i]}),
                            0.2501)
                    << "value " << i << " of level " << level;
            } else if (below > 127.0) {
                ASSERT_EQ(read[i], 0.0F);
            }
        }
    }
}

TEST(CodedPacket, CutAnywhereIsTooShortAndAnyFlippedBitIsFound) {
    for (const auto coding : {PacketCoding::float16, PacketCoding::decibel8}) {
        auto bytes = coded({1.0F, 2.0F, 3.0F}, coding, {}, {});
        CodedPacketView view;
        for (size_t length = 0; length < bytes.size(); ++length) {
            EXPECT_EQ(decode_coded_packet(std::span(bytes).first(length), view),
                      PacketError::too_short);
        }
        for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
            EXPECT_NE(decode_coded_packet(bytes, view), PacketError::none) << "bit " << bit;
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
        }
    }
}

}  // namespace
}  // namespace echelle
