// One datagram each: byte vectors written by hand from ANSI/VITA 49.0 and the SPEAD recommendation.
#include "coordinator/sources/captured_udp.hpp"
#include "coordinator/sources/raw_datagram.hpp"
#include "coordinator/sources/spead.hpp"
#include "coordinator/sources/vita49.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/hex_bytes.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

struct Case {
    std::string name;
    std::string bytes;
    DatagramFault fault = DatagramFault::none;
};

// ---- VITA 49

// Type 1, class id, trailer, UTC, sample count, packet 5, 10 words; then stream 0x1234, class id
// (OUI 0012A2, codes 1 and 2), 1577836800 s (2020-01-01), sample 1000000, samples 1 -2 300 -32768,
// trailer: nothing enabled.
const std::string full_packet = hex(
    "1C55000A 00001234 000012A2 00010002 5E0BE100 00000000 000F4240 0001FFFE 012C8000 00000000");

TEST(Vita49, ReadsEveryField) {
    Vita49Packet packet;
    ASSERT_EQ(parse_vita49(as_bytes(full_packet), packet), DatagramFault::none);
    EXPECT_EQ(packet.stream_id, 0x1234U);
    EXPECT_EQ(packet.count, 5);
    EXPECT_EQ(packet.integer_time, IntegerTime::utc);
    EXPECT_EQ(packet.fractional_time, FractionalTime::samples);
    EXPECT_EQ(packet.seconds, 1'577'836'800U);
    EXPECT_EQ(packet.fraction, 1'000'000U);
    EXPECT_FALSE(packet.is_invalid);
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(packet.payload.data()), packet.payload.size()),
        hex("0001FFFE 012C8000"));
}

