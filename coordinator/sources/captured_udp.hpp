// UDP datagrams in packets as they were captured: link header, IP header, UDP header. Pure.
//
// Link types: Ethernet with VLAN tags (IEEE 802.1Q, 802.1ad), the two of Linux's "any" device
// (LINKTYPE_LINUX_SLL and _SLL2 of tcpdump.org/linktypes.html), and IP alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace echelle {

enum class LinkType : uint8_t { ethernet, linux_sll, linux_sll2, raw_ip, loopback };
// By libpcap's number (DLT_...); absent for all others.
std::optional<LinkType> link_type_of(int datalink);

enum class CaptureFault : uint32_t {
    none,
    truncated,   // less was captured than was sent, or more: caplen is not len (libpcap issue 1710)
    bad_length,  // an IP or UDP length beyond what there is, or too small
    fragment,    // of an IP packet: the rest is elsewhere
    not_udp,     // sound, but something else
};
inline constexpr size_t capture_faults = 5;
std::string_view name_of(CaptureFault fault);

struct CapturedUdp {
    std::span<const std::byte> payload;
    std::span<const std::byte> destination;  // 4 or 16 bytes of address
    uint16_t port = 0;                       // destination
};

// `length` is what the packet had on the wire. The payload's end is the UDP header's word, not the
// packet's: Ethernet pads short ones.
CaptureFault find_udp(LinkType link, std::span<const std::byte> captured, size_t length,
                      CapturedUdp& udp);

}  // namespace echelle
