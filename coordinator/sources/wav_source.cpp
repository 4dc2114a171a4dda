#include "coordinator/sources/wav_source.hpp"

#include <optional>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/riff_sizes.hpp"
#include "coordinator/sources/sound_file.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

std::optional<RiffSizes> sizes_of(const RegularFile& file) {
    const auto read = [&file](uint64_t offset, std::span<std::byte> bytes) {
        const uint64_t there = offset < file.size() ? file.size() - offset : 0;
        bytes = bytes.first(std::min<uint64_t>(bytes.size(), there));
        file.read(offset, bytes);
        return bytes.size();
    };
    try {
        return read_riff_sizes(read, file.size());
    } catch (const RunError& error) {
        throw UsageError(error.what());
    }
}

bool is_8_bit(const SoundFile& file) {
    return file.encoding() == SF_FORMAT_PCM_S8 || file.encoding() == SF_FORMAT_PCM_U8;
}

// The way to samples that the header hides.
std::string raw_uri(const SoundFile& file, const RiffSizes& sizes) {
    return "--source 'raw:" + file.path() + "?channels=" + std::to_string(file.channels()) +
           "&rate=" + std::to_string(file.rate()) + "&format=" + (is_8_bit(file) ? "u8" : "i16") +
           "&offset=" + std::to_string(sizes.data_offset) + "&tail=drop'";
}

void check_encoding(const SoundFile& file) {
    if (file.encoding() != SF_FORMAT_PCM_16 && !is_8_bit(file)) {
        throw UsageError("'" + file.path() + "' holds " + file.encoding_name() +
                         " values, which 16 bits don't hold exactly: convert it with sox IN.wav -b "
                         "16 OUT.wav");
    }
    if (file.rate() < 1) {
        throw UsageError("'" + file.path() + "' has the sample rate " +
                         std::to_string(file.rate()) + " Hz: its header is damaged");
    }
}

// Refuses a header that hides samples.
void check_sizes(const SoundFile& file, const RiffSizes& sizes) {
    const uint64_t unit = uint64_t{file.channels()} * (is_8_bit(file) ? 1 : 2);
    const bool data_empty = sizes.data_bytes == 0 && file.frames() == 0;
    if (sizes.unaccounted() < unit) {
        return;
    }
    throw UsageError("'" + file.path() + "' says that it has " + std::to_string(sizes.data_bytes) +
                     " bytes of samples, but " + std::to_string(sizes.unaccounted()) +
                     " bytes behind them belong to nothing: " +
                     (data_empty ? "its recorder didn't finish it"
                      : sizes.unaccounted() >= uint64_t{1} << 32U
                          ? "its size has wrapped at 4 GiB, where RF64 "
                            "must be used"
                          : "its recorder didn't finish it, or "
                            "something was appended") +
                     "; read what lies there with " + raw_uri(file, sizes) +
                     ", or cut it off at byte " + std::to_string(sizes.accounted_end));
}

// I/Q pairs are a convention of the receiver's, not of the format: the user has to say.
SampleFormat take_format(SourceUri& uri, const StreamOptions& options, uint32_t channels) {
    const std::optional<std::string> key = uri.take("format");
    const SampleFormat format =
        key ? parse_sample_format(*key) : options.format.value_or(SampleFormat::i16);
    if (format == SampleFormat::ci16 && channels % 2 != 0) {
        throw UsageError("source '" + uri.text() + "' has " + std::to_string(channels) +
                         " channels, which don't make pairs of re and im: leave format=ci16 out");
    }
    return format;
}

std::vector<std::string> remarks_of(const SoundFile& file, const RiffSizes& sizes) {
    std::vector<std::string> remarks;
    if (sizes.data_open) {
        remarks.emplace_back("its header leaves its length open: read up to its end");
    }
    const uint64_t unit = uint64_t{file.channels()} * (is_8_bit(file) ? 1 : 2);
    const uint64_t there = sizes.file_bytes - sizes.data_offset;
    if (sizes.missing() > 0) {
        remarks.push_back("cut short: " + std::to_string(sizes.missing()) + " of " +
                          std::to_string(sizes.data_bytes) + " bytes are not there" +
                          (there % unit != 0 ? ", and the last " + std::to_string(there % unit) +
                                                   " are less than a sample"
                                             : ""));
    }
    return remarks;
}

}  // namespace

std::unique_ptr<Source> open_wav_source(SourceUri uri, const StreamOptions& options) {
    const RecordingKeys keys = take_recording_keys(uri);
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no file: write it like wav:capture.wav");
    }
    const RegularFile plain(uri.path());  // refuses directories, devices and what is not there
    SoundFile file(uri.path());
    const SampleFormat format = take_format(uri, options, file.channels());
    uri.refuse_unknown_keys();
    check_encoding(file);
    const std::optional<RiffSizes> sizes = sizes_of(plain);
    Recording recording;
    if (sizes) {
        check_sizes(file, *sizes);
        recording.remarks = remarks_of(file, *sizes);
    }
    if (file.frames() == 0) {
        throw UsageError("'" + file.path() + "' holds no samples: give a file with data");
    }
    Stream said;
    said.geometry.format = format;
    said.geometry.channels = file.channels() / (format == SampleFormat::ci16 ? 2 : 1);
    said.geometry.layout = Layout::sample_major;
    said.rate = {static_cast<uint64_t>(file.rate()), 1};
    const bool narrow = is_8_bit(file);
    set_over_range(said, narrow ? ValueCoding::int8 : ValueCoding::int16_little);
    StreamOptions others = options;
    others.format.reset();  // settled above
    recording.stream = complete_stream(said, keys, others, "'" + file.path() + "'");
    PieceList pieces(file.path());
    pieces.append({.samples = file.frames()}, 0);
    recording.pieces = pieces.take();
    recording.name = file.type_name() + " file '" + file.path() + "'";
    recording.coding = file.encoding_name();
    recording.store = std::make_unique<SoundStore>(std::move(file), narrow);
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
