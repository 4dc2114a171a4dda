#include "coordinator/sources/dada_source.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/dada_header.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

struct DadaFile {
    std::string path;
    uint64_t bytes = 0;
    DadaHeader header;

    uint64_t first_sample() const { return header.offset_bytes / header.sample_bytes(); }
    uint64_t samples() const { return (bytes - header.header_bytes) / header.sample_bytes(); }
    uint64_t left_over() const { return (bytes - header.header_bytes) % header.sample_bytes(); }
};

DadaFile read_file(const std::string& path) {
    constexpr size_t first_bytes = 4096;
    const RegularFile file(path);
    std::string bytes = bytes_of_file(file, 0, first_bytes);
    const uint64_t header_bytes = dada_header_bytes(bytes, path);
    if (header_bytes > file.size()) {
        throw UsageError("'" + path + "' has " + std::to_string(file.size()) +
                         " bytes, less than its header of HDR_SIZE " +
                         std::to_string(header_bytes) + ": fetch the whole file");
    }
    bytes = bytes_of_file(file, 0, header_bytes);
    return {path, file.size(), parse_dada_header(bytes, path)};
}

void check_alike(const DadaFile& file, const DadaFile& first) {
    const DadaHeader& header = file.header;
    const DadaHeader& other = first.header;
    if (header.channels != other.channels || header.polarisations != other.polarisations ||
        header.is_complex != other.is_complex || header.coding != other.coding ||
        header.rate != other.rate || header.start_text != other.start_text) {
        throw UsageError("'" + file.path +
                         "' has another NCHAN, NPOL, NDIM, NBIT, TSAMP or UTC_START than '" +
                         first.path + "': give the files of one observation");
    }
}

std::vector<DadaFile> read_files(const std::string& path) {
    std::vector<DadaFile> files;
    for (const std::string& name : recording_files(path)) {
        files.push_back(read_file(name));
        check_alike(files.back(), files.front());
    }
    std::stable_sort(files.begin(), files.end(), [](const DadaFile& a, const DadaFile& b) {
        return a.header.offset_bytes < b.header.offset_bytes;
    });
    return files;
}

// How many samples at the file's start the one before it has as well, by OBS_OVERLAP.
uint64_t repeated_samples(const DadaFile& file, const PieceList& pieces) {
    const uint64_t first = file.first_sample();
    if (pieces.empty() || pieces.expected_index() <= first) {
        return 0;
    }
    const uint64_t repeated = pieces.expected_index() - first;
    const uint64_t allowed = file.header.overlap_bytes / file.header.sample_bytes();
    return repeated <= allowed ? std::min(repeated, file.samples()) : 0;
}

std::vector<SamplePiece> find_pieces(const std::vector<DadaFile>& files) {
    PieceList pieces(files.front().path);
    for (uint32_t index = 0; index < files.size(); ++index) {
        const DadaFile& file = files[index];
        const uint64_t skipped = repeated_samples(file, pieces);
        SamplePiece piece;
        piece.offset = file.header.header_bytes + skipped * file.header.sample_bytes();
        piece.samples = file.samples() - skipped;
        piece.file = index;
        pieces.append(piece, file.first_sample() + skipped);
    }
    if (pieces.empty()) {
        throw UsageError(
            "'" + files.front().path + "' holds no samples behind its header of HDR_SIZE " +
            std::to_string(files.front().header.header_bytes) + ": give a file with data");
    }
    return pieces.take();
}

std::vector<std::string> remarks_of(const std::vector<DadaFile>& files) {
    std::vector<std::string> remarks;
    if (files.size() > 1) {
        remarks.push_back(std::to_string(files.size()) + " files");
    }
    for (const DadaFile& file : files) {
        if (file.left_over() > 0) {
            remarks.push_back("cut short: the last " + std::to_string(file.left_over()) +
                              " bytes of '" + file.path +
                              "' are less than a sample and are left "
                              "out");
        }
    }
    return remarks;
}

}  // namespace

std::unique_ptr<Source> open_dada_source(SourceUri uri, const StreamOptions& options) {
    const RecordingKeys keys = take_recording_keys(uri);
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like dada:capture.dada");
    }
    const std::vector<DadaFile> files = read_files(uri.path());
    const DadaHeader& header = files.front().header;
    Stream said;
    said.geometry.channels = header.channels * header.polarisations;
    said.geometry.format = header.is_complex ? SampleFormat::ci16 : SampleFormat::i16;
    said.geometry.layout = Layout::sample_major;
    said.rate = header.rate.value_or(Rational{});
    set_over_range(said, header.coding);
    Recording recording;
    recording.stream = complete_stream(said, keys, options, "'" + uri.path() + "'");
    recording.stream.epoch_ns = epoch_of(header.start_ns, files.front().first_sample(),
                                         recording.stream.rate, "'" + files.front().path + "'");
    recording.name = "PSRDADA recording '" + uri.path() + "'";
    recording.coding = name_of(header.coding);
    recording.remarks = remarks_of(files);
    recording.pieces = find_pieces(files);
    std::vector<std::string> paths;
    for (const DadaFile& file : files) {
        paths.push_back(file.path);
    }
    recording.store = std::make_unique<FileStore>(std::move(paths), recording.stream.geometry,
                                                  header.coding, said.geometry.channels);
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
