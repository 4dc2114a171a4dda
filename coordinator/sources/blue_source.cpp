#include "coordinator/sources/blue_source.hpp"

#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/blue_header.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

// Detached samples lie beside the header, in a file of the same name that ends in .det.
std::string detached_path(const std::string& path) {
    const size_t slash = path.rfind('/');
    const size_t name = slash == std::string::npos ? 0 : slash + 1;
    const size_t point = path.rfind('.');
    const size_t end = point == std::string::npos || point < name ? path.size() : point;
    return path.substr(0, end) + ".det";
}

}  // namespace

std::unique_ptr<Source> open_blue_source(SourceUri uri, const StreamOptions& options) {
    const RecordingKeys keys = take_recording_keys(uri);
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like blue:capture.prm");
    }
    RegularFile file(uri.path());
    const BlueHeader header =
        parse_blue_header(bytes_of_file(file, 0, blue_header_bytes), uri.path());
    if (header.detached) {
        file = RegularFile(detached_path(uri.path()));
    }
    Stream said;
    said.geometry.channels = 1;
    said.geometry.format = header.format;
    said.geometry.layout = Layout::sample_major;
    said.rate = header.rate;
    said.epoch_ns = header.epoch_ns.value_or(0);
    set_over_range(said, header.coding);
    Recording recording;
    recording.stream = complete_stream(said, keys, options, "'" + uri.path() + "'");

    const uint64_t there = header.data_start < file.size() ? file.size() - header.data_start : 0;
    const uint64_t bytes = std::min(header.data_bytes, there);
    const uint64_t unit = file_sample_bytes(said.geometry, header.coding);
    PieceList pieces(file.path());
    pieces.append({.offset = header.data_start, .samples = bytes / unit}, 0);
    if (pieces.empty()) {
        throw UsageError("'" + file.path() + "' holds no samples: data_start is " +
                         std::to_string(header.data_start) + ", data_size " +
                         std::to_string(header.data_bytes) + ", and the file has " +
                         std::to_string(file.size()) + " bytes; fetch the whole file");
    }
    if (bytes < header.data_bytes) {
        recording.remarks.push_back("cut short: " + std::to_string(header.data_bytes - bytes) +
                                    " of data_size " + std::to_string(header.data_bytes) +
                                    " bytes are not there");
    }
    if (bytes % unit != 0) {
        recording.remarks.push_back("the last " + std::to_string(bytes % unit) +
                                    " bytes are less than a sample and are left out");
    }
    recording.pieces = pieces.take();
    recording.name = "BLUE file '" + file.path() + "'";
    recording.coding = name_of(header.coding);
    recording.store =
        std::make_unique<FileStore>(std::move(file), recording.stream.geometry, header.coding, 1);
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
