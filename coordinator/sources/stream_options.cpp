#include "coordinator/sources/stream_options.hpp"

#include <limits>

#include "common/error.hpp"

namespace echelle {
namespace {

void require_equal(const std::string& option, const std::string& given, const std::string& said,
                   const std::string& what) {
    if (given != said) {
        throw UsageError(option + " " + given + " contradicts " + what + ", which says " + said +
                         ": leave the option out");
    }
}

}  // namespace

void refuse_contradictions(const StreamOptions& options, const Stream& stream, FrameSize size,
                           const std::string& what) {
    const FrameGeometry& geometry = stream.geometry;
    if (options.channels) {
        require_equal("--channels", std::to_string(*options.channels),
                      std::to_string(geometry.channels), what);
    }
    if (options.samples && size == FrameSize::fixed) {
        require_equal("--samples", std::to_string(*options.samples),
                      std::to_string(geometry.samples), what);
    }
    if (options.rate) {
        // Lowest terms on both sides: an outside producer may say 96000/2.
        const Rational given =
            Rational::reduced(options.rate->numerator, options.rate->denominator);
        const Rational said = Rational::reduced(stream.rate.numerator, stream.rate.denominator);
        require_equal("--rate", given.text(), said.text(), what);
    }
    if (options.format) {
        require_equal("--format", std::string(name_of(*options.format)),
                      std::string(name_of(geometry.format)), what);
    }
    // Samples of one channel lie the same way in both layouts.
    if (options.layout && geometry.channels > 1) {
        require_equal("--layout", std::string(name_of(*options.layout)),
                      std::string(name_of(geometry.layout)), what);
    }
}

std::optional<uint32_t> take_count(SourceUri& uri, const std::string& key) {
    const std::optional<uint64_t> value = uri.take_unsigned(key);
    if (!value) {
        return std::nullopt;
    }
    if (*value > std::numeric_limits<uint32_t>::max()) {
        throw UsageError("source '" + uri.text() + "' has " + key + "=" + std::to_string(*value) +
                         ", which is out of range: give a smaller number");
    }
    return static_cast<uint32_t>(*value);
}

std::optional<Rational> take_rate(SourceUri& uri) {
    const std::optional<std::string> value = uri.take("rate");
    if (!value) {
        return std::nullopt;
    }
    return Rational::parse(*value, "rate");
}

bool take_drop_tail(SourceUri& uri) {
    const std::optional<std::string> value = uri.take("tail");
    if (value && *value != "drop") {
        throw UsageError("source '" + uri.text() + "' has tail=" + *value +
                         ": only tail=drop is known");
    }
    return value.has_value();
}

RecordingKeys take_recording_keys(SourceUri& uri) {
    return {take_count(uri, "samples"), take_rate(uri), take_replay_keys(uri)};
}

Stream complete_stream(Stream said, const RecordingKeys& keys, const StreamOptions& options,
                       const std::string& what) {
    said.geometry.samples =
        keys.samples.value_or(options.samples.value_or(FrameGeometry().samples));
    const std::optional<Rational> given = keys.rate ? keys.rate : options.rate;
    if (!said.rate.is_positive()) {
        if (!given) {
            throw UsageError(what +
                             " does not say its sample rate: give --rate or the key rate=, in Hz");
        }
        said.rate = *given;
    } else if (given && Rational::reduced(given->numerator, given->denominator) != said.rate) {
        throw UsageError("rate " + given->text() + " contradicts " + what + ", which says " +
                         said.rate.text() + ": leave it out");
    }
    said.geometry.validate();
    StreamOptions others = options;
    others.rate.reset();  // settled above: a key wins over it
    refuse_contradictions(others, said, FrameSize::free, what);
    return said;
}

int64_t epoch_of(std::optional<int64_t> start_ns, uint64_t index, Rational rate,
                 const std::string& what) {
    if (!start_ns) {
        return 0;
    }
    int64_t epoch_ns = 0;
    if (__builtin_add_overflow(*start_ns, sample_time_ns(index, rate), &epoch_ns)) {
        throw UsageError(what + " begins with sample " + std::to_string(index) + " at " +
                         rate.text() + " Hz, which is after the year 2262: its header is damaged");
    }
    return epoch_ns;
}

void set_over_range(Stream& stream, ValueCoding coding) {
    if (is_8_bit(coding)) {
        stream.over_range_low = INT8_MIN;
        stream.over_range_high = INT8_MAX;
    }
}

std::string text_of(const Stream& stream) {
    const FrameGeometry& geometry = stream.geometry;
    return std::to_string(geometry.channels) +
           (geometry.channels == 1 ? " channel, " : " channels, ") +
           std::string(name_of(geometry.format)) + ", " + std::string(name_of(geometry.layout)) +
           ", " + stream.rate.text() + " Hz";
}

}  // namespace echelle
