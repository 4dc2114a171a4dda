// A capture file, classic pcap or pcapng, read through libpcap from beginning to end.
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "coordinator/sources/captured_udp.hpp"

struct pcap;

namespace echelle {

// Whether the first bytes of a file are a capture's.
bool looks_like_pcap(std::string_view bytes);

class PcapFile {
  public:
    // Throws UsageError: not a regular file, not a capture, an unknown link type.
    explicit PcapFile(const std::string& path);

    struct Packet {
        std::span<const std::byte> captured;  // until the next call
        size_t length = 0;                    // on the wire
        int64_t unix_ns = 0;
    };
    // False at the end, or where the file cannot be read further: then problem() says why.
    bool next(Packet& packet);

    LinkType link() const { return link_; }
    const std::string& problem() const { return problem_; }

  private:
    struct Closer {
        void operator()(pcap* handle) const;
    };
    std::string path_;
    std::unique_ptr<pcap, Closer> handle_;
    LinkType link_ = LinkType::ethernet;
    std::string problem_;
};

}  // namespace echelle
