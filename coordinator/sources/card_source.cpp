#include "coordinator/sources/card_source.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/sources/card_reader.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

constexpr double longest_timeout_s = 86'400;

struct CardKeys {
    CardReaderOptions reader;
    StreamOptions stream;  // keys, and options where there is no key
};

[[noreturn]] void refuse(const SourceUri& uri, const std::string& why) {
    throw UsageError("source '" + uri.text() + "' " + why);
}

bool take_yes_or_no(SourceUri& uri, const std::string& key, bool without) {
    const std::optional<std::string> value = uri.take(key);
    if (value && *value != "yes" && *value != "no") {
        refuse(uri, "has " + key + "=" + *value + ": give yes or no");
    }
    return value ? *value == "yes" : without;
}

bool take_has_headers(SourceUri& uri) {
    const std::optional<std::string> value = uri.take("header");
    if (value && *value != "none" && *value != "echelle") {
        refuse(uri, "has header=" + *value +
                        ": give none for samples alone, or echelle for the frames of "
                        "docs/capture-cards.md");
    }
    return value != "none";
}

int64_t take_timeout_ns(SourceUri& uri) {
    const double seconds = uri.take_number("timeout").value_or(10);
    if (!(seconds >= 0.01 && seconds <= longest_timeout_s)) {
        refuse(uri,
               "has timeout=" + std::to_string(seconds) + ": give seconds, 0.01 to a day (86400)");
    }
    return static_cast<int64_t>(seconds * 1e9);
}

StreamOptions take_stream_keys(SourceUri& uri, StreamOptions options) {
    const auto prefer = [](auto& option, auto key) { option = key ? key : option; };
    prefer(options.channels, take_count(uri, "channels"));
    prefer(options.samples, take_count(uri, "samples"));
    prefer(options.rate, take_rate(uri));
    if (const auto format = uri.take("format")) {
        options.format = parse_sample_format(*format);
    }
    if (const auto layout = uri.take("layout")) {
        options.layout = parse_layout(*layout);
    }
    return options;
}

CardKeys take_keys(SourceUri& uri, const StreamOptions& options) {
    CardKeys keys;
    keys.reader.path = uri.path();
    keys.reader.has_headers = take_has_headers(uri);
    keys.reader.tlast = take_yes_or_no(uri, "tlast", true);
    keys.reader.reopen = take_yes_or_no(uri, "reopen", true);
    keys.reader.timeout_ns = take_timeout_ns(uri);
    keys.stream = take_stream_keys(uri, options);
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        refuse(uri, "names no device: write it like xdma:/dev/xdma0_c2h_0");
    }
    return keys;
}

// Unix time of sample 0, given that of sample `index`; 0, not known, where it cannot be told.
int64_t epoch_before(int64_t time_ns, uint64_t index, Rational rate) {
    int64_t epoch_ns = 0;
    return __builtin_sub_overflow(time_ns, sample_time_ns(index, rate), &epoch_ns) ? 0 : epoch_ns;
}

// What the first header says; an option that says other is refused, a rate that it does not say is
// asked for.
Stream stream_of_header(const CardReader& reader, const StreamOptions& options,
                        const std::string& what) {
    const CardFrameHeader& header = reader.first_header();
    Stream stream;
    stream.geometry = header.geometry;
    if (header.rate_hz > 0) {
        stream.rate = {header.rate_hz, 1};
    } else if (options.rate) {
        stream.rate = *options.rate;
    } else {
        throw UsageError(what +
                         " does not say its sample rate: give --rate or the key rate=, in "
                         "samples per second of each channel");
    }
    refuse_contradictions(options, stream, FrameSize::fixed, what);
    const bool is_unix = (header.flags & card_time_is_unix) != 0;
    stream.epoch_ns = epoch_before(is_unix ? header.time_ns : reader.first_header_ns(),
                                   header.sample_index, stream.rate);
    return stream;
}

// Without headers the user says everything.
Stream stream_of_options(const StreamOptions& options, const std::string& what) {
    if (!options.channels || !options.rate) {
        throw UsageError(what + " with header=none says nothing about its samples: give --" +
                         (options.channels ? "rate" : "channels") + " or the key of that name");
    }
    Stream stream;
    stream.geometry.channels = *options.channels;
    stream.geometry.samples = options.samples.value_or(stream.geometry.samples);
    stream.geometry.format = options.format.value_or(SampleFormat::i16);
    // What has no header is as converters give it: sample by sample.
    stream.geometry.layout = options.layout.value_or(Layout::sample_major);
    stream.geometry.validate();
    stream.rate = *options.rate;
    stream.epoch_ns = realtime_ns();
    return stream;
}

const char* name_of(DeviceFile::Kind kind) {
    switch (kind) {
        case DeviceFile::Kind::device:
            return "device";
        case DeviceFile::Kind::fifo:
            return "FIFO";
        case DeviceFile::Kind::file:
            break;
    }
    return "file";
}

