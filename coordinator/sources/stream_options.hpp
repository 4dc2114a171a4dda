// What sources share in reading the command line and their URI's keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/source_uri.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

// Whether a source's own frame size binds the user, or frames may be cut as the user likes.
enum class FrameSize { free, fixed };

// Throws UsageError, with both values, when an option says other than `stream`, which is what the
// source itself says. `what` names the source.
void refuse_contradictions(const StreamOptions& options, const Stream& stream, FrameSize size,
                           const std::string& what);

// A key that counts channels or samples. Throws UsageError beyond 32 bits.
std::optional<uint32_t> take_count(SourceUri& uri, const std::string& key);

// The key rate=, in the forms of Rational::parse.
std::optional<Rational> take_rate(SourceUri& uri);

// True for tail=drop: what is left over behind the last whole sample is not an error. Throws
// UsageError on any other value.
bool take_drop_tail(SourceUri& uri);

// For describe(): "2 channels, i16, sample-major, 48000 Hz".
std::string text_of(const Stream& stream);

}  // namespace echelle
