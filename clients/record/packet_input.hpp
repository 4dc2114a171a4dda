// Where packets come from: a running coordinator's feed or ring, or a recording. Belongs to one
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "echelle/packet.hpp"

namespace echelle::record {

enum class Arrival {
    packet,   // one is there
    nothing,  // none came in time
    bad,      // bytes that are no packet
    new_run,  // the coordinator was started anew: samples and sequence numbers begin again
    ended,    // nothing more will come
};

class PacketInput {
  public:
    virtual ~PacketInput() = default;
    // The next packet; its bytes are valid until the next call. Throws RunError.
    virtual Arrival next(client::SpectrumPacket& packet, std::chrono::milliseconds patience) = 0;
    // The channels that it has, ascending.
    virtual const std::vector<uint32_t>& channels() const = 0;
    // The feed's hello, or nothing.
    virtual std::string description() const = 0;
    // "feed", "ring", "recording".
    virtual const char* kind() const = 0;
    // It waits until its packets have been taken: none is lost because of a slow disk.
    virtual bool waits() const = 0;
};

enum class Transport { automatic, ring, feed };

struct FeedTerms {
    std::string target;  // an instance's name or an endpoint
    Transport transport = Transport::automatic;
    std::optional<std::vector<uint32_t>> channels;  // ascending; nothing: all
    double wait_seconds = 10;                       // for the feed's hello
    std::string server_key_file;                    // of tcp with keys
    std::string key_file;
};

// Throws UsageError and RunError. `should_stop` is asked while it waits for the feed; where it says
// so nothing is returned.
std::unique_ptr<PacketInput> open_feed(const FeedTerms& terms, bool (*should_stop)());

// Throws UsageError where the file cannot be read. `channels`: those to take; nothing: all.
std::unique_ptr<PacketInput> open_recording(const std::string& path,
                                            std::optional<std::vector<uint32_t>> channels);

}  // namespace echelle::record
