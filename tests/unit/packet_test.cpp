#include "common/packet.hpp"

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "common/crc32.hpp"

namespace echelle {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint32_t fft_size = 5;
constexpr size_t data_bytes = size_t{4} * fft_size;
constexpr size_t trailer_at = packet_bytes_1_0(fft_size);
constexpr size_t worker_at = trailer_at + 100;

// Storage of whole floats, since a packet starts at a multiple of 4 bytes.
class Packet {
  public:
    explicit Packet(size_t bytes) : storage_((bytes + 3) / 4), bytes_(bytes) {}
    std::span<std::byte> bytes() {
        return std::as_writable_bytes(std::span(storage_)).first(bytes_);
    }
    Bytes copy() {
        const auto all = bytes();
        return {all.begin(), all.end()};
    }

  private:
    std::vector<float> storage_;
    size_t bytes_;
};

PacketHeader some_header() {
    return {.timestamp_us = 0x12345678, .channel_id = 3, .fft_size = fft_size};
}

PacketTrailer some_trailer() {
    return {.flags = PacketFlag::gap_before | PacketFlag::volts,
            .sequence = 41,
            .timestamp_ns = -5,
            .first_sample = 1'343'488,
            .rate = {200, 3},
            .first_bin_hz = -2.5,
            .bin_spacing_hz = 1.25,
            .nperseg = 8,
            .noverlap = 4,
            .segments_averaged = 9,
            .segments_expected = 10,
            .window = WindowKind::kaiser,
            .scaling = Scaling::spectrum,
            .detrend = Detrend::none,
            .average = AverageMode::median,
            .mean = -0.25F,
            .rms = 1448.5F,
            .over_range_count = 6,
            .worker = 7};
}

void write_values(std::span<std::byte> packet) {
    const auto values = packet_data(packet, fft_size);
    for (size_t index = 0; index < values.size(); ++index) {
        values[index] = 0.5F * static_cast<float>(index + 1);
    }
}

Bytes packet_1_0() {
    Packet packet(packet_bytes_1_0(fft_size));
    write_values(packet.bytes());
    seal_packet_1_0(packet.bytes(), some_header());
    return packet.copy();
}

Bytes packet_1_1() {
    Packet packet(packet_bytes_1_1(fft_size));
    write_values(packet.bytes());
    seal_packet_1_1(packet.bytes(), some_header(), some_trailer());
    return packet.copy();
}

PacketError error_of(std::span<const std::byte> bytes) {
    PacketView view;
    return decode_packet(bytes, view);
}

void put_u32(Bytes& bytes, size_t at, uint32_t value) {
    for (size_t index = 0; index < 4; ++index) {
        bytes[at + index] = static_cast<std::byte>(value >> (24 - 8 * index));
    }
}

void repair_header_crc(Bytes& bytes) {
    put_u32(bytes, 16, crc32(std::span(bytes).first(16)));
}

void repair_trailer_crc(Bytes& bytes) {
    const auto covered = std::span(bytes).subspan(trailer_at, bytes.size() - trailer_at - 4);
    put_u32(bytes, bytes.size() - 4, crc32(covered));
}

// 1.2 as a later writer may make it: `more` bytes between the 1.1 fields and the trailer's CRC.
Bytes packet_1_2(size_t more) {
    Bytes bytes = packet_1_1();
    put_u32(bytes, 0, 0x00010002);
    repair_header_crc(bytes);
    bytes.insert(bytes.end() - 4, more, std::byte{0xA5});
    const size_t length = packet_trailer_bytes + more;
    bytes[trailer_at + 4] = static_cast<std::byte>(length >> 8);
    bytes[trailer_at + 5] = static_cast<std::byte>(length);
    repair_trailer_crc(bytes);
    return bytes;
}

TEST(Packet, NamesEveryError) {
    EXPECT_EQ(name_of(PacketError::none), "none");
    EXPECT_EQ(name_of(PacketError::too_short), "too_short");
    EXPECT_EQ(name_of(PacketError::too_long), "too_long");
    EXPECT_EQ(name_of(PacketError::bad_crc), "bad_crc");
    EXPECT_EQ(name_of(PacketError::unknown_major), "unknown_major");
    EXPECT_EQ(name_of(PacketError::bad_trailer), "bad_trailer");
}

TEST(Packet, Of1_0ComesBack) {
    const Bytes bytes = packet_1_0();
    PacketView view;
    ASSERT_EQ(decode_packet(bytes, view), PacketError::none);
    EXPECT_EQ(view.header.version, packet_version_1_0);
    EXPECT_EQ(view.header.timestamp_us, 0x12345678U);
    EXPECT_EQ(view.header.channel_id, 3U);
    EXPECT_EQ(view.header.fft_size, fft_size);
    EXPECT_FALSE(view.has_trailer);
    ASSERT_EQ(view.data.size(), data_bytes);
    EXPECT_EQ(view.data.data(), bytes.data() + packet_header_bytes) << "a view, not a copy";
    EXPECT_EQ(view.value(0), 0.5F);
    EXPECT_EQ(view.value(4), 2.5F);
}

TEST(Packet, Of1_1ComesBack) {
    const Bytes bytes = packet_1_1();
    PacketView view;
    ASSERT_EQ(decode_packet(bytes, view), PacketError::none);
    EXPECT_EQ(view.header.version, packet_version_1_1);
    EXPECT_EQ(view.value(4), 2.5F);
    ASSERT_TRUE(view.has_trailer);
    EXPECT_EQ(view.trailer.flags, 17);
    EXPECT_EQ(view.trailer.sequence, 41U);
    EXPECT_EQ(view.trailer.timestamp_ns, -5);
    EXPECT_EQ(view.trailer.first_sample, 1'343'488U);
    EXPECT_EQ(view.trailer.rate, (Rational{200, 3}));
    EXPECT_EQ(view.trailer.first_bin_hz, -2.5);
    EXPECT_EQ(view.trailer.bin_spacing_hz, 1.25);
    EXPECT_EQ(view.trailer.nperseg, 8U);
    EXPECT_EQ(view.trailer.noverlap, 4U);
    EXPECT_EQ(view.trailer.segments_averaged, 9U);
    EXPECT_EQ(view.trailer.segments_expected, 10U);
    EXPECT_EQ(view.trailer.window, WindowKind::kaiser);
    EXPECT_EQ(view.trailer.scaling, Scaling::spectrum);
    EXPECT_EQ(view.trailer.detrend, Detrend::none);
    EXPECT_EQ(view.trailer.average, AverageMode::median);
    EXPECT_EQ(view.trailer.mean, -0.25F);
    EXPECT_EQ(view.trailer.rms, 1448.5F);
    EXPECT_EQ(view.trailer.over_range_count, 6U);
    EXPECT_EQ(view.trailer.worker, 7U);
    EXPECT_EQ(view.trailer.data_crc32, crc32(view.data));
}

TEST(Packet, SealingIgnoresVersionAndDataCrcOfTheCaller) {
    PacketHeader header = some_header();
    header.version = 99;
    PacketTrailer trailer = some_trailer();
    trailer.data_crc32 = 99;
    Packet packet(packet_bytes_1_1(fft_size));
    write_values(packet.bytes());
    seal_packet_1_1(packet.bytes(), header, trailer);
    EXPECT_EQ(packet.copy(), packet_1_1());
}

TEST(Packet, SealingOverwritesWhatStoodInTheTrailersZeroBytes) {
    Packet packet(packet_bytes_1_1(fft_size));
    std::memset(packet.bytes().data(), 0xFF, packet.bytes().size());
    write_values(packet.bytes());
    seal_packet_1_1(packet.bytes(), some_header(), some_trailer());
    EXPECT_EQ(packet.copy(), packet_1_1());
}

TEST(Packet, DataStandAtByte20) {
    Packet packet(packet_bytes_1_1(fft_size));
    const auto values = packet_data(packet.bytes(), fft_size);
    EXPECT_EQ(std::as_bytes(values).data(), packet.bytes().data() + 20);
    EXPECT_EQ(values.size(), fft_size);
}

TEST(Packet, ResealingReplacesTheTrailerAndKeepsTheData) {
    Packet packet(packet_bytes_1_1(fft_size));
    write_values(packet.bytes());
    PacketTrailer trailer = some_trailer();
    trailer.sequence = 0;
    trailer.worker = worker_unknown;
    seal_packet_1_1(packet.bytes(), some_header(), trailer);
    ASSERT_NE(packet.copy(), packet_1_1());
    reseal_trailer(packet.bytes(), some_trailer());
    EXPECT_EQ(packet.copy(), packet_1_1());
}

TEST(Packet, ResealingDoesNotHideDamagedData) {
    Packet packet(packet_bytes_1_1(fft_size));
    write_values(packet.bytes());
    seal_packet_1_1(packet.bytes(), some_header(), some_trailer());
    packet.bytes()[25] ^= std::byte{4};
    reseal_trailer(packet.bytes(), some_trailer());
    EXPECT_EQ(error_of(packet.bytes()), PacketError::bad_crc);
}

TEST(Packet, TruncatedAnywhereIsTooShort) {
    for (const Bytes& whole : {packet_1_0(), packet_1_1(), packet_1_2(0), packet_1_2(9)}) {
        for (size_t length = 0; length < whole.size(); ++length) {
            // Of exactly that size, so that a sanitizer sees one byte read too far.
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
            ASSERT_EQ(error_of(cut), PacketError::too_short) << length << " of " << whole.size();
        }
    }
}

TEST(Packet, FollowedByAnythingIsTooLong) {
    for (const Bytes& whole : {packet_1_0(), packet_1_1(), packet_1_2(0), packet_1_2(9)}) {
        for (const size_t more : {1, 3, 4, 112, 5000}) {
            Bytes longer = whole;
            longer.resize(whole.size() + more, std::byte{0x45});
            ASSERT_EQ(error_of(longer), PacketError::too_long) << more;
        }
    }
}

TEST(Packet, AnyFlippedBitOf1_0IsFoundInTheHeaderAndHarmlessInTheData) {
    const Bytes whole = packet_1_0();
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        Bytes flipped = whole;
        flipped[bit / 8] ^= std::byte{1} << (bit % 8);
        const auto expected =
            bit / 8 < packet_header_bytes ? PacketError::bad_crc : PacketError::none;
        ASSERT_EQ(error_of(flipped), expected) << "bit " << bit;
    }
}

