// From datagrams to frames of the ring, through capture files and through a socket on loopback.
#include <algorithm>
#include <span>

#include <arpa/inet.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "coordinator/sources/frame_assembler.hpp"
#include "coordinator/sources/packet_stream.hpp"
#include "coordinator/sources/pcap_source.hpp"
#include "coordinator/sources/raw_datagram.hpp"
#include "coordinator/sources/udp_socket.hpp"
#include "coordinator/sources/udp_source.hpp"
#include "coordinator/sources/vita49.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/hex_bytes.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

TEST(CopyValues, TurnsEveryByteRoundWhateverTheLength) {
    for (const size_t count : {0U, 1U, 3U, 4U, 5U, 9U}) {
        std::string bytes;
        std::vector<int16_t> expected;
        for (size_t i = 0; i < count; ++i) {
            bytes += be(0x8000 + 257 * i, 2);
            expected.push_back(static_cast<int16_t>(0x8000 + 257 * i));
        }
        std::vector<int16_t> values(count);
        copy_values(as_bytes(bytes), values, true);
        EXPECT_EQ(values, expected);
        copy_values(as_bytes(bytes), values, false);
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(values)), as_bytes(bytes)));
    }
}

// Two samples a datagram, numbered by a big-endian count of 32 bits.
std::string raw(uint32_t sequence, int first, int second) {
    return be(sequence, 4) + little_endian({first, second});
}

std::string ipv4_udp(const std::string& payload, uint16_t port = 4991) {
    return hex("4500") + be(28 + payload.size(), 2) +
           hex("0000 4000 4011 0000 0A000001 0A000002 03E8") + be(port, 2) +
           be(8 + payload.size(), 2) + hex("0000") + payload;
}

// A classic capture of raw IP (LINKTYPE_RAW): magic, version 2.4, zone, accuracy, longest, link.
std::string pcap_header() {
    return le(0xA1B2C3D4, 4) + le(2, 2) + le(4, 2) + le(0, 4) + le(0, 4) + le(262'144, 4) +
           le(101, 4);
}

// `wire` bytes of the packet were on the wire; 0: as many as were captured.
std::string pcap_packet(const std::string& bytes, uint32_t seconds, uint32_t microseconds,
                        size_t wire = 0) {
    return le(seconds, 4) + le(microseconds, 4) + le(bytes.size(), 4) +
           le(wire == 0 ? bytes.size() : wire, 4) + bytes;
}

class PcapSourceTest : public testing::Test {
  protected:
    // Datagrams half a second apart from 2020-01-01 on, two samples each: 4 Hz.
    std::string capture(const std::vector<std::string>& datagrams) const {
        std::string bytes = pcap_header();
        uint32_t halves = 0;
        for (const std::string& datagram : datagrams) {
            bytes +=
                pcap_packet(ipv4_udp(datagram), 1'577'836'800 + halves / 2, 500'000 * (halves % 2));
            ++halves;
        }
        return folder_.write("a.pcap", bytes);
    }
    std::unique_ptr<Source> open(const std::string& keys) const {
        return open_source("pcap:" + folder_.file("a.pcap") + "?" + keys, {});
    }

    TemporaryFolder folder_;
    const std::string keys_ = "framing=raw&sequence=u32be&rate=4&samples=4";
};

TEST_F(PcapSourceTest, SamplesRunOnFromDatagramToDatagram) {
    capture({raw(7, 1, 2), raw(8, 3, 4), raw(9, 5, 6)});
    const auto source = open(keys_);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::block);
    EXPECT_EQ(source->stream().epoch_ns, int64_t{1'577'836'800'000'000'000});
    expect_mentions(source->describe(), {"a.pcap", "u32be@0", "port 4991"});
    const auto frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 4}));
    EXPECT_EQ(frames[0].first_sample, 0U);
    EXPECT_EQ(frames[0].flags, 0U);
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[1].values[0], 5);
    EXPECT_EQ(frames[1].frame_index, 1U);
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["datagrams"]["received"], 3);
    EXPECT_EQ(facts["packets"]["lost"], 0);
    EXPECT_EQ(facts["samples"]["received"], 6);
}

TEST_F(PcapSourceTest, AHoleEndsTheFrameAndIsNeverFilledWithZeros) {
    // Ten packets of two samples are missing: 20 samples, 5 frames.
    capture({raw(7, 1, 2), raw(8, 3, 4), raw(9, 5, 6), raw(20, 7, 8), raw(21, 9, 10)});
    const auto source = open(keys_);
    const auto frames = play(*source);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[2].values, (std::vector<int16_t>{7, 8, 9, 10}));
    EXPECT_EQ(frames[2].first_sample, 26U);
    EXPECT_EQ(frames[2].flags, frame_gap_before);
    EXPECT_EQ(frames[2].frame_index, 6U);  // samples 24 to 27 are the seventh frame's
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["packets"]["lost"], 10);
    EXPECT_EQ(facts["samples"]["missing"]["lost_packets"], 20);
    EXPECT_EQ(facts["samples"]["gaps"], 1);
    EXPECT_EQ(facts["frames"]["cut_short"], 1);
}

