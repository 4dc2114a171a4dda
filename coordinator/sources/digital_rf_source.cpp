#include "coordinator/sources/digital_rf_source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/digital_rf_index.hpp"
#include "coordinator/sources/hdf5_file.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

namespace fs = std::filesystem;

constexpr const char* properties_name = "drf_properties.h5";
constexpr const char* data_name = "/rf_data";
constexpr const char* index_name = "/rf_data_index";

bool is_channel(const fs::path& folder) {
    std::error_code error;
    return fs::is_regular_file(folder / properties_name, error);
}

// Entries of a folder, sorted. Throws UsageError.
std::vector<fs::path> entries_of(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        entries.push_back(it->path());
    }
    if (error) {
        throw UsageError("cannot list '" + folder.string() + "': " + error.message() +
                         "; check the path and its permissions");
    }
    std::sort(entries.begin(), entries.end());
    return entries;
}

std::vector<std::string> channels_below(const fs::path& folder) {
    std::vector<std::string> channels;
    for (const fs::path& entry : entries_of(folder)) {
        if (is_channel(entry)) {
            channels.push_back(entry.filename().string());
        }
    }
    return channels;
}

fs::path channel_folder(const std::string& path, const std::optional<std::string>& wanted) {
    const fs::path folder(path);
    if (is_channel(folder) && !wanted) {
        return folder;
    }
    const std::vector<std::string> channels = channels_below(folder);
    if (wanted) {
        if (std::find(channels.begin(), channels.end(), *wanted) != channels.end()) {
            return folder / *wanted;
        }
    } else if (channels.size() == 1) {
        return folder / channels.front();
    }
    std::string listed;
    for (const std::string& channel : channels) {
        listed += (listed.empty() ? "" : ", ") + channel;
    }
    throw UsageError("'" + path + "' " +
                     (channels.empty()
                          ? "has no " + std::string(properties_name) +
                                " in it or in a folder of it: is it Digital RF 2?"
                          : "has the channels " + listed + ": choose one with the key channel="));
}

std::vector<std::string> data_files(const fs::path& channel) {
    std::vector<std::pair<uint64_t, std::string>> files;
    for (const fs::path& folder : entries_of(channel)) {
        if (!is_digital_rf_folder(folder.filename().string())) {
            continue;
        }
        for (const fs::path& file : entries_of(folder)) {
            if (const auto time_ms = digital_rf_file_time_ms(file.filename().string())) {
                files.emplace_back(*time_ms, file.string());
            }
        }
    }
    if (files.empty()) {
        throw UsageError("'" + channel.string() +
                         "' has no rf@SECONDS.MS.h5 in folders like 2014-03-09T12-30-30: is it the "
                         "channel's folder?");
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> paths;
    for (auto& [time_ms, path] : files) {
        paths.push_back(std::move(path));
    }
    return paths;
}

std::vector<DigitalRfIndexRow> read_index(const Hdf5Samples& samples, const std::string& path) {
    const Hdf5Handle data(H5Dopen2(samples.file.get(), index_name, H5P_DEFAULT));
    const Hdf5Handle space(data ? H5Dget_space(data.get()) : hid_t{H5I_INVALID_HID});
    std::array<hsize_t, 2> shape = {0, 0};
    // Each entry begins a piece of one row at least. Recorders write some per file; the bound keeps
    // a damaged one from taking all memory.
    constexpr hsize_t most_entries = hsize_t{1} << 24;
    const bool well = data && H5Sget_simple_extent_ndims(space.get()) == 2 &&
                      H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr) == 2 &&
                      shape[1] == 2 && shape[0] >= 1 &&
                      shape[0] <= std::min(uint64_t{samples.rows}, uint64_t{most_entries});
    if (!well) {
        throw UsageError(
            "'" + path + "' has " + std::to_string(samples.rows) + " rows and " +
            (data ? "an rf_data_index of " + std::to_string(shape[0]) + " x " +
                        std::to_string(shape[1])
                  : std::string("no rf_data_index")) +
            ": expected 1 to as many entries of 2 numbers (at most 2^24); move it out of the "
            "recording");
    }
    std::vector<uint64_t> numbers(2 * shape[0]);
    const Hdf5Handle type(H5Dget_type(data.get()));
    if (H5Tget_class(type.get()) != H5T_INTEGER ||
        H5Dread(data.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()) < 0) {
        throw UsageError("'" + path +
                         "': rf_data_index cannot be read as whole numbers: the file "
                         "is damaged; move it out of the recording");
    }
    std::vector<DigitalRfIndexRow> index(shape[0]);
    for (size_t i = 0; i < index.size(); ++i) {
        index[i] = {numbers[2 * i], numbers[2 * i + 1]};
    }
    return index;
}

