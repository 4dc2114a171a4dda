// The UDP datagrams of a packet capture, one after the other, and a count of everything else.
// Used by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/sources/captured_udp.hpp"
#include "coordinator/sources/pcap_file.hpp"

namespace echelle {

// Where datagrams go: one capture may hold several streams.
struct Flow {
    std::vector<std::byte> address;  // 4 or 16 bytes
    uint16_t port = 0;

    bool is_of(const CapturedUdp& udp) const {
        return udp.port == port && std::ranges::equal(udp.destination, address);
    }
    static Flow of(const CapturedUdp& udp) {
        return {{udp.destination.begin(), udp.destination.end()}, udp.port};
    }
};

class CapturedDatagrams {
  public:
    // Throws UsageError, as PcapFile does.
    explicit CapturedDatagrams(const std::string& path) : file_(path) {}

    // The next one, whose bytes are there until the next call, and the time of its capture. False
    // at the end, or where the file cannot be read further.
    bool next(CapturedUdp& udp, int64_t& unix_ns);

    // What was passed over, by its kind.
    const std::array<uint64_t, capture_faults>& faults() const { return faults_; }
    // Why the file could not be read to its end; empty: it was, so far.
    const std::string& problem() const { return file_.problem(); }

  private:
    PcapFile file_;
    std::array<uint64_t, capture_faults> faults_{};
};

}  // namespace echelle