const std::vector<Case> vita49_cases = {
    {"nothing", "", DatagramFault::too_short},
    {"three bytes", hex("1C5500"), DatagramFault::too_short},
    {"65507 bytes of anything", std::string(65'507, 'x'), DatagramFault::size_mismatch},
    {"a header alone: no samples", hex("00000001"), DatagramFault::partial_sample},
    {"type 0: no stream id", hex("00000002 00010002")},
    {"type 2: extension data", hex("20000002 00010002"), DatagramFault::not_samples},
    {"type 4: context", hex("40000002 00010002"), DatagramFault::not_samples},
    {"type 8: reserved", hex("80000002 00010002"), DatagramFault::unknown_header},
    {"a spectrum (49.2, bit 24)", hex("01000002 00010002"), DatagramFault::not_samples},
    {"one word more than it says", hex("00000002 00010002 00000000"), DatagramFault::size_mismatch},
    {"one word less", hex("00000003 00010002"), DatagramFault::size_mismatch},
    {"ends before its class id", hex("18000003 00001234 00000000"), DatagramFault::too_short},
    {"ends before its time", hex("00700003 5E0BE100 00000000"), DatagramFault::too_short},
    {"ends before its trailer", hex("04000001"), DatagramFault::too_short},
    {"pad bits: half of the last word", hex("08000004 80000000 00000000 0001FFFF")},
    {"pad bits: 3", hex("08000004 18000000 00000000 0001FFFF"), DatagramFault::partial_sample},
    {"more pad than payload", hex("08000003 80000000 00000000"), DatagramFault::partial_sample},
};

TEST(Vita49, SaysWhatIsWrongWithADatagram) {
    for (const Case& each : vita49_cases) {
        Vita49Framing framing({1, 1}, Rational{1000, 1}, std::nullopt);
        PacketPlace place;
        EXPECT_EQ(framing.place(as_bytes(each.bytes), place), each.fault) << each.name;
    }
}

TEST(Vita49, PadBitsAreNoSamples) {
    Vita49Packet packet;
    ASSERT_EQ(parse_vita49(as_bytes(hex("08000004 80000000 00000000 0001FFFF")), packet),
              DatagramFault::none);
    EXPECT_EQ(packet.payload.size(), 2U);
}

TEST(Vita49, TheTrailerSaysWhetherSamplesAreGood) {
    struct Trailer {
        std::string word;
        bool is_invalid = false;
        bool is_over_range = false;
    };
    const std::vector<Trailer> trailers = {
        {"00000000", false, false}, {"00041000", false, false},  // indicators that nobody enabled
        {"40040000", false, false},                              // valid data: yes
        {"40000000", true, false},                               // valid data: no
        {"01001000", true, false},                               // sample loss
        {"02002000", false, true},                               // over range
    };
    for (const Trailer& each : trailers) {
        Vita49Packet packet;
        const std::string bytes = hex("04000003 00010002") + hex(each.word);
        ASSERT_EQ(parse_vita49(as_bytes(bytes), packet), DatagramFault::none) << each.word;
        EXPECT_EQ(packet.is_invalid, each.is_invalid) << each.word;
        EXPECT_EQ(packet.is_over_range, each.is_over_range) << each.word;
    }
}

// Packets of 4 samples at 1000 Hz: type 0, count, TSI and TSF as given.
std::string packet_at(uint32_t tsi, uint32_t tsf, uint32_t count, uint32_t seconds,
                      uint64_t fraction) {
    const uint32_t words = 1 + (tsi != 0 ? 1 : 0) + (tsf != 0 ? 2 : 0) + 2;
    const std::string time =
        (tsi != 0 ? be(seconds, 4) : std::string()) + (tsf != 0 ? be(fraction, 8) : std::string());
    return be(tsi << 22 | tsf << 20 | (count & 15) << 16 | words, 4) + time +
           hex("0001 0002 0003 0004");
}

std::vector<PacketPlace> places(const std::vector<std::string>& packets, Rational rate) {
    Vita49Framing framing({1, 1}, rate, std::nullopt);
    std::vector<PacketPlace> found;
    for (const std::string& packet : packets) {
        PacketPlace place;
        EXPECT_EQ(framing.place(as_bytes(packet), place), DatagramFault::none);
        place.samples = {};
        found.push_back(place);
    }
    return found;
}

TEST(Vita49, TimeIsCountedInSamples) {
    // 2020-01-01 + 0.5 s.
    const auto by_count = places({packet_at(1, 1, 0, 1'577'836'800, 500)}, {1000, 1});
    EXPECT_EQ(by_count[0].sample_time, uint64_t{1'577'836'800'500});
    EXPECT_EQ(by_count[0].unix_ns, int64_t{1'577'836'800'500'000'000});
    const auto by_time = places({packet_at(1, 2, 0, 1'577'836'800, 500'000'000'000)}, {1000, 1});
    EXPECT_EQ(by_time[0].sample_time, uint64_t{1'577'836'800'500});
    EXPECT_EQ(by_time[0].unix_ns, int64_t{1'577'836'800'500'000'000});
    // 2020-01-01T00:00:00 UTC is 1261872018 s of GPS time.
    const auto gps = places({packet_at(2, 2, 0, 1'261'872'018, 0)}, {1000, 1});
    EXPECT_EQ(gps[0].unix_ns, int64_t{1'577'836'800'000'000'000});
    const auto free_running = places({packet_at(0, 3, 0, 0, 77)}, {1000, 1});
    EXPECT_EQ(free_running[0].sample_time, 77U);
    EXPECT_EQ(free_running[0].unix_ns, std::nullopt);
    // 200/3 Hz: 3 s are 200 samples, exactly.
    const auto exact = places({packet_at(3, 2, 0, 3'000'000'000, 0)}, {200, 3});
    EXPECT_EQ(exact[0].sample_time, uint64_t{200'000'000'000});
    EXPECT_EQ(exact[0].unix_ns, std::nullopt);
    // A fraction of more than a second, or one of an unknown second, places nothing.
    EXPECT_EQ(places({packet_at(1, 2, 0, 1, 1'000'000'000'000)}, {1000, 1})[0].sample_time,
              std::nullopt);
    EXPECT_EQ(places({packet_at(0, 1, 0, 0, 5)}, {1000, 1})[0].sample_time, std::nullopt);
}

TEST(Vita49, FourBitsOfCountAreUnwrappedByTheTime) {
    struct Step {
        std::string name;
        uint32_t count;
        uint64_t time;
        int64_t step;
    };
    // After packet 5 of sample 1000, in packets of 4 samples.
    const std::vector<Step> steps = {
        {"the next", 6, 1004, 1},
        {"19 lost", 9, 1080, 20},
        {"one before", 4, 996, -1},
        {"the same", 5, 1000, 0},
        {"1600 lost exactly", 6, 1000 + 4 * 1601, 1601},
        {"the sender left samples out", 6, 1037, 1},
        {"the clock began anew", 6, 0, 1},
        {"clock and count began anew", 5, 10'000'000, 16},
    };
    for (const Step& each : steps) {
        const auto found = places(
            {packet_at(0, 3, 5, 0, 1000), packet_at(0, 3, each.count, 0, each.time)}, {1000, 1});
        EXPECT_EQ(found[1].number - found[0].number, each.step) << each.name;
    }
    // Without a time: up to 11 ahead, or 4 behind.
    for (const auto& [count, step] : {std::pair{6U, 1}, {0U, 11}, {1U, -4}, {4U, -1}, {5U, 0}}) {
        const auto found = places({packet_at(0, 0, 5, 0, 0), packet_at(0, 0, count, 0, 0)}, {1, 1});
        EXPECT_EQ(found[1].number - found[0].number, step) << count;
    }
}

TEST(Vita49, KeepsToOneStream) {
    const std::string one = hex("10000003 00000001 00010002");
    const std::string two = hex("10000003 00000002 00010002");
    PacketPlace place;
    Vita49Framing first({1, 1}, {1, 1}, std::nullopt);
    EXPECT_EQ(first.place(as_bytes(one), place), DatagramFault::none);
    EXPECT_EQ(first.place(as_bytes(two), place), DatagramFault::other_stream);
    Vita49Framing chosen({1, 1}, {1, 1}, 2);
    EXPECT_EQ(chosen.place(as_bytes(one), place), DatagramFault::other_stream);
    EXPECT_EQ(chosen.place(as_bytes(two), place), DatagramFault::none);
}

// ---- SPEAD

// SPEAD-64-48, 4 items: heap 7 of 16 bytes, offset 8, 8 bytes of payload.
std::string spead_packet(uint64_t heap, uint64_t heap_length, uint64_t offset,
                         const std::string& payload) {
    return hex("5304 0206 0000 0004 8001") + be(heap, 6) + hex("8002") + be(heap_length, 6) +
           hex("8003") + be(offset, 6) + hex("8004") + be(payload.size(), 6) + payload;
}

TEST(Spead, ReadsEveryField) {
    SpeadPacket packet;
    const std::string bytes =
        hex("5304 0206 0000 0006 8001 0000 0000 0007 8002 0000 0000 0010 8003 0000 0000 0008"
            "8004 0000 0000 0008 9600 0000 0012 3456 3300 0000 0000 0000 0001FFFE 012C8000");
    ASSERT_EQ(parse_spead(as_bytes(bytes), packet), DatagramFault::none);
    EXPECT_EQ(packet.heap_count, 7U);
    EXPECT_EQ(packet.heap_length, 16U);
    EXPECT_EQ(packet.payload_offset, 8U);
    EXPECT_EQ(packet.payload.size(), 8U);
    // SPEAD-64-40: three bytes of id, five of address.
    const std::string narrow =
        hex("5304 0305 0000 0004 800001 0000000007 800002 0000000008 800003 0000000000"
            "800004 0000000008 0001FFFE 012C8000");
    ASSERT_EQ(parse_spead(as_bytes(narrow), packet), DatagramFault::none);
    EXPECT_EQ(packet.heap_count, 7U);
}

const std::vector<Case> spead_cases = {
    {"nothing", "", DatagramFault::too_short},
    {"three bytes", hex("530402"), DatagramFault::too_short},
    {"65507 bytes of anything", std::string(65'507, 'x'), DatagramFault::unknown_header},
    {"version 3", hex("5303 0206 0000 0000"), DatagramFault::unknown_header},
    {"widths that do not make 8", hex("5304 0205 0000 0000"), DatagramFault::unknown_header},
    {"an address of 8 bytes", hex("5304 0008 0000 0000"), DatagramFault::unknown_header},
    {"more items than bytes", hex("5304 0206 0000 0002 8001 0000 0000 0007"),
     DatagramFault::too_short},
    {"no items", hex("5304 0206 0000 0000"), DatagramFault::missing_item},
    {"no heap length",
     hex("5304 0206 0000 0003 8001000000000007 8003000000000000"
         "8004000000000004 00010002"),
     DatagramFault::missing_item},
    {"a heap count that is an address",
     hex("5304 0206 0000 0004 0001000000000007"
         "8002000000000004 8003000000000000 8004000000000004 00010002"),
     DatagramFault::missing_item},
    {"a descriptor", hex("5304 0206 0000 0001 0005 0000 0000 0000"), DatagramFault::not_samples},
    {"end of stream", hex("5304 0206 0000 0001 8006 0000 0000 0002"), DatagramFault::not_samples},
    {"more payload than it says", spead_packet(1, 8, 0, "12345678") + "9",
     DatagramFault::size_mismatch},
    {"reaches beyond its heap", spead_packet(1, 8, 4, "12345678"), DatagramFault::beyond_heap},
    {"an offset that wraps round", spead_packet(1, 8, 0xFFFF'FFFF'FFFF, "12345678"),
     DatagramFault::beyond_heap},
    {"no payload", spead_packet(1, 8, 0, ""), DatagramFault::partial_sample},
    {"half a sample", spead_packet(1, 9, 0, "123456789"), DatagramFault::partial_sample},
    {"in the middle of a heap", spead_packet(1, 16, 8, "12345678"), DatagramFault::before_start},
    {"a whole heap", spead_packet(1, 8, 0, "12345678")},
};

TEST(Spead, SaysWhatIsWrongWithADatagram) {
    for (const Case& each : spead_cases) {
        SpeadFraming framing({1, 1}, 1);
        PacketPlace place;
        EXPECT_EQ(framing.place(as_bytes(each.bytes), place), each.fault) << each.name;
    }
}

TEST(Spead, PlacesPacketsByHeapAndOffset) {
    // Heaps of 20 bytes in packets of 8, 8 and 4; heap counts grow by 10.
    SpeadFraming framing({1, 1}, 10);
    PacketPlace place;
    ASSERT_EQ(framing.place(as_bytes(spead_packet(40, 20, 0, "12345678")), place),
              DatagramFault::none);
    const int64_t first = place.number;
    ASSERT_EQ(framing.place(as_bytes(spead_packet(60, 20, 16, "1234")), place),
              DatagramFault::none);
    EXPECT_EQ(place.number - first, 2 * 3 + 2);
    EXPECT_EQ(place.sample_time, 2U * 10 + 8);
    ASSERT_EQ(framing.place(as_bytes(spead_packet(30, 20, 8, "12345678")), place),
              DatagramFault::none);
    EXPECT_EQ(place.number - first, -2);
    const std::vector<Case> others = {
        {"between two steps", spead_packet(45, 20, 0, "12345678"), DatagramFault::off_step},
        {"another heap length", spead_packet(50, 24, 0, "12345678"), DatagramFault::changed_size},
        {"another packet size", spead_packet(50, 20, 0, "1234"), DatagramFault::changed_size},
        {"another offset", spead_packet(50, 20, 4, "12345678"), DatagramFault::changed_size},
    };
    for (const Case& each : others) {
        EXPECT_EQ(framing.place(as_bytes(each.bytes), place), each.fault) << each.name;
    }
}

// ---- raw

RawHeader raw_header(const std::string& sequence, uint32_t bytes, uint64_t step = 1) {
    return {bytes, SequenceField::parse(sequence), step};
}

TEST(RawDatagram, ReadsTheSequenceAsItIsDescribed) {
    for (const auto& [text, bytes] : {std::pair{"u16be@1", "FF 0102 FF"},
                                      {"u16le@1", "FF 0201 FF"},
                                      {"u32be", "00000102"},
                                      {"u32le@0", "02010000"},
                                      {"u64be@0", "0000000000000102"},
                                      {"u64le@2", "FFFF 0201000000000000"}}) {
        const std::string header = hex(bytes);
        RawFraming framing({1, 1}, raw_header(text, static_cast<uint32_t>(header.size())));
        PacketPlace before;
        PacketPlace place;
        std::string zero = header;
        std::fill(zero.begin(), zero.end(), '\0');
        ASSERT_EQ(framing.place(as_bytes(zero + "ab"), before), DatagramFault::none) << text;
        ASSERT_EQ(framing.place(as_bytes(header + "ab"), place), DatagramFault::none) << text;
        EXPECT_EQ(place.number - before.number, 0x102) << text;
        EXPECT_EQ(place.samples.size(), 2U);
    }
    for (const char* text : {"", "u32", "u24be", "u32be@", "u32be@x", "u32be@70000", "32be"}) {
        expect_mentions(usage_error([text] { SequenceField::parse(text); }), {"u32be@4"});
    }
}

TEST(RawDatagram, ShortCountersWrapRound) {
    RawFraming framing({1, 1}, raw_header("u16be", 2));
    PacketPlace before;
    PacketPlace place;
    framing.place(as_bytes(hex("FFFE 0001")), before);
    framing.place(as_bytes(hex("0001 0001")), place);
    EXPECT_EQ(place.number - before.number, 3);
}

TEST(RawDatagram, StepsAreCountedAndWhatLiesBetweenIsRefused) {
    RawFraming framing({1, 1}, raw_header("u32be", 4, 100));
    PacketPlace first;
    PacketPlace place;
    const auto at = [](uint32_t sequence) { return be(sequence, 4) + "ab"; };
    ASSERT_EQ(framing.place(as_bytes(at(1000)), first), DatagramFault::none);
    ASSERT_EQ(framing.place(as_bytes(at(1300)), place), DatagramFault::none);
    EXPECT_EQ(place.number - first.number, 3);
    EXPECT_EQ(framing.place(as_bytes(at(1350)), place), DatagramFault::off_step);
    ASSERT_EQ(framing.place(as_bytes(at(1400)), place), DatagramFault::none);
    EXPECT_EQ(place.number - first.number, 4);
    // A sender that begins anew between two steps is believed from its second datagram on.
    EXPECT_EQ(framing.place(as_bytes(at(7)), place), DatagramFault::off_step);
    ASSERT_EQ(framing.place(as_bytes(at(107)), place), DatagramFault::none);
    EXPECT_GT(place.number - first.number, framing.longest_loss());
}

// gr-grnet issue 6: counted up in network order, read in the machine's.
TEST(RawDatagram, ASequenceInTheOtherByteOrderIsRefusedAsImplausible) {
    for (const std::string width : {"u16", "u32", "u64"}) {
        const size_t bytes = width == "u16" ? 2 : width == "u32" ? 4 : 8;
        RawFraming framing({1, 1}, raw_header(width + "le", static_cast<uint32_t>(bytes)));
        PacketPlace place;
        std::vector<int64_t> numbers;
        for (uint64_t count = 0; count < 10; ++count) {
            ASSERT_EQ(framing.place(as_bytes(be(count, bytes) + "ab"), place), DatagramFault::none);
            numbers.push_back(place.number);
        }
        EXPECT_GE(numbers[1] - numbers[0], 256);
        expect_mentions(framing.contradiction(),
                        {"implausible", "other byte order", "sequence=" + width + "be@0"});
    }
    RawFraming right({1, 1}, raw_header("u32be", 4));
    PacketPlace place;
    for (uint64_t count = 250; count < 270; ++count) {
        right.place(as_bytes(be(count, 4) + "ab"), place);
    }
    EXPECT_EQ(right.contradiction(), "");
}

TEST(RawDatagram, SizesThatCannotBeAreMalformed) {
    const std::vector<Case> cases = {
        {"nothing", "", DatagramFault::too_short},
        {"three bytes", "abc", DatagramFault::too_short},
        {"a header alone", "abcd", DatagramFault::partial_sample},
        {"half a sample", "abcd12345", DatagramFault::partial_sample},
        {"65507 bytes", std::string(65'507, 'x'), DatagramFault::partial_sample},
        {"two samples", "abcd12345678"},
    };
    for (const Case& each : cases) {
        RawFraming framing({2, 1}, raw_header("u32be", 4));
        PacketPlace place;
        EXPECT_EQ(framing.place(as_bytes(each.bytes), place), each.fault) << each.name;
    }
}

// ---- captured packets

const std::string ethernet = hex("0102030405060708090A0B0C");
// 10.0.0.1 to 10.0.0.2, UDP, total length 32 of which 20 are this header.
const std::string ipv4 = hex("4500 0020 0000 4000 4011 0000 0A000001 0A000002");
const std::string ipv6 =
    hex("60000000 000C 11 40 00000000000000000000000000000001"
        "00000000000000000000000000000002");
// Ports 1000 to 4991, length 12.
const std::string udp = hex("03E8 137F 000C 0000") + "data";

struct CaptureCase {
    std::string name;
    LinkType link;
    std::string bytes;
    CaptureFault fault = CaptureFault::none;
    size_t more_on_the_wire = 0;
};

const std::vector<CaptureCase> capture_cases = {
    {"Ethernet", LinkType::ethernet, ethernet + hex("0800") + ipv4 + udp},
    {"Ethernet, padded", LinkType::ethernet, ethernet + hex("0800") + ipv4 + udp + "pad"},
    {"VLAN", LinkType::ethernet, ethernet + hex("8100 0005 0800") + ipv4 + udp},
    {"two VLANs", LinkType::ethernet, ethernet + hex("88A8 0005 8100 0006 0800") + ipv4 + udp},
    {"Linux cooked", LinkType::linux_sll, hex("0000 0001 0006 0102030405060000 0800") + ipv4 + udp},
    {"Linux cooked 2", LinkType::linux_sll2,
     hex("0800 0000 00000001 0001 00 06 0102030405060000") + ipv4 + udp},
    {"IP alone", LinkType::raw_ip, ipv4 + udp},
    {"loopback", LinkType::loopback, hex("02000000") + ipv4 + udp},
    {"IPv6", LinkType::ethernet, ethernet + hex("86DD") + ipv6 + udp},
    {"IPv4 options", LinkType::raw_ip,
     hex("4600 0024 0000 0000 4011 0000 0A000001 0A000002 01010101") + udp},
    {"less than was on the wire (libpcap issue 1710)", LinkType::raw_ip, ipv4 + udp,
     CaptureFault::truncated, 4},
    {"nothing", LinkType::ethernet, "", CaptureFault::not_udp},
    {"ARP", LinkType::ethernet, ethernet + hex("0806") + std::string(28, '\0'),
     CaptureFault::not_udp},
    {"TCP", LinkType::raw_ip, hex("4500 0020 0000 4000 4006 0000 0A000001 0A000002") + udp,
     CaptureFault::not_udp},
    {"first fragment", LinkType::raw_ip,
     hex("4500 0020 0000 2000 4011 0000 0A000001 0A000002") + udp, CaptureFault::fragment},
    {"last fragment", LinkType::raw_ip,
     hex("4500 0020 0000 0010 4011 0000 0A000001 0A000002") + udp, CaptureFault::fragment},
    {"IPv6 fragment", LinkType::raw_ip,
     hex("60000000 000C 2C 40 00000000000000000000000000000001"
         "00000000000000000000000000000002") +
         udp,
     CaptureFault::fragment},
    {"more IP than there is", LinkType::raw_ip,
     hex("4500 0030 0000 4000 4011 0000 0A000001 0A000002") + udp, CaptureFault::bad_length},
    {"an IP header of 8 bytes", LinkType::raw_ip,
     hex("4200 0020 0000 4000 4011 0000 0A000001 0A000002") + udp, CaptureFault::bad_length},
    {"more UDP than there is", LinkType::raw_ip, ipv4 + hex("03E8 137F 000D 0000") + "data",
     CaptureFault::bad_length},
    {"less UDP than its header", LinkType::raw_ip, ipv4 + hex("03E8 137F 0007 0000") + "data",
     CaptureFault::bad_length},
};

TEST(CapturedUdp, FindsTheDatagramOrSaysWhatIsWrong) {
    for (const CaptureCase& each : capture_cases) {
        CapturedUdp found;
        EXPECT_EQ(find_udp(each.link, as_bytes(each.bytes),
                           each.bytes.size() + each.more_on_the_wire, found),
                  each.fault)
            << each.name;
        if (each.fault == CaptureFault::none) {
            EXPECT_EQ(found.port, 4991) << each.name;
            EXPECT_EQ(std::to_integer<int>(found.destination.back()), 2) << each.name;
            EXPECT_EQ(std::string(reinterpret_cast<const char*>(found.payload.data()),
                                  found.payload.size()),
                      "data")
                << each.name;
        }
    }
    // Longer than it was: as bad.
    CapturedUdp found;
    EXPECT_EQ(find_udp(LinkType::raw_ip, as_bytes(ipv4 + udp), 20, found), CaptureFault::truncated);
}

}  // namespace
}  // namespace echelle
