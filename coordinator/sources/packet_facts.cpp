#include "coordinator/sources/packet_facts.hpp"

#include <string>

#include <nlohmann/json.hpp>

namespace echelle {
namespace {

nlohmann::json faults_of(const PacketFacts& facts, bool malformed) {
    nlohmann::json counted = nlohmann::json::object();
    for (size_t i = 0; i < datagram_faults; ++i) {
        const auto fault = static_cast<DatagramFault>(i);
        if (facts.faults[i] > 0 && is_malformed(fault) == malformed) {
            counted[std::string(name_of(fault))] = facts.faults[i];
        }
    }
    return counted;
}

}  // namespace

nlohmann::json json_of(const PacketFacts& facts) {
    nlohmann::json json;
    json["datagrams"] = {{"received", facts.datagrams},
                         {"bytes", facts.bytes},
                         {"malformed", faults_of(facts, true)},
                         {"passed_over", faults_of(facts, false)}};
    const PacketCounts& packets = facts.packets;
    json["packets"] = {{"delivered", packets.delivered},
                       {"lost", packets.lost},
                       {"reordered", packets.reordered},
                       {"duplicates", packets.duplicates},
                       {"late", packets.late},
                       {"strays", packets.strays},
                       {"held", facts.held()},
                       {"restarts", packets.restarts},
                       {"over_range", facts.over_range_packets}};
    const MissingSamples& missing = facts.missing;
    json["samples"] = {{"received", facts.samples},
                       {"gaps", facts.gaps},
                       {"missing",
                        {{"lost_packets", missing.lost_packets},
                         {"sender_clock", missing.sender_clock},
                         {"marked", missing.marked},
                         {"unknown", missing.unknown}}}};
    json["frames"] = {{"written", facts.frames.written}, {"cut_short", facts.frames.cut_short}};
    for (const JoinedStreamCounts& stream : facts.streams) {
        json["streams"].push_back({{"id", stream.id},
                                   {"received", stream.received},
                                   {"joined", stream.joined},
                                   {"duplicates", stream.duplicates},
                                   {"late", stream.late},
                                   {"alone", stream.alone},
                                   {"absent", stream.absent}});
    }
    json["time"] = facts.uses_packet_time ? "packets" : "arrival";
    json["remarks"] = facts.remarks;
    return json;
}

}  // namespace echelle
