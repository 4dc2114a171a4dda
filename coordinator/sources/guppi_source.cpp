#include "coordinator/sources/guppi_source.hpp"

#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/guppi_header.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

class BlockScan {
  public:
    BlockScan(std::vector<std::string> paths, uint32_t polarisations)
        : paths_(std::move(paths)), polarisations_(polarisations), pieces_(paths_.front()) {
        for (uint32_t index = 0; index < paths_.size(); ++index) {
            scan(RegularFile(paths_[index]), index);
        }
        if (pieces_.empty()) {
            throw UsageError("'" + paths_.front() +
                             "' holds no whole block: it is cut short; fetch the whole file");
        }
    }

    const GuppiHeader& first() const { return first_; }
    const std::vector<std::string>& paths() const { return paths_; }
    std::vector<SamplePiece> take_pieces() { return pieces_.take(); }

    std::vector<std::string> remarks() const {
        std::vector<std::string> remarks = remarks_;
        if (paths_.size() > 1) {
            remarks.push_back(std::to_string(paths_.size()) + " files");
        }
        if (first_.overlap > 0) {
            remarks.push_back("overlap of " + std::to_string(first_.overlap) +
                              " samples left out of each block");
        }
        if (blocks_with_loss_ > 0) {
            remarks.push_back(std::to_string(blocks_with_loss_) +
                              " blocks lost packets inside (DROPBLK, NDROP): the recorder filled "
                              "them with zeros, which are averaged in");
        }
        if (loss_is_hidden_) {
            remarks.emplace_back("no PKTIDX and PKTSIZE: lost blocks can't be seen");
        }
        return remarks;
    }

  private:
    void scan(const RegularFile& file, uint32_t index) {
        uint64_t at = 0;
        while (at < file.size()) {
            const std::string bytes = header_at(file, at);
            if (at > 0 && at + bytes.size() == file.size() && !has_guppi_end(bytes)) {
                leave_out(file, at, "are no whole header");
                return;
            }
            const GuppiHeader header =
                parse_guppi_header(bytes, polarisations_,
                                   file.path() + (at > 0 ? " at byte " + std::to_string(at) : ""));
            const uint64_t data = at + header.header_bytes;
            if (data > file.size() || file.size() - data < header.block_bytes) {
                leave_out(file, at, "are no whole block");
                return;
            }
            append(header, data, file.path(), index);
            at = data + header.block_bytes;
        }
    }

    // Most headers are a few thousand bytes; only a long one is read a second time.
    static std::string header_at(const RegularFile& file, uint64_t at) {
        constexpr size_t usual_bytes = 16'384;
        std::string bytes = bytes_of_file(file, at, usual_bytes);
        return has_guppi_end(bytes) ? bytes : bytes_of_file(file, at, most_guppi_header_bytes);
    }

    void leave_out(const RegularFile& file, uint64_t at, const std::string& why) {
        remarks_.push_back("cut short: the last " + std::to_string(file.size() - at) +
                           " bytes of '" + file.path() + "' " + why + " and are left out");
    }

    void append(const GuppiHeader& header, uint64_t data, const std::string& path, uint32_t index) {
        if (pieces_.empty()) {
            first_ = header;
        } else if (header.channels != first_.channels ||
                   header.polarisations != first_.polarisations || header.rate != first_.rate ||
                   header.coding != first_.coding || header.time_first != first_.time_first) {
            throw UsageError("'" + path + "': the block before byte " + std::to_string(data) +
                             " has another OBSNCHAN, NPOL, NBITS, TBIN or PKTFMT than the first "
                             "one of '" +
                             paths_.front() + "': give the files of one observation");
        }
        blocks_with_loss_ += header.dropped_packets ? 1 : 0;
        SamplePiece piece;
        piece.offset = data;
        piece.samples = header.block_samples() - header.overlap;
        piece.file = index;
        piece.block_samples = header.time_first ? 0 : header.block_samples();
        const std::optional<uint64_t> position = header.first_sample();
        if (position) {
            pieces_.append(piece, *position);
        } else {
            loss_is_hidden_ = true;
            pieces_.append_following(piece);
        }
    }

    std::vector<std::string> paths_;
    uint32_t polarisations_ = 0;
    PieceList pieces_;
    GuppiHeader first_;
    std::vector<std::string> remarks_;
    uint64_t blocks_with_loss_ = 0;
    bool loss_is_hidden_ = false;
};

uint32_t take_polarisations(SourceUri& uri) {
    const std::optional<uint32_t> given = take_count(uri, "pols");
    if (given && *given != 1 && *given != 2) {
        throw UsageError("source '" + uri.text() + "' has pols=" + std::to_string(*given) +
                         ": give 1 or 2");
    }
    return given.value_or(0);
}

}  // namespace

std::unique_ptr<Source> open_guppi_source(SourceUri uri, const StreamOptions& options) {
    const RecordingKeys keys = take_recording_keys(uri);
    const uint32_t polarisations = take_polarisations(uri);
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like guppi:capture.0000.raw");
    }
    BlockScan scan(recording_files(uri.path()), polarisations);
    const GuppiHeader& header = scan.first();
    Stream said;
    said.geometry.channels = header.channels * header.polarisations;
    said.geometry.format = SampleFormat::ci16;
    said.geometry.layout = header.time_first ? Layout::sample_major : Layout::channel_major;
    said.rate = header.rate;
    said.epoch_ns = epoch_of(header.start_ns, header.first_sample().value_or(0), header.rate,
                             "'" + scan.paths().front() + "'");
    set_over_range(said, header.coding);
    Recording recording;
    recording.stream = complete_stream(said, keys, options, "'" + uri.path() + "'");
    recording.name = "GUPPI raw '" + uri.path() + "'";
    recording.coding = name_of(header.coding);
    recording.remarks = scan.remarks();
    recording.store = std::make_unique<FileStore>(
        scan.paths(), recording.stream.geometry, header.coding,
        header.time_first ? said.geometry.channels : header.polarisations);
    recording.pieces = scan.take_pieces();
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
