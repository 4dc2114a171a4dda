// What `echelle-fpga-sim --send udp://ADDRESS:PORT?key=value&…` says. docs/udp.md lists the keys.
#pragma once

#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

#include "fpga_sim/packet_format.hpp"
#include "fpga_sim/sim_options.hpp"

namespace echelle {

// Faults of a network, chosen by the seed and the packet's number alone.
struct PacketFaults {
    double loss = 0;             // fraction of packets never sent
    double reorder = 0;          // fraction sent after up to `reorder_depth` later ones
    double duplicates = 0;       // fraction sent twice
    uint32_t reorder_depth = 8;  // packets
    double jitter_us = 0;        // a packet is sent up to so much after its time
    uint64_t restart_after = 0;  // packets after which the sender begins to count anew; 0: never
};

struct SendOptions {
    sockaddr_storage address{};
    socklen_t address_bytes = 0;
    std::string interface;  // multicast leaves by it
    PacketFormat format;
    PacketFaults faults;
    std::string text;  // the URI
};

// `sim` gives the stream, which has to be sample-major (or of one channel). Throws UsageError.
SendOptions parse_send_options(const std::string& text, const SimOptions& sim);

}  // namespace echelle