// What docs/packet.md's steps answer for a 1.1 packet with a bit of this byte flipped: magic and
// length are looked at before the CRC that covers them.
PacketError expected_for_flip(size_t byte, unsigned bit) {
    const size_t in_trailer = byte - trailer_at;
    if (byte < trailer_at || in_trailer >= 6) {
        return PacketError::bad_crc;
    }
    if (in_trailer < 4) {
        return PacketError::bad_trailer;
    }
    // 112 is 0x0070: clearing one of its bits makes it less than 112, setting another more.
    const bool cleared = in_trailer == 5 && bit >= 4 && bit <= 6;
    return cleared ? PacketError::bad_trailer : PacketError::too_short;
}

TEST(Packet, AnyFlippedBitOf1_1IsFound) {
    const Bytes whole = packet_1_1();
    for (size_t byte = 0; byte < whole.size(); ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            Bytes flipped = whole;
            flipped[byte] ^= std::byte{1} << bit;
            ASSERT_EQ(error_of(flipped), expected_for_flip(byte, bit)) << byte << ", bit " << bit;
        }
    }
}

TEST(Packet, AnyWrongByteOf1_1IsFound) {
    const Bytes whole = packet_1_1();
    for (size_t byte = 0; byte < whole.size(); ++byte) {
        for (unsigned change = 1; change < 256; ++change) {
            Bytes wrong = whole;
            wrong[byte] ^= static_cast<std::byte>(change);
            ASSERT_NE(error_of(wrong), PacketError::none) << byte << ", " << change;
        }
    }
}

