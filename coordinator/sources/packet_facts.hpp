// What the report and the status say of datagrams, packets and samples.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "coordinator/sources/packet_stream.hpp"

namespace echelle {

// Objects datagrams, packets, samples and frames; remarks as an array.
nlohmann::json json_of(const PacketFacts& facts);

}  // namespace echelle
