#include "coordinator/sources/sigmf_source.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/sha512.hpp"
#include "coordinator/sources/sigmf_files.hpp"
#include "coordinator/sources/sigmf_metadata.hpp"
#include "coordinator/sources/sigmf_pieces.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

struct SigmfKeys {
    RecordingKeys common;
    bool drop_tail = false;
    bool verify = false;
    std::optional<std::string> recording;
};

SigmfKeys take_keys(SourceUri& uri) {
    SigmfKeys keys;
    keys.common = take_recording_keys(uri);
    keys.drop_tail = take_drop_tail(uri);
    keys.recording = uri.take("recording");
    const std::optional<std::string> verify = uri.take("verify");
    if (verify && *verify != "sha512") {
        throw UsageError("source '" + uri.text() + "' has verify=" + *verify +
                         ": only verify=sha512 is known");
    }
    keys.verify = verify.has_value();
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like sigmf:capture.sigmf-meta");
    }
    return keys;
}

FileRange open_data(const SigmfMetadata& metadata, const SigmfFiles& files) {
    try {
        return files.data(metadata.dataset);
    } catch (const UsageError& error) {
        throw UsageError(std::string(error.what()) +
                         (metadata.metadata_only
                              ? "; the metadata says core:metadata_only: fetch the data"
                              : ""));
    }
}

// Throws UsageError unless the data are those that the metadata were written for.
void verify_data(const SigmfMetadata& metadata, const FileRange& data, const std::string& what) {
    if (!metadata.sha512) {
        throw UsageError("'" + what +
                         "' has no core:sha512 to verify the samples by: leave verify= out");
    }
    std::string said = *metadata.sha512;
    std::transform(said.begin(), said.end(), said.begin(),
                   [](unsigned char digit) { return static_cast<char>(std::tolower(digit)); });
    const std::string digest = sha512_of(data.file, data.offset, data.bytes);
    if (digest != said) {
        throw UsageError("'" + data.name + "' has the SHA-512 " + digest + ", but '" + what +
                         "' has core:sha512 " + said +
                         ": the samples are not those that were recorded; fetch them again");
    }
}

void take_own_fields(const SigmfOwnFields& own, Stream& said) {
    said.epoch_ns = own.epoch_ns.value_or(said.epoch_ns);
    said.over_range_low = own.over_range_low.value_or(said.over_range_low);
    said.over_range_high = own.over_range_high.value_or(said.over_range_high);
}

Stream stream_of(const SigmfMetadata& metadata, const SigmfKeys& keys, const StreamOptions& options,
                 const std::string& what) {
    if (!metadata.sample_rate && !keys.common.rate && !options.rate) {
        throw UsageError("'" + what +
                         "' does not say its sample rate (core:sample_rate): give --rate or the "
                         "key rate=, in Hz");
    }
    Stream said;
    said.geometry.channels = metadata.channels;
    said.geometry.format = metadata.format;
    said.geometry.layout = Layout::sample_major;
    said.rate = metadata.sample_rate.value_or(Rational{});
    said.epoch_ns = metadata.captures.front().epoch_ns.value_or(0);
    set_over_range(said, metadata.coding);
    take_own_fields(metadata.own, said);
    StreamOptions complete = options;
    if (!complete.samples) {
        complete.samples = metadata.own.samples_per_frame;
    }
    return complete_stream(said, keys.common, complete, "'" + what + "'");
}

// Indices of the stream that was captured, where the recording is a capture of ours: the epoch
// that it gives belongs to them.
uint64_t first_index_of(const SigmfMetadata& metadata, const SigmfPieces& found,
                        const std::string& what) {
    constexpr uint64_t limit = uint64_t{1} << 63;
    if (!metadata.own.epoch_ns) {
        return 0;
    }
    if (found.first_index >= limit) {
        throw UsageError("'" + what + "': core:global_index of its first samples is " +
                         std::to_string(found.first_index) +
                         ", beyond 2^63: it is damaged; correct it");
    }
    return found.first_index;
}

std::vector<std::string> remarks_of(const SigmfMetadata& metadata, const SigmfPieces& found,
                                    bool verified) {
    std::vector<std::string> remarks = metadata.remarks;
    if (verified) {
        remarks.emplace_back("SHA-512 verified");
    }
    if (metadata.own.unfinished) {
        remarks.emplace_back("its recorder was killed before it finished it");
    }
    if (found.dropped_bytes > 0) {
        remarks.push_back("last " + std::to_string(found.dropped_bytes) + " bytes dropped (" +
                          (metadata.own.unfinished ? "less than a sample)" : "tail=drop)"));
    }
    return remarks;
}

}  // namespace

std::unique_ptr<Source> open_sigmf_source(SourceUri uri, const StreamOptions& options) {
    const SigmfKeys keys = take_keys(uri);
    const SigmfFiles files(uri.path(), keys.recording, keys.verify);
    const FileRange text = files.metadata();
    SigmfMetadata metadata =
        parse_sigmf_metadata(bytes_of_range(text, most_sigmf_metadata_bytes), text.name);
    Recording recording;
    recording.stream = stream_of(metadata, keys, options, text.name);
    FileRange data = open_data(metadata, files);
    if (keys.verify) {
        verify_data(metadata, data, text.name);
    }
    SigmfPieces found = find_sigmf_pieces(metadata, data.bytes,
                                          keys.drop_tail || metadata.own.unfinished, data.name);
    recording.first_index = first_index_of(metadata, found, text.name);
    for (SamplePiece& piece : found.pieces) {
        piece.offset += data.offset;
    }
    recording.pieces = std::move(found.pieces);
    recording.name = "SigMF recording '" + data.name + "'";
    recording.coding = name_of(metadata.coding);
    recording.remarks = remarks_of(metadata, found, keys.verify);
    recording.annotations = std::move(metadata.annotations);
    recording.annotations_left_out = metadata.annotations_left_out;
    recording.store = std::make_unique<FileStore>(std::move(data.file), recording.stream.geometry,
                                                  metadata.coding, metadata.channels);
    return source_of(std::move(recording), keys.common.replay);
}

}  // namespace echelle