TEST(Packet, OfALaterMinorVersionIsReadWithALongerTrailer) {
    for (const size_t more : {0, 1, 2, 3, 4, 7, 8, 100, 65535 - 112}) {
        const Bytes bytes = packet_1_2(more);
        PacketView view;
        ASSERT_EQ(decode_packet(bytes, view), PacketError::none) << more;
        EXPECT_EQ(view.header.version, 0x00010002U);
        EXPECT_EQ(view.value(4), 2.5F);
        EXPECT_EQ(view.trailer.sequence, 41U);
        EXPECT_EQ(view.trailer.worker, 7U);
    }
}

TEST(Packet, OfALaterMinorVersionStillHasItsCrcsChecked) {
    Bytes bytes = packet_1_2(8);
    bytes[bytes.size() - 5] ^= std::byte{1};  // the last of the fields unknown to 1.1
    EXPECT_EQ(error_of(bytes), PacketError::bad_crc);
    bytes = packet_1_2(8);
    bytes[packet_header_bytes] ^= std::byte{1};
    EXPECT_EQ(error_of(bytes), PacketError::bad_crc);
}

TEST(Packet, OfAnotherMajorVersionIsRefusedWhateverFollows) {
    for (const uint32_t version : {0x00000000U, 0x00000001U, 0x00020000U, 0x00020001U, 0x01000100U,
                                   0xFFFF0001U, 0xFFFFFFFFU}) {
        Bytes bytes = packet_1_1();
        put_u32(bytes, 0, version);
        repair_header_crc(bytes);
        EXPECT_EQ(error_of(bytes), PacketError::unknown_major) << version;
        bytes.resize(packet_header_bytes);
        EXPECT_EQ(error_of(bytes), PacketError::unknown_major) << version;
    }
}