template <size_t Count, typename Cause>
nlohmann::json by_cause(const std::array<uint64_t, Count>& counts, Cause /*of*/) {
    nlohmann::json object = nlohmann::json::object();
    for (size_t cause = 0; cause < Count; ++cause) {
        if (counts[cause] > 0) {
            object[name_of(static_cast<Cause>(cause))] = counts[cause];
        }
    }
    return object;
}

class CardSource final : public Source {
  public:
    CardSource(std::shared_ptr<CardReader> reader, CardReaderOptions options, const Stream& stream)
        : reader_(std::move(reader)), options_(std::move(options)), stream_(stream) {}

    Stream stream() const override { return stream_; }
    // A pipe or a file holds its bytes until they are read; a card does not.
    OverrunPolicy default_policy() const override {
        return reader_->kind() == DeviceFile::Kind::device ? OverrunPolicy::drop
                                                           : OverrunPolicy::block;
    }

    std::string describe() const override {
        std::string text = std::string("card's ") + name_of(reader_->kind()) + " '" +
                           options_.path + "': " + text_of(stream_) + ", frames of " +
                           std::to_string(stream_.geometry.samples) + " samples";
        if (!options_.has_headers) {
            return text + ", without headers: loss can't be seen";
        }
        return text + (reader_->first_header().has_trailer()
                           ? ", checksums of all samples"
                           : ", no checksums of samples: damage inside a frame can't be seen");
    }

    RingMargin ring_margin() const override {
        if (!options_.has_headers) {
            return {};
        }
        const CardFrameHeader& header = reader_->first_header();
        return {header.header_bytes,
                card_frame_bytes(header) - header.header_bytes - header.geometry.frame_bytes()};
    }

    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        reader_->read_into(writer, stream_, policy == OverrunPolicy::block, stop);
    }

    void let_go() override { reader_->let_go(); }

    const char* facts_name() const override { return "source"; }
    nlohmann::json facts() const override;

  private:
    std::string state(const CardCounts& counts) const;

    std::shared_ptr<CardReader> reader_;
    CardReaderOptions options_;
    Stream stream_;
};

std::string CardSource::state(const CardCounts& counts) const {
    if (reader_->has_ended()) {
        return "ended";
    }
    if (!counts.open) {
        return "away";
    }
    return reader_->waiting_ns() > options_.timeout_ns ? "not answering" : "reading";
}

nlohmann::json CardSource::facts() const {
    const CardCounts counts = reader_->counts();
    const ReframerCounts& framing = counts.framing;
    nlohmann::json facts;
    facts["device"] = options_.path;
    facts["kind"] = name_of(reader_->kind());
    facts["state"] = state(counts);
    facts["loss_can_be_seen"] = options_.has_headers;
    facts["frames"] = counts.frames;
    facts["lost"] = by_cause(counts.lost, CardLoss{});
    facts["repeated"] = counts.repeated;
    facts["stale"] = counts.stale;
    facts["restarts"] = counts.restarts;
    facts["flags"] = {{"overflow", counts.overflow_flags}, {"over_range", counts.over_range_flags}};
    facts["framing"] = {
        {"skipped_bytes", framing.skipped_bytes},      {"resynchronised", framing.resynchronised},
        {"bad_header_crc", framing.bad_header_crc},    {"unknown_version", framing.unknown_version},
        {"impossible_header", framing.impossible},     {"other_shape", framing.other_shape},
        {"bad_data_crc", framing.bad_data_crc},        {"torn", framing.torn},
        {"without_checksum", framing.without_checksum}};
    facts["reads"] = {{"count", counts.reads},
                      {"bytes", counts.bytes},
                      {"short", counts.short_reads},
                      {"empty", counts.empty_reads},
                      {"copied_bytes", counts.copied_bytes},
                      {"silences", counts.silences}};
    facts["trouble"] = by_cause(counts.troubles, DeviceTrouble{});
    facts["reopened"] = counts.reopened;
    facts["failed_opens"] = counts.failed_opens;
    facts["last_trouble"] =
        counts.last_trouble.empty() ? nlohmann::json(nullptr) : nlohmann::json(counts.last_trouble);
    return facts;
}

}  // namespace

std::unique_ptr<Source> open_card_source(SourceUri uri, const StreamOptions& options) {
    CardKeys keys = take_keys(uri, options);
    const std::string what = "device '" + uri.path() + "'";
    std::optional<Stream> stream;
    if (!keys.reader.has_headers) {
        stream = stream_of_options(keys.stream, what);
    }
    auto reader = std::make_shared<CardReader>(keys.reader);
    reader->open();
    if (!stream) {
        stream = stream_of_header(*reader, keys.stream, what);
    }
    return std::make_unique<CardSource>(std::move(reader), std::move(keys.reader), *stream);
}

}  // namespace echelle
