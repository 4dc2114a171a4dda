// How a recording is played: the keys that every recording takes (docs/sources.md, "Replay").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/rational.hpp"
#include "common/source_uri.hpp"

namespace echelle {

// A place in a recording or a length of it, as the user gave it: "72000" samples, or "1.5s".
struct ReplayLength {
    std::string text;
    uint64_t samples = 0;
    std::optional<Rational> seconds;  // instead of samples

    // In samples of `rate`; seconds that fall between two samples are rounded up. Saturates.
    uint64_t samples_at(Rational rate) const;
};

struct ReplayKeys {
    // Times the recording's own speed; absent: as fast as the workers go.
    std::optional<Rational> speed;
    // How often it is played; absent: again and again.
    std::optional<uint64_t> passes = 1;
    std::optional<ReplayLength> start;
    std::optional<ReplayLength> count;

    // "in real time, from sample 100": for a source's description. Empty without such keys.
    std::string text() const;
};

// The keys pace, loop, start and count. Throws UsageError.
ReplayKeys take_replay_keys(SourceUri& uri);

}  // namespace echelle
