// What a hub counts. Of every message that came, exactly one of these is true: it was passed on,
// left out by decimation, a repetition, invalid for one cause, dropped for one cause, or it is
// still held:
//
//   received = relayed + decimated + repeated + invalid[…] + dropped[…] + held
//
// Owned by the hub's only thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "common/packet.hpp"

namespace echelle {

// Why a message of the upstream is not passed on.
enum class Invalid : uint8_t {
    parts,      // not a topic and a payload
    topic,      // none of a feed's, or of another channel than its packet
    text,       // not one JSON object
    too_short,  // this and the following: what a packet's reader says
    too_long,
    bad_crc,
    unknown_major,
    bad_trailer,
    unknown_coding,
    no_trailer,  // version 1.0: nothing says what it is
};
inline constexpr std::array<std::string_view, 10> invalid_names{
    "parts",   "topic",         "text",        "too_short",      "too_long",
    "bad_crc", "unknown_major", "bad_trailer", "unknown_coding", "no_trailer"};

// Why a valid spectrum that was to be held until its topic's turn was let go.
enum class Dropped : uint8_t {
    changed,  // it cannot be averaged with what came next: another run, or other parameters
    no_room,  // more topics or bytes than a hub holds
};
inline constexpr std::array<std::string_view, 2> dropped_names{"changed", "no_room"};

struct HubBooks {
    uint64_t received = 0;
    uint64_t relayed = 0;    // messages passed on as they were, and averages
    uint64_t decimated = 0;  // left out by --rate, or part of an average that was relayed
    uint64_t repeated = 0;   // descriptions that were known
    std::array<uint64_t, invalid_names.size()> invalid{};
    std::array<uint64_t, dropped_names.size()> dropped{};
    uint64_t held = 0;  // now

    uint64_t upstream_missed = 0;  // spectra that the upstream's numbers tell were not received
    uint64_t upstream_connected = 0;
    uint64_t upstream_lost = 0;
    uint64_t upstream_refused = 0;  // handshakes that failed

    void count(Invalid cause) { ++invalid[static_cast<size_t>(cause)]; }
    void count(Dropped cause, uint64_t spectra) { dropped[static_cast<size_t>(cause)] += spectra; }
    bool close() const {
        const auto sum = [](const auto& causes) {
            return std::accumulate(causes.begin(), causes.end(), uint64_t{0});
        };
        return received == relayed + decimated + repeated + sum(invalid) + sum(dropped) + held;
    }
};

}  // namespace echelle