// iperf issue 457.
TEST_F(PcapSourceTest, OneThreeTwoFourIsNothingLostAndOneReordered) {
    capture({raw(1, 1, 2), raw(3, 5, 6), raw(2, 3, 4), raw(4, 7, 8), raw(4, 7, 8)});
    const auto source = open(keys_);
    const auto frames = play(*source);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 4}));
    EXPECT_EQ(frames[1].values, (std::vector<int16_t>{5, 6, 7, 8}));
    const nlohmann::json packets = source->facts()["packets"];
    EXPECT_EQ(packets["lost"], 0);
    EXPECT_EQ(packets["reordered"], 1);
    EXPECT_EQ(packets["duplicates"], 1);
    EXPECT_EQ(packets["held"], 0);
}

TEST_F(PcapSourceTest, ASenderThatStartsAgainIsAGapOfTheTimeThatPassed) {
    std::vector<std::string> datagrams;
    for (uint32_t i = 0; i < 4; ++i) {
        datagrams.push_back(raw(500'000 + i, 1, 1));
    }
    for (uint32_t i = 0; i < 9; ++i) {
        datagrams.push_back(raw(i, 2, 2));
    }
    std::string bytes = pcap_header();
    for (uint32_t i = 0; i < datagrams.size(); ++i) {
        // Half a second each, and 10 s before the restart.
        bytes += pcap_packet(ipv4_udp(datagrams[i]), 1'577'836'800 + i / 2 + (i < 4 ? 0 : 10),
                             500'000 * (i % 2));
    }
    folder_.write("a.pcap", bytes);
    const auto source = open(keys_);
    const auto frames = play(*source);
    ASSERT_GE(frames.size(), 3U);
    EXPECT_EQ(frames[2].values, (std::vector<int16_t>{2, 2, 2, 2}));
    EXPECT_EQ(frames[2].flags, frame_gap_before);
    // Arrived 12 s after the first datagram, which is 48 samples; its own two were before that.
    EXPECT_EQ(frames[2].first_sample, 46U);
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["packets"]["restarts"], 1);
    EXPECT_EQ(facts["packets"]["lost"], 0);
    EXPECT_EQ(facts["samples"]["missing"]["unknown"], 38);
}

std::string vita49(uint32_t count, uint64_t time, int first, int second, uint32_t trailer = 0) {
    return be(0x0430'0000 | (count & 15) << 16 | 5, 4) + be(time, 8) + be(first, 2) +
           be(second, 2) + be(trailer, 4);
}

TEST_F(PcapSourceTest, VitaPacketsAreKnownByTheirContentAndPlacedByTheirTime) {
    // The third leaves 7 samples out without losing a packet; the fourth says that its own are bad.
    capture({vita49(0, 100, 1, 2), vita49(1, 102, 3, 4), vita49(2, 111, 5, 6),
             vita49(3, 113, 7, 8, 0x4000'0000), vita49(4, 115, 9, 10)});
    const auto source = open_source(folder_.file("a.pcap") + "?rate=4&samples=4", {});
    expect_mentions(source->describe(), {"VITA 49"});
    const auto frames = play(*source);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].values, (std::vector<int16_t>{1, 2, 3, 4}));
    EXPECT_EQ(frames[1].valid_samples, 2U);
    EXPECT_EQ(frames[1].values[0], 5);
    EXPECT_EQ(frames[1].first_sample, 11U);
    EXPECT_EQ(frames[1].flags, frame_gap_before);
    EXPECT_EQ(frames[2].valid_samples, 2U);
    EXPECT_EQ(frames[2].values[0], 9);
    EXPECT_EQ(frames[2].first_sample, 15U);
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["packets"]["lost"], 0);
    EXPECT_EQ(facts["samples"]["missing"]["sender_clock"], 7);
    EXPECT_EQ(facts["samples"]["missing"]["marked"], 2);
    EXPECT_EQ(facts["samples"]["gaps"], 2);
}

TEST_F(PcapSourceTest, PicosecondsOfAClockOfItsOwnAreNoGaps) {
    // 100 Hz, two samples a packet: 20 ms, told by a clock that runs 0.1 ms a packet too fast.
    std::vector<std::string> datagrams;
    for (uint32_t i = 0; i < 40; ++i) {
        const uint64_t ps = 20'100'000'000ULL * i;
        datagrams.push_back(be(0x0060'0000 | (i & 15) << 16 | 5, 4) + be(1'577'836'800, 4) +
                            be(ps, 8) + be(i, 2) + be(i, 2));
    }
    capture(datagrams);
    const auto source = open("framing=vita49&rate=100&samples=80");
    ASSERT_EQ(play(*source).size(), 1U);
    EXPECT_EQ(source->facts()["samples"]["gaps"], 0);
    EXPECT_EQ(source->facts()["time"], "packets");
}

// gr-grnet issue 6.
TEST_F(PcapSourceTest, ASequenceInTheOtherByteOrderIsRefusedInWords) {
    std::vector<std::string> datagrams;
    for (uint32_t i = 0; i < 10; ++i) {
        datagrams.push_back(raw(i, 1, 2));
    }
    capture(datagrams);
    expect_mentions(usage_error([&] { open("framing=raw&sequence=u32le&rate=4"); }),
                    {"a.pcap", "implausible", "sequence=u32be@0"});
}

TEST_F(PcapSourceTest, CountsWhatIsNotForIt) {
    std::string bytes = pcap_header();
    const auto add = [&bytes](const std::string& packet, size_t wire = 0) {
        bytes += pcap_packet(packet, 1'577'836'800, 0, wire);
    };
    add(ipv4_udp(raw(0, 1, 2)));
    add(ipv4_udp(raw(1, 3, 4), 4992));                            // to another port
    add(ipv4_udp(raw(1, 3, 4)), 200);                             // caplen < len
    add(ipv4_udp(raw(1, 3, 4)), 20);                              // caplen > len
    add(ipv4_udp(""));                                            // no bytes
    add(ipv4_udp("abc"));                                         // three
    add(ipv4_udp(std::string(65'507, 'x')));                      // all that there can be
    add(hex("4500 0014 0000 4000 4006 0000 0A000001 0A000002"));  // TCP
    add(ipv4_udp(raw(1, 3, 4)));
    folder_.write("a.pcap", bytes + "half a packet");
    const auto source = open(keys_);
    EXPECT_EQ(play(*source).at(0).values, (std::vector<int16_t>{1, 2, 3, 4}));
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["datagrams"]["received"], 5);
    EXPECT_EQ(facts["datagrams"]["malformed"],
              nlohmann::json({{"too_short", 2}, {"partial_sample", 1}}));
    EXPECT_EQ(facts["packets"]["delivered"], 2);
    EXPECT_EQ(facts["capture"],
              nlohmann::json({{"truncated", 2}, {"not_udp", 1}, {"other_port", 1}}));
    ASSERT_EQ(facts["remarks"].size(), 1U);
    expect_mentions(facts["remarks"][0], {"a.pcap", "damaged packet"});
}

TEST_F(PcapSourceTest, RefusesInWords) {
    capture({"no samples here"});
    expect_mentions(usage_error([&] { open("rate=4"); }), {"framing=vita49, spead or raw"});
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4"); }),
                    {"a.pcap", "vita49", "1 size_mismatch"});
    expect_mentions(usage_error([&] { open("framing=vita49"); }), {"rate="});
    expect_mentions(usage_error([&] { open("framing=dada&rate=4"); }), {"framing=dada"});
    expect_mentions(usage_error([&] { open("framing=raw&rate=4"); }), {"sequence=u32be@0"});
    expect_mentions(usage_error([&] { open("framing=raw&sequence=u32be&header=3&rate=4"); }),
                    {"header=3", "4 to 65500"});
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4&stream=x"); }), {"stream=x"});
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4&reorder=0"); }), {"reorder=0"});
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4&port=0"); }), {"port=0"});
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4&heap-step=2"); }),
                    {"heap-step", "it takes"});
    folder_.write("a.pcap", pcap_header().replace(20, 4, le(147, 4)));
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4"); }), {"a.pcap", "type 147"});
    folder_.write("a.pcap", pcap_header());
    expect_mentions(usage_error([&] { open("framing=vita49&rate=4"); }), {"holds no packet"});
}

TEST(UdpSource, RefusesAddressesAndKeysInWords) {
    const auto refused = [](const std::string& uri) {
        return usage_error([&uri] { open_source(uri, {}); });
    };
    const std::string keys = "?framing=vita49&rate=1e6";
    for (const char* address : {"", "4991", "localhost:4991", "1.2.3:4991", "::1:4991"}) {
        expect_mentions(refused(std::string("udp:") + address + keys), {"0.0.0.0:4991"});
    }
    for (const char* port : {"0", "65536", "x", ""}) {
        expect_mentions(refused(std::string("udp:0.0.0.0:") + port + keys), {"1 to 65535"});
    }
    // TEST-NET-1 of RFC 5737: nobody's.
    expect_mentions(refused("udp:192.0.2.1:4991" + keys), {"192.0.2.1", "this machine's"});
    expect_mentions(refused("udp:127.0.0.1:4991" + keys + "&interface=lo"), {"multicast"});
    expect_mentions(refused("udp:239.1.2.3:4991" + keys + "&interface=none0"), {"none0"});
    expect_mentions(refused("udp:127.0.0.1:4991?rate=1e6"), {"framing=vita49"});
}

// A socket to send from, and a free port to receive at.
class Loopback {
  public:
    Loopback() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        const FileDescriptor taken(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof address_;
        bind(taken.get(), reinterpret_cast<const sockaddr*>(&address_), bytes);
        getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address_), &bytes);
    }
    std::string text() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }
    void send(const std::string& datagram) const {
        EXPECT_EQ(sendto(fd_.get(), datagram.data(), datagram.size(), 0,
                         reinterpret_cast<const sockaddr*>(&address_), sizeof address_),
                  static_cast<ssize_t>(datagram.size()));
    }

  private:
    FileDescriptor fd_;
    sockaddr_in address_{};
};

// gnuradio issue 6485: datagrams of 0, 3 and 65507 bytes.
TEST(UdpSource, MalformedDatagramsAreCountedAndTheRestIsUsed) {
    const Loopback loopback;
    const auto source = open_source(
        "udp:" + loopback.text() + "?framing=raw&sequence=u32be&rate=1e6&samples=4", {});
    EXPECT_EQ(source->default_policy(), OverrunPolicy::drop);
    Ring ring = Ring::anonymous(source->stream(), 3);
    RingWriter writer(ring);
    std::atomic<bool> stop{false};
    std::thread receiver([&] { source->run(writer, OverrunPolicy::drop, stop); });
    const auto received = [&] { return source->facts()["datagrams"]["received"].get<int>(); };
    // Until the socket is open nothing arrives.
    for (int i = 0; i < 1000 && received() == 0; ++i) {
        loopback.send("");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const int at_first = received();
    ASSERT_GT(at_first, 0);
    loopback.send("abc");
    loopback.send(std::string(65'507, 'x'));
    for (uint32_t i = 0; i < 4; ++i) {
        loopback.send(raw(i, static_cast<int>(i), 9));
    }
    EXPECT_TRUE(ring.wait_for_frame(1, 10'000'000'000));
    stop = true;
    receiver.join();
    const std::span<const int16_t> frame = ring.frame(0);
    EXPECT_EQ(std::vector<int16_t>(frame.begin(), frame.end()), (std::vector<int16_t>{0, 9, 1, 9}));
    const nlohmann::json facts = source->facts();
    const nlohmann::json malformed = facts["datagrams"]["malformed"];
    EXPECT_EQ(malformed["partial_sample"], 1);
    EXPECT_EQ(malformed["too_short"].get<int>() + 1 + 4, facts["datagrams"]["received"]);
    EXPECT_EQ(facts["packets"]["delivered"], 4);
    EXPECT_EQ(facts["receive_queue"]["overflow"], 0);
    EXPECT_GE(facts["receive_queue"]["bytes"], 100'000);
}

// The kernel's own count of what it dropped, which rides on a later datagram or is asked for.
TEST(UdpSource, WhatOverflowsTheReceiveQueueIsCounted) {
    const Loopback loopback;
    UdpSocketOptions options;
    options.address = UdpAddress::parse(loopback.text(), "test");
    options.buffer_bytes = 4096;
    UdpSocket socket(options);
    for (int i = 0; i < 200; ++i) {
        loopback.send(std::string(1000, 'x'));
    }
    std::vector<std::byte> bytes(65'536);
    UdpSocket::Received one{bytes, 0};
    uint64_t received = 0;
    while (socket.receive({&one, 1}, 0) == 1) {
        EXPECT_EQ(one.size, 1000U);
        ++received;
    }
    EXPECT_LT(received, 200U);
    EXPECT_EQ(socket.overflow(), 0U);  // nothing came after the loss
    socket.ask_overflow();
    EXPECT_EQ(received + socket.overflow(), 200U);
    for (int i = 0; i < 200; ++i) {
        loopback.send(std::string(1000, 'y'));
    }
    while (socket.receive({&one, 1}, 0) == 1) {
        ++received;
    }
    loopback.send("z");
    EXPECT_EQ(socket.receive({&one, 1}, 1000), 1U);
    EXPECT_EQ(received + socket.overflow(), 400U);
}

}  // namespace
}  // namespace echelle
