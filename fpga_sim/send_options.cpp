#include "fpga_sim/send_options.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include <arpa/inet.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/source_uri.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse(const SourceUri& uri, const std::string& why) {
    throw UsageError("--send '" + uri.text() + "' " + why);
}

template <typename Value>
struct Named {
    std::string_view name;
    Value value;
};

template <typename Value, size_t count>
Value take_named(SourceUri& uri, const std::string& key,
                 const std::array<Named<Value>, count>& known, Value otherwise) {
    const std::optional<std::string> text = uri.take(key);
    if (!text) {
        return otherwise;
    }
    std::string names;
    for (const Named<Value>& each : known) {
        if (*text == each.name) {
            return each.value;
        }
        names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    refuse(uri, "has " + key + "=" + *text + ": give one of " + names);
}

uint64_t take_within(SourceUri& uri, const std::string& key, uint64_t otherwise, uint64_t least,
                     uint64_t most) {
    const uint64_t value = uri.take_unsigned(key).value_or(otherwise);
    if (value < least || value > most) {
        refuse(uri, "has " + key + "=" + std::to_string(value) + ": give " + std::to_string(least) +
                        " to " + std::to_string(most));
    }
    return value;
}

double take_fraction(SourceUri& uri, const std::string& key) {
    const double value = uri.take_number(key).value_or(0);
    if (!(value >= 0 && value < 1)) {
        refuse(uri, "has " + key + "=" + std::to_string(value) +
                        ": give a fraction of the packets, 0 or more and less than 1");
    }
    return value;
}

void parse_address(const SourceUri& uri, SendOptions& options) {
    std::string text = uri.path();
    const size_t colon = text.rfind(':');
    uint16_t port = 0;
    if (text.starts_with("//") && colon != std::string::npos && colon >= 2) {
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
        const bool is_port = error == std::errc() && stop == end && port > 0;
        const std::string host = text.substr(2, colon - 2);
        auto& v4 = reinterpret_cast<sockaddr_in&>(options.address);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(options.address);
        if (is_port && inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
            v4.sin_family = AF_INET;
            v4.sin_port = htons(port);
            options.address_bytes = sizeof v4;
            return;
        }
        if (is_port && host.size() > 2 && host.front() == '[' && host.back() == ']' &&
            inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = htons(port);
            options.address_bytes = sizeof v6;
            return;
        }
    }
    refuse(uri,
           "names no address in numbers and port: write it like "
           "udp://127.0.0.1:4991?framing=vita49 or udp://[::1]:4991");
}

void take_format(SourceUri& uri, const SimOptions& sim, PacketFormat& format) {
    constexpr std::array framings = {Named<PacketFraming>{"vita49", PacketFraming::vita49},
                                     Named<PacketFraming>{"spead", PacketFraming::spead},
                                     Named<PacketFraming>{"raw", PacketFraming::raw}};
    constexpr std::array times = {Named<PacketTime>{"samples", PacketTime::samples},
                                  Named<PacketTime>{"picoseconds", PacketTime::picoseconds},
                                  Named<PacketTime>{"free", PacketTime::free_running},
                                  Named<PacketTime>{"none", PacketTime::none}};
    constexpr std::array endians = {Named<bool>{"big", true}, Named<bool>{"little", false}};
    format.framing = take_named(uri, "framing", framings, PacketFraming::vita49);
    format.stream = sim.stream;
    format.is_big_endian = take_named(uri, "endian", endians, format.framing != PacketFraming::raw);
    switch (format.framing) {
        case PacketFraming::vita49:
            format.stream_id = static_cast<uint32_t>(take_within(uri, "stream", 1, 0, 0xFFFF'FFFF));
            format.time = take_named(uri, "time", times, PacketTime::samples);
            format.start_second = realtime_ns() / 1'000'000'000;
            if (format.time == PacketTime::samples &&
                format.stream.rate.numerator % format.stream.rate.denominator != 0) {
                refuse(uri, "counts the samples of a second, which is no whole number of them at " +
                                format.stream.rate.text() + " Hz: give time=picoseconds");
            }
            return;
        case PacketFraming::spead:
            format.packets_per_heap =
                static_cast<uint32_t>(take_within(uri, "heap-packets", 8, 1, 65'536));
            return;
        case PacketFraming::raw:
            format.sequence = SequenceField::parse(uri.take("sequence").value_or("u64be@0"));
            format.raw_header_bytes = static_cast<uint32_t>(
                take_within(uri, "header", format.sequence.end(), format.sequence.end(), 65'000));
            format.sequence_step = take_within(uri, "sequence-step", 1, 1, 1'000'000);
            return;
    }
}

// As many samples as the MTU leaves room for, in whole 32-bit words.
void fill_packets(SourceUri& uri, bool is_v6, PacketFormat& format) {
    constexpr size_t udp_header = 8;
    const size_t ip_header = is_v6 ? 40 : 20;
    const size_t mtu = take_within(uri, "mtu", 1500, 576, 65'535);
    const size_t used = ip_header + udp_header + format.header_bytes();
    const size_t room = mtu > used ? (mtu - used) / format.sample_bytes() : 0;
    format.samples =
        static_cast<uint32_t>(format.sample_bytes() % 4 != 0 && room > 1 ? room - room % 2 : room);
    if (format.samples == 0 || format.samples * format.sample_bytes() % 4 != 0) {
        refuse(uri, "has room for " + std::to_string(room) + " samples of " +
                        std::to_string(format.sample_bytes()) +
                        " bytes in a packet: give a larger mtu");
    }
}

}  // namespace

SendOptions parse_send_options(const std::string& text, const SimOptions& sim) {
    SourceUri uri = SourceUri::parse(text);
    if (uri.scheme() != "udp") {
        refuse(uri, "has the scheme '" + uri.scheme() + "': only udp:// is sent to");
    }
    const FrameGeometry& geometry = sim.stream.geometry;
    if (geometry.layout != Layout::sample_major && geometry.channels > 1) {
        refuse(uri, "sends interleaved samples: give --layout sample-major");
    }
    SendOptions options;
    options.text = text;
    parse_address(uri, options);
    options.interface = uri.take("interface").value_or("");
    take_format(uri, sim, options.format);
    fill_packets(uri, options.address.ss_family == AF_INET6, options.format);
    PacketFaults& faults = options.faults;
    faults.loss = take_fraction(uri, "loss");
    faults.reorder = take_fraction(uri, "reorder");
    faults.duplicates = take_fraction(uri, "duplicates");
    faults.reorder_depth =
        static_cast<uint32_t>(take_within(uri, "reorder-depth", faults.reorder_depth, 1, 1024));
    faults.jitter_us = uri.take_number("jitter-us").value_or(0);
    if (!(faults.jitter_us >= 0 && faults.jitter_us <= 1e6)) {
        refuse(uri, "has jitter-us=" + std::to_string(faults.jitter_us) + ": give 0 to 1000000");
    }
    faults.restart_after = uri.take_unsigned("restart-after").value_or(0);
    uri.refuse_unknown_keys();
    return options;
}

}  // namespace echelle
