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
    return complete_stream(said, keys.common, options, "'" + what + "'");
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
    SigmfPieces found = find_sigmf_pieces(metadata, data.bytes, keys.drop_tail, data.name);
    for (SamplePiece& piece : found.pieces) {
        piece.offset += data.offset;
    }
    recording.pieces = std::move(found.pieces);
    recording.name = "SigMF recording '" + data.name + "'";
    recording.coding = name_of(metadata.coding);
    recording.remarks = std::move(metadata.remarks);
    if (keys.verify) {
        recording.remarks.emplace_back("SHA-512 verified");
    }
    if (found.dropped_bytes > 0) {
        recording.remarks.push_back("last " + std::to_string(found.dropped_bytes) +
                                    " bytes dropped (tail=drop)");
    }
    recording.annotations = std::move(metadata.annotations);
    recording.annotations_left_out = metadata.annotations_left_out;
    recording.store = std::make_unique<FileStore>(std::move(data.file), recording.stream.geometry,
                                                  metadata.coding, metadata.channels);
    return source_of(std::move(recording), keys.common.replay);
}

}  // namespace echelle
