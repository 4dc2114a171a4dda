#include "coordinator/sources/sigmf_source.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/sigmf_metadata.hpp"
#include "coordinator/sources/sigmf_pieces.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

constexpr std::string_view metadata_ending = ".sigmf-meta";
constexpr std::string_view data_ending = ".sigmf-data";

// The path without ".sigmf-meta" or ".sigmf-data".
std::string base_path(const SourceUri& uri) {
    std::string path = uri.path();
    if (path.empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like sigmf:capture.sigmf-meta");
    }
    if (path.ends_with(".sigmf")) {
        throw UsageError("'" + path + "' is a SigMF archive: unpack it with tar -xf and name the " +
                         std::string(metadata_ending) + " file");
    }
    if (path.ends_with(metadata_ending) || path.ends_with(data_ending)) {
        path.resize(path.size() - metadata_ending.size());
    }
    return path;
}

SigmfMetadata read_metadata(const std::string& path) {
    const RegularFile file(path);
    // One byte more than may be: enough to be refused by its size.
    std::string text(std::min(file.size(), most_sigmf_metadata_bytes + 1), '\0');
    try {
        file.read(0, std::as_writable_bytes(std::span(text)));
    } catch (const RunError& error) {
        throw UsageError(error.what());
    }
    return parse_sigmf_metadata(text, path);
}

RegularFile open_data(const SigmfMetadata& metadata, const std::string& base) {
    std::string path = base + std::string(data_ending);
    if (metadata.dataset) {
        const size_t slash = base.rfind('/');
        const size_t folder = slash == std::string::npos ? 0 : slash + 1;
        path = base.substr(0, folder) + *metadata.dataset;
    }
    try {
        return RegularFile(path);
    } catch (const UsageError& error) {
        throw UsageError(std::string(error.what()) +
                         (metadata.metadata_only
                              ? "; the metadata says core:metadata_only: fetch the data"
                              : ""));
    }
}

Rational rate_of(const SigmfMetadata& metadata, std::optional<Rational> given,
                 const std::string& what) {
    if (metadata.sample_rate) {
        if (given && *given != *metadata.sample_rate) {
            throw UsageError("rate " + given->text() + " contradicts " + what + ", which says " +
                             metadata.sample_rate->text() + ": leave it out");
        }
        return *metadata.sample_rate;
    }
    if (!given) {
        throw UsageError(what +
                         " does not say its sample rate (core:sample_rate): give --rate or "
                         "the key rate=, in Hz");
    }
    return *given;
}

class SigmfSource : public Source {
  public:
    SigmfSource(Recording recording, std::string description)
        : recording_(std::move(recording)), description_(std::move(description)) {}

    Stream stream() const override { return recording_.stream; }
    std::optional<uint64_t> total_samples() const override { return recording_.total_samples(); }
    std::optional<uint64_t> longest_stretch() const override {
        return recording_.longest_stretch();
    }
    OverrunPolicy default_policy() const override { return OverrunPolicy::block; }
    std::string describe() const override { return description_; }
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        recording_.play(writer, policy, stop);
    }

  private:
    Recording recording_;
    std::string description_;
};

std::string description_of(const Recording& recording, uint64_t dropped_bytes) {
    size_t gaps = 0;
    for (const SamplePiece& piece : recording.pieces) {
        gaps += piece.gap_before ? 1 : 0;
    }
    return "SigMF recording '" + recording.file.path() + "': " + text_of(recording.stream) + ", " +
           std::string(name_of(recording.coding)) + " values, " +
           std::to_string(recording.total_samples()) + " samples per channel" +
           (gaps > 0 ? ", " + std::to_string(gaps) + (gaps == 1 ? " gap" : " gaps") : "") +
           (dropped_bytes > 0
                ? ", last " + std::to_string(dropped_bytes) + " bytes dropped (tail=drop)"
                : "");
}

}  // namespace

std::unique_ptr<Source> open_sigmf_source(SourceUri uri, const StreamOptions& options) {
    const std::optional<Rational> rate_key = take_rate(uri);
    const std::optional<uint32_t> samples_key = take_count(uri, "samples");
    const bool drop_tail = take_drop_tail(uri);
    uri.refuse_unknown_keys();
    const std::string base = base_path(uri);
    const std::string metadata_path = base + std::string(metadata_ending);
    const std::string what = "'" + metadata_path + "'";
    const SigmfMetadata metadata = read_metadata(metadata_path);

    Stream stream;
    stream.geometry.channels = metadata.channels;
    stream.geometry.samples =
        samples_key.value_or(options.samples.value_or(stream.geometry.samples));
    stream.geometry.format = metadata.format;
    stream.geometry.layout = Layout::sample_major;
    stream.geometry.validate();
    stream.rate = rate_of(metadata, rate_key ? rate_key : options.rate, what);
    stream.epoch_ns = metadata.captures.front().epoch_ns.value_or(0);
    if (metadata.coding == ValueCoding::int8) {
        stream.over_range_low = INT8_MIN;
        stream.over_range_high = INT8_MAX;
    }
    StreamOptions other_options = options;
    other_options.rate.reset();  // settled above: a key wins over it
    refuse_contradictions(other_options, stream, FrameSize::free, what);

    Recording recording{open_data(metadata, base), metadata.coding, stream, {}};
    SigmfPieces found =
        find_sigmf_pieces(metadata, recording.file.size(), drop_tail, recording.file.path());
    recording.pieces = std::move(found.pieces);
    std::string description = description_of(recording, found.dropped_bytes);
    return std::make_unique<SigmfSource>(std::move(recording), std::move(description));
}

}  // namespace echelle
