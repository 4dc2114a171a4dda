#include "coordinator/sources/captured_datagrams.hpp"

namespace echelle {

bool CapturedDatagrams::next(CapturedUdp& udp, int64_t& unix_ns) {
    PcapFile::Packet packet;
    while (file_.next(packet)) {
        const CaptureFault fault = find_udp(file_.link(), packet.captured, packet.length, udp);
        if (fault == CaptureFault::none) {
            unix_ns = packet.unix_ns;
            return true;
        }
        ++faults_[static_cast<size_t>(fault)];
    }
    return false;
}

}  // namespace echelle
