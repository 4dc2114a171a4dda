#include "coordinator/sources/captured_udp.hpp"

#include <array>

#include "coordinator/sources/datagram.hpp"

namespace echelle {
namespace {

constexpr uint64_t ethertype_ipv4 = 0x0800;
constexpr uint64_t ethertype_ipv6 = 0x86DD;
constexpr uint64_t protocol_udp = 17;

using Bytes = std::span<const std::byte>;

bool is_vlan(uint64_t ethertype) {
    return ethertype == 0x8100 || ethertype == 0x88A8 || ethertype == 0x9100;
}

// Leaves the IP packet in `bytes`; the Ethernet type of what it is, absent when too short.
std::optional<uint64_t> take_link_header(LinkType link, Bytes& bytes) {
    struct Shape {
        size_t bytes;
        size_t type_at;
    };
    // By LinkType. Loopback's is a number of 4 bytes in the capturing machine's own order.
    constexpr std::array<Shape, 5> shapes = {Shape{14, 12}, Shape{16, 14}, Shape{20, 0},
                                             Shape{0, 0}, Shape{4, 0}};
    const Shape shape = shapes[static_cast<size_t>(link)];
    if (bytes.size() < shape.bytes + 1) {
        return std::nullopt;
    }
    if (link == LinkType::raw_ip || link == LinkType::loopback) {
        bytes = bytes.subspan(shape.bytes);
        return std::to_integer<uint64_t>(bytes[0]) >> 4 == 6 ? ethertype_ipv6 : ethertype_ipv4;
    }
    uint64_t type = big_endian(bytes, shape.type_at, 2);
    bytes = bytes.subspan(shape.bytes);
    constexpr size_t tag_bytes = 4;
    while (is_vlan(type)) {
        if (bytes.size() < tag_bytes) {
            return std::nullopt;
        }
        type = big_endian(bytes, 2, 2);
        bytes = bytes.subspan(tag_bytes);
    }
    return type;
}

CaptureFault take_ipv4(Bytes& bytes, CapturedUdp& udp) {
    constexpr size_t least = 20;
    if (bytes.size() < least || big_endian(bytes, 0, 1) >> 4 != 4) {
        return CaptureFault::bad_length;
    }
    const size_t header = 4 * (big_endian(bytes, 0, 1) & 0xF);
    const size_t total = big_endian(bytes, 2, 2);
    if (header < least || total < header || total > bytes.size()) {
        return CaptureFault::bad_length;
    }
    if (big_endian(bytes, 9, 1) != protocol_udp) {
        return CaptureFault::not_udp;
    }
    constexpr uint64_t more_or_offset = 0x3FFF;
    if ((big_endian(bytes, 6, 2) & more_or_offset) != 0) {
        return CaptureFault::fragment;
    }
    udp.destination = bytes.subspan(16, 4);
    bytes = bytes.subspan(header, total - header);
    return CaptureFault::none;
}

CaptureFault take_ipv6(Bytes& bytes, CapturedUdp& udp) {
    constexpr size_t header = 40;
    if (bytes.size() < header || big_endian(bytes, 0, 1) >> 4 != 6) {
        return CaptureFault::bad_length;
    }
    const size_t length = big_endian(bytes, 4, 2);
    uint64_t next = big_endian(bytes, 6, 1);
    udp.destination = bytes.subspan(24, 16);
    if (length > bytes.size() - header) {
        return CaptureFault::bad_length;
    }
    bytes = bytes.subspan(header, length);
    constexpr uint64_t hop_by_hop = 0;
    constexpr uint64_t routing = 43;
    constexpr uint64_t fragment = 44;
    constexpr uint64_t options = 60;
    while (next == hop_by_hop || next == routing || next == options) {
        if (bytes.size() < 2) {
            return CaptureFault::bad_length;
        }
        const size_t extension = 8 * (big_endian(bytes, 1, 1) + 1);
        if (bytes.size() < extension) {
            return CaptureFault::bad_length;
        }
        next = big_endian(bytes, 0, 1);
        bytes = bytes.subspan(extension);
    }
    if (next == fragment) {
        return CaptureFault::fragment;
    }
    return next == protocol_udp ? CaptureFault::none : CaptureFault::not_udp;
}

}  // namespace

std::optional<LinkType> link_type_of(int datalink) {
    // Of pcap/dlt.h, where raw IP differs between systems.
    switch (datalink) {
        case 1:
            return LinkType::ethernet;
        case 113:
            return LinkType::linux_sll;
        case 276:
            return LinkType::linux_sll2;
        case 12:
        case 14:
        case 101:
        case 228:
        case 229:
            return LinkType::raw_ip;
        case 0:
        case 108:
            return LinkType::loopback;
        default:
            return std::nullopt;
    }
}

std::string_view name_of(CaptureFault fault) {
    constexpr std::array<std::string_view, capture_faults> names = {
        "none", "truncated", "bad_length", "fragment", "not_udp"};
    return names[static_cast<size_t>(fault)];
}

CaptureFault find_udp(LinkType link, std::span<const std::byte> captured, size_t length,
                      CapturedUdp& udp) {
    if (captured.size() != length) {
        return CaptureFault::truncated;
    }
    Bytes bytes = captured;
    const std::optional<uint64_t> type = take_link_header(link, bytes);
    if (!type || (*type != ethertype_ipv4 && *type != ethertype_ipv6)) {
        return CaptureFault::not_udp;
    }
    const CaptureFault fault =
        *type == ethertype_ipv4 ? take_ipv4(bytes, udp) : take_ipv6(bytes, udp);
    if (fault != CaptureFault::none) {
        return fault;
    }
    constexpr size_t udp_header = 8;
    if (bytes.size() < udp_header) {
        return CaptureFault::bad_length;
    }
    const size_t datagram = big_endian(bytes, 4, 2);
    if (datagram < udp_header || datagram > bytes.size()) {
        return CaptureFault::bad_length;
    }
    udp.port = static_cast<uint16_t>(big_endian(bytes, 2, 2));
    udp.payload = bytes.subspan(udp_header, datagram - udp_header);
    return CaptureFault::none;
}

}  // namespace echelle