Rational rate_of(const fs::path& channel, bool& is_continuous) {
    const std::string path = (channel / properties_name).string();
    const Hdf5Handle properties = open_hdf5(path);
    const uint64_t numerator = hdf5_attribute(properties, "sample_rate_numerator", path);
    const uint64_t denominator = hdf5_attribute(properties, "sample_rate_denominator", path);
    if (numerator == 0 || denominator == 0) {
        throw UsageError("'" + path + "' has the sample rate " + std::to_string(numerator) + "/" +
                         std::to_string(denominator) + " Hz: it is damaged");
    }
    is_continuous = hdf5_attribute(properties, "is_continuous", path) != 0;
    return Rational::reduced(numerator, denominator);
}

struct FirstFile {
    uint32_t channels = 0;
    bool is_complex = false;
    ValueCoding coding = ValueCoding::int16_little;
    uint64_t first_sample = 0;
};

FirstFile scan(const std::vector<std::string>& paths, PieceList& pieces) {
    FirstFile first;
    for (uint32_t i = 0; i < paths.size(); ++i) {
        const Hdf5Samples samples = open_hdf5_samples(paths[i], data_name);
        const std::vector<DigitalRfIndexRow> index = read_index(samples, paths[i]);
        if (i == 0) {
            first = {samples.channels, samples.is_complex, samples.coding, index.front().sample};
        } else if (samples.channels != first.channels || samples.is_complex != first.is_complex ||
                   samples.coding != first.coding) {
            throw UsageError("'" + paths[i] + "' holds other subchannels or another type than '" +
                             paths.front() + "': give the files of one recording");
        }
        append_digital_rf_file(index, samples.rows, i, paths[i], pieces);
    }
    return first;
}

}  // namespace

bool looks_like_digital_rf(const std::string& folder) {
    return is_channel(folder) || !channels_below(folder).empty();
}

std::unique_ptr<Source> open_digital_rf_source(SourceUri uri, const StreamOptions& options) {
    const RecordingKeys keys = take_recording_keys(uri);
    const std::optional<std::string> wanted = uri.take("channel");
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() +
                         "' names no folder: write it like digital_rf:recording/ch0");
    }
    const fs::path channel = channel_folder(uri.path(), wanted);
    bool is_continuous = false;
    Stream said;
    said.rate = rate_of(channel, is_continuous);
    std::vector<std::string> paths = data_files(channel);
    PieceList pieces(channel.string());
    const FirstFile first = scan(paths, pieces);
    said.geometry.channels = first.channels;
    said.geometry.format = first.is_complex ? SampleFormat::ci16 : SampleFormat::i16;
    said.geometry.layout = Layout::sample_major;
    said.epoch_ns = epoch_of(0, first.first_sample, said.rate, "'" + channel.string() + "'");
    set_over_range(said, first.coding);
    Recording recording;
    recording.stream = complete_stream(said, keys, options, "'" + channel.string() + "'");
    recording.name = "Digital RF channel '" + channel.string() + "'";
    recording.coding = is_8_bit(first.coding) ? "8-bit" : "16-bit";
    recording.remarks.push_back(std::to_string(paths.size()) +
                                (paths.size() == 1 ? " file" : " files"));
    if (is_continuous) {
        recording.remarks.emplace_back(
            "recorded as continuous: where samples were lost, its recorder may have filled in the "
            "lowest value, which counts as over range");
    }
    recording.pieces = pieces.take();
    recording.store =
        std::make_unique<Hdf5Store>(std::move(paths), data_name, recording.stream.geometry);
    return source_of(std::move(recording), keys.replay);
}

}  // namespace echelle