TEST(Packet, WithAFalseFftSizeNeverReadsPastItsEnd) {
    for (const Bytes& whole : {packet_1_0(), packet_1_1()}) {
        for (const uint32_t size : {6U, 34U, 0x3FFFFFFFU, 0x40000000U, 0x40000005U, 0x7FFFFFFFU,
                                    0x80000000U, 0xFFFFFFFBU, 0xFFFFFFFFU}) {
            Bytes bytes = whole;
            put_u32(bytes, 12, size);
            repair_header_crc(bytes);
            const PacketError error = error_of(bytes);
            EXPECT_TRUE(error == PacketError::too_short || error == PacketError::bad_trailer)
                << size << ": " << name_of(error);
        }
    }
}

TEST(Packet, IsReadAtEveryAlignment) {
    const Bytes whole = packet_1_1();
    for (size_t shift = 0; shift < 16; ++shift) {
        Bytes shifted(shift, std::byte{0xEE});
        shifted.insert(shifted.end(), whole.begin(), whole.end());
        PacketView view;
        ASSERT_EQ(decode_packet(std::span(shifted).subspan(shift), view), PacketError::none);
        EXPECT_EQ(view.value(0), 0.5F);
        EXPECT_EQ(view.value(4), 2.5F);
        EXPECT_EQ(view.trailer.sequence, 41U);
        EXPECT_EQ(view.trailer.bin_spacing_hz, 1.25);
    }
}

TEST(Packet, KeepsTheBitsOfEveryFloat) {
    Bytes bytes = packet_1_1();
    for (const uint32_t bits : {0x80000000U, 0x00000001U, 0x7F800000U, 0x7FC12345U}) {
        const float value = std::bit_cast<float>(bits);
        std::memcpy(bytes.data() + packet_header_bytes, &value, sizeof value);
        put_u32(bytes, trailer_at + 88, bits);  // mean
        put_u32(bytes, trailer_at + 104, crc32(std::span(bytes).subspan(20, data_bytes)));
        repair_trailer_crc(bytes);
        PacketView view;
        ASSERT_EQ(decode_packet(bytes, view), PacketError::none);
        EXPECT_EQ(std::bit_cast<uint32_t>(view.value(0)), bits);
        EXPECT_EQ(std::bit_cast<uint32_t>(view.trailer.mean), bits);
    }
}

TEST(Packet, LeavesTheViewAloneWhenRefused) {
    Bytes bytes = packet_1_1();
    PacketView view;
    ASSERT_EQ(decode_packet(bytes, view), PacketError::none);
    bytes[worker_at] ^= std::byte{1};
    ASSERT_EQ(decode_packet(bytes, view), PacketError::bad_crc);
    EXPECT_EQ(view.trailer.worker, 7U);
}

TEST(PacketDeathTest, RefusesAWrongSizeOrIndexOfTheCaller) {
    Packet packet(packet_bytes_1_1(fft_size));
    seal_packet_1_1(packet.bytes(), some_header(), some_trailer());
    EXPECT_DEATH(seal_packet_1_0(packet.bytes(), some_header()), "broken invariant");
    EXPECT_DEATH(seal_packet_1_1(packet.bytes().first(151), some_header(), some_trailer()),
                 "broken invariant");
    EXPECT_DEATH(packet_data(packet.bytes(), 34), "broken invariant");
    EXPECT_DEATH(packet_data(packet.bytes().subspan(1), 1), "broken invariant");
    EXPECT_DEATH(reseal_trailer(packet.bytes().first(40), some_trailer()), "broken invariant");
    PacketView view;
    ASSERT_EQ(decode_packet(packet.bytes(), view), PacketError::none);
    EXPECT_DEATH(static_cast<void>(view.value(fft_size)), "broken invariant");
}

}  // namespace
}  // namespace echelle
