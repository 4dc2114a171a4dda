// What sources share in reading the command line and their URI's keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/source_uri.hpp"
#include "common/stream.hpp"
#include "coordinator/sources/replay_keys.hpp"
#include "coordinator/sources/sample_file.hpp"
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

// The keys that every recording takes.
struct RecordingKeys {
    std::optional<uint32_t> samples;  // per frame
    std::optional<Rational> rate;
    ReplayKeys replay;
};
RecordingKeys take_recording_keys(SourceUri& uri);

// The stream of such a recording. `said` is what it says: channels, format, layout, coding's
// over-range limits, rate (numerator 0: it doesn't say) and epoch; keys win over options where it
// says nothing. Throws UsageError when the rate is missing, and on contradictions.
Stream complete_stream(Stream said, const RecordingKeys& keys, const StreamOptions& options,
                       const std::string& what);

// Unix time of the stream's sample 0, which is the recording's sample `index` since `start_ns`;
// 0 without a start. Throws UsageError beyond the year 2262.
int64_t epoch_of(std::optional<int64_t> start_ns, uint64_t index, Rational rate,
                 const std::string& what);

// The converter's rails of values coded like this.
void set_over_range(Stream& stream, ValueCoding coding);

// For describe(): "2 channels, i16, sample-major, 48000 Hz".
std::string text_of(const Stream& stream);

}  // namespace echelle
