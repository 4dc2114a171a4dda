// The C++ client's reader against the golden packets of every version (tests/golden).
#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "echelle/eigen.hpp"
#include "echelle/feed.hpp"
#include "echelle/packet.hpp"

namespace echelle::client {
namespace {

using nlohmann::json;

std::string read_file(const std::string& name) {
    std::ifstream file(ECHELLE_GOLDEN_DIR "/" + name, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read the golden file " + name);
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string name_of(const PacketError& error) {
    const auto is = [&error]<typename Kind>(const Kind*) {
        return dynamic_cast<const Kind*>(&error) != nullptr;
    };
    return is(static_cast<const PacketTooShort*>(nullptr))        ? "too_short"
           : is(static_cast<const PacketTooLong*>(nullptr))       ? "too_long"
           : is(static_cast<const PacketBadCrc*>(nullptr))        ? "bad_crc"
           : is(static_cast<const PacketUnknownMajor*>(nullptr))  ? "unknown_major"
           : is(static_cast<const PacketBadTrailer*>(nullptr))    ? "bad_trailer"
           : is(static_cast<const PacketUnknownCoding*>(nullptr)) ? "unknown_coding"
                                                                  : "unknown";
}

void expect_trailer(const Trailer& trailer, const json& expected) {
    const std::vector<std::pair<const char*, double>> fields{
        {"flags", trailer.flags},
        {"first_bin_hz", trailer.first_bin_hz},
        {"bin_spacing_hz", trailer.bin_spacing_hz},
        {"nperseg", trailer.nperseg},
        {"noverlap", trailer.noverlap},
        {"segments_averaged", trailer.segments_averaged},
        {"segments_expected", trailer.segments_expected},
        {"window", trailer.window},
        {"scaling", trailer.scaling},
        {"detrend", trailer.detrend},
        {"average", trailer.average},
        {"mean", static_cast<double>(trailer.mean)},
        {"rms", static_cast<double>(trailer.rms)},
        {"over_range_count", trailer.over_range_count},
        {"worker", trailer.worker},
        {"data_crc32", trailer.data_crc32}};
    for (const auto& [name, value] : fields) {
        EXPECT_EQ(value, expected.at(name).get<double>()) << name;
    }
    EXPECT_EQ(trailer.sequence, expected.at("sequence").get<uint64_t>());
    EXPECT_EQ(trailer.timestamp_ns, expected.at("timestamp_ns").get<int64_t>());
    EXPECT_EQ(trailer.first_sample, expected.at("first_sample").get<uint64_t>());
    EXPECT_EQ(trailer.rate.numerator, expected.at("rate").at(0).get<uint64_t>());
    EXPECT_EQ(trailer.rate.denominator, expected.at("rate").at(1).get<uint64_t>());
}

void expect_values(const SpectrumPacket& packet, const json& expected) {
    const auto values = packet.values();
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
        const auto text = expected[i].get<std::string>();
        if (text == "nan") {
            EXPECT_TRUE(std::isnan(values[i]));
        } else if (packet.coding == Coding::float32) {
            EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), std::stoul(text, nullptr, 16));
        } else {
            EXPECT_FLOAT_EQ(values[i], std::bit_cast<float>(
                                           static_cast<uint32_t>(std::stoul(text, nullptr, 16))));
        }
    }
}

void check_vector(const std::string& folder, const json& expected,
                  SpectrumPacket (*decode)(std::span<const std::byte>)) {
    const std::string bytes = read_file(folder + expected.at("file").get<std::string>());
    const std::string error = expected.at("error").get<std::string>();
    SpectrumPacket packet;
    try {
        packet = decode(std::as_bytes(std::span(bytes)));
    } catch (const PacketError& thrown) {
        EXPECT_EQ(name_of(thrown), error);
        return;
    }
    ASSERT_EQ(error, "none");
    EXPECT_EQ(packet.version, expected.at("header").at("version").get<uint32_t>());
    EXPECT_EQ(packet.timestamp_us, expected.at("header").at("timestamp_us").get<uint32_t>());
    EXPECT_EQ(packet.channel_id, expected.at("header").at("channel_id").get<uint32_t>());
    EXPECT_EQ(packet.fft_size, expected.at("header").at("fft_size").get<uint32_t>());
    expect_values(packet, expected.at("values_bits"));
    ASSERT_EQ(packet.trailer.has_value(), expected.contains("trailer"));
    if (packet.trailer) {
        expect_trailer(*packet.trailer, expected.at("trailer"));
    }
}

TEST(ClientPacket, ReadsEveryGoldenPacket) {
    const json of_1 = json::parse(read_file("packets/index.json"));
    for (const json& expected : of_1.at("packets")) {
        SCOPED_TRACE(expected.at("file").get<std::string>());
        check_vector("packets/", expected, decode_packet);
    }
    const json of_2 = json::parse(read_file("packets_2/index.json"));
    for (const json& expected : of_2.at("packets")) {
        SCOPED_TRACE(expected.at("file").get<std::string>());
        check_vector("packets_2/", expected, decode_coded_packet);
    }
}

TEST(ClientPacket, IsViewedWithEigenInPlace) {
    const std::string text = read_file("packets/v1_1_real.bin");
    alignas(16) std::byte storage[256];
    std::transform(text.begin(), text.end(), storage,
                   [](char c) { return static_cast<std::byte>(c); });
    const auto packet = decode_packet(std::span(storage).first(text.size()));
    const SpectrumView values = view(packet);
    EXPECT_EQ(static_cast<const void*>(values.data()), storage + 20);
    EXPECT_EQ(values.size(), 5);
    EXPECT_EQ(values.maxCoeff(), 1048576.0F);
    EXPECT_EQ(packet.frequency(2), 2.5e6);
    EXPECT_EQ(packet.unit(), "counts^2/Hz");
    // One byte on, the floats cannot be read in place.
    std::copy_backward(storage, storage + text.size(), storage + text.size() + 1);
    EXPECT_THROW(view(decode_packet(std::span(storage).subspan(1, text.size()))),
                 std::invalid_argument);
}

TEST(ClientFeed, OfNobodyTimesOut) {
    EXPECT_THROW(latest("ipc:///tmp/echelle-nobody-listens-here", 0, std::chrono::milliseconds(20)),
                 FeedTimeout);
    EXPECT_THROW(Subscriber("nonsense://x"), FeedError);
    SubscribeOptions keys;
    keys.server_key = "too short";
    EXPECT_THROW(latest("tcp://127.0.0.1:1", 0, std::chrono::milliseconds(20), keys), FeedError);
}

}  // namespace
}  // namespace echelle::client
