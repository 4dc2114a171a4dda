#include "clients/record/file_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <hdf5_hl.h>

#include "common/error.hpp"

namespace echelle::record {
namespace {

constexpr uint64_t chunk_bytes_wanted = uint64_t{256} << 10;
constexpr uint64_t batch_bytes_most = uint64_t{32} << 20;
constexpr uint64_t chunk_rows_most = 64;
constexpr size_t description_bytes_most = 60'000;  // 64 KiB is the most of an attribute
constexpr const char* format_name = "echelle spectra";
constexpr uint32_t format_version = 1;

template <auto Field>
std::vector<std::byte> of_row(std::span<const SpectrumRow> rows) {
    std::vector<std::byte> bytes;
    for (const SpectrumRow& row : rows) {
        const auto value = std::as_bytes(std::span(&(row.*Field), 1));
        bytes.insert(bytes.end(), value.begin(), value.end());
    }
    return bytes;
}

template <auto Field>
std::vector<std::byte> of_channels(std::span<const SpectrumRow> rows) {
    std::vector<std::byte> bytes;
    for (const SpectrumRow& row : rows) {
        const auto values = std::as_bytes(std::span(row.*Field));
        bytes.insert(bytes.end(), values.begin(), values.end());
    }
    return bytes;
}

void write_attribute(hid_t object, const char* name, hid_t type, hid_t space, const void* value,
                     const std::string& path) {
    const Hdf5Handle attribute(
        need(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "describe", path));
    need(H5Awrite(attribute.get(), type, value), "describe", path);
}

void write_text(hid_t object, const char* name, const std::string& value, const std::string& path) {
    const Hdf5Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    const Hdf5Handle space(H5Screate(H5S_SCALAR));
    const char* text = value.c_str();
    write_attribute(object, name, type.get(), space.get(), &text, path);
}

template <typename Value>
void write_number(hid_t object, const char* name, hid_t type, Value value,
                  const std::string& path) {
    const Hdf5Handle space(H5Screate(H5S_SCALAR));
    write_attribute(object, name, type, space.get(), &value, path);
}

UsageError not_ours(const std::string& path) {
    return UsageError(path + " is not a file of echelle-record: name another one");
}

std::string read_text(hid_t object, const char* name, const std::string& path) {
    const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
    const Hdf5Handle type(attribute ? H5Aget_type(attribute.get()) : hid_t{H5I_INVALID_HID});
    const Hdf5Handle space(attribute ? H5Aget_space(attribute.get()) : hid_t{H5I_INVALID_HID});
    char* text = nullptr;
    if (!space || H5Sget_simple_extent_npoints(space.get()) != 1 ||
        H5Tis_variable_str(type.get()) <= 0 || H5Aread(attribute.get(), type.get(), &text) < 0 ||
        text == nullptr) {
        throw not_ours(path);
    }
    std::string value = text;
    H5free_memory(text);
    return value;
}

template <typename Value>
Value read_number(hid_t object, const char* name, hid_t type, const std::string& path) {
    const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
    const Hdf5Handle space(attribute ? H5Aget_space(attribute.get()) : hid_t{H5I_INVALID_HID});
    Value value{};
    if (!space || H5Sget_simple_extent_npoints(space.get()) != 1 ||
        H5Aread(attribute.get(), type, &value) < 0) {
        throw not_ours(path);
    }
    return value;
}

Hdf5Handle open_dataset(hid_t file, const char* name, const std::string& path) {
    Hdf5Handle dataset(H5Dopen2(file, name, H5P_DEFAULT));
    if (!dataset) {
        throw not_ours(path);
    }
    return dataset;
}

std::vector<hsize_t> extent_of(const Hdf5Handle& dataset, size_t dimensions,
                               const std::string& path) {
    const Hdf5Handle space(need(H5Dget_space(dataset.get()), "read", path));
    if (H5Sget_simple_extent_ndims(space.get()) != static_cast<int>(dimensions)) {
        throw not_ours(path);
    }
    std::vector<hsize_t> extent(dimensions);
    H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
    return extent;
}

// The values of an axis; its dataset is a dimension scale.
template <typename Value>
Hdf5Handle write_axis(hid_t file, const char* name, hid_t type, const std::vector<Value>& values,
                      const char* units, const char* long_name, const std::string& path) {
    const hsize_t extent = values.size();
    const Hdf5Handle space(need(H5Screate_simple(1, &extent, nullptr), "make", path));
    Hdf5Handle dataset(
        need(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
             "make", path));
    need(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "write",
         path);
    write_text(dataset.get(), "units", units, path);
    write_text(dataset.get(), "long_name", long_name, path);
    need(H5DSset_scale(dataset.get(), name), "make", path);
    return dataset;
}

// A dataset without rows that can grow.
Hdf5Handle make_growing(hid_t file, const char* name, hid_t type, std::vector<hsize_t> extent,
                        const std::vector<hsize_t>& chunk, unsigned int level,
                        const std::string& path) {
    std::vector<hsize_t> most = extent;
    extent[0] = 0;
    most[0] = H5S_UNLIMITED;
    const int dimensions = static_cast<int>(extent.size());
    const Hdf5Handle space(
        need(H5Screate_simple(dimensions, extent.data(), most.data()), "make", path));
    const Hdf5Handle properties(need(H5Pcreate(H5P_DATASET_CREATE), "make", path));
    need(H5Pset_chunk(properties.get(), dimensions, chunk.data()), "make", path);
    if (H5Tget_class(type) == H5T_FLOAT) {
        const float missing = std::numeric_limits<float>::quiet_NaN();
        need(H5Pset_fill_value(properties.get(), H5T_NATIVE_FLOAT, &missing), "make", path);
    }
    if (level > 0) {
        need(H5Pset_shuffle(properties.get()), "make", path);
        need(H5Pset_deflate(properties.get(), level), "make", path);
    }
    return Hdf5Handle(
        need(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
             "make", path));
}

void describe_file(hid_t file, const SpectrumShape& shape, const std::string& description,
                   const std::string& path) {
    const double rate =
        static_cast<double>(shape.rate_numerator) / static_cast<double>(shape.rate_denominator);
    write_text(file, "format", format_name, path);
    write_number(file, "format_version", H5T_NATIVE_UINT32, format_version, path);
    write_text(file, "creator", std::string("echelle-record ") + ECHELLE_VERSION, path);
    write_number(file, "sample_rate_hz", H5T_NATIVE_DOUBLE, rate, path);
    write_number(file, "sample_rate_numerator", H5T_NATIVE_UINT64, shape.rate_numerator, path);
    write_number(file, "sample_rate_denominator", H5T_NATIVE_UINT64, shape.rate_denominator, path);
    write_number(file, "first_bin_hz", H5T_NATIVE_DOUBLE, shape.first_bin_hz, path);
    write_number(file, "bin_spacing_hz", H5T_NATIVE_DOUBLE, shape.bin_spacing_hz, path);
    write_number(file, "nperseg", H5T_NATIVE_UINT32, shape.nperseg, path);
    write_number(file, "noverlap", H5T_NATIVE_UINT32, shape.noverlap, path);
    write_text(file, "window", shape.window, path);
    write_text(file, "scaling", shape.scaling, path);
    write_text(file, "detrend", shape.detrend, path);
    write_text(file, "average", shape.average, path);
    if (!description.empty() && description.size() <= description_bytes_most) {
        write_text(file, "hello", description, path);
    }
}

// As CF conventions state flags, so that readers which know them show their names.
void describe_flags(hid_t flags, const std::string& path) {
    constexpr std::array<uint16_t, 7> masks{1, 2, 4, 8, 16, 32, flag_missing};
    const hsize_t count = masks.size();
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr));
    write_attribute(flags, "flag_masks", H5T_NATIVE_UINT16, space.get(), masks.data(), path);
    write_text(flags, "flag_meanings",
               "gap_before incomplete over_range two_sided volts partial missing", path);
}

std::vector<double> frequencies(const SpectrumShape& shape) {
    std::vector<double> values(shape.bins);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = shape.first_bin_hz + static_cast<double>(i) * shape.bin_spacing_hz;
    }
    return values;
}

}  // namespace

std::array<Column, column_count> columns() {
    using Row = SpectrumRow;
    return {{
        {"time", H5T_NATIVE_INT64, false, "nanoseconds since 1970-01-01 00:00:00",
         "time of the first sample", of_row<&Row::time_ns>},
        {"first_sample", H5T_NATIVE_UINT64, false, "1", "index of the first sample in the stream",
         of_row<&Row::first_sample>},
        {"run", H5T_NATIVE_UINT32, false, "1", "counts the interruptions of this file",
         of_row<&Row::run>},
        {"segments_expected", H5T_NATIVE_UINT32, false, "1", "segments without loss",
         of_row<&Row::segments_expected>},
        {"sequence", H5T_NATIVE_UINT64, true, "1", "number of the spectrum in its channel",
         of_channels<&Row::sequence>},
        {"flags", H5T_NATIVE_UINT16, true, "1", "what is special about the spectrum",
         of_channels<&Row::flags>},
        {"segments_averaged", H5T_NATIVE_UINT32, true, "1", "segments in the spectrum",
         of_channels<&Row::segments_averaged>},
        {"over_range_count", H5T_NATIVE_UINT32, true, "1", "samples at the converter's limits",
         of_channels<&Row::over_range_count>},
        {"mean", H5T_NATIVE_FLOAT, true, nullptr, "mean of the samples", of_channels<&Row::mean>},
        {"rms", H5T_NATIVE_FLOAT, true, nullptr, "root mean square of the samples",
         of_channels<&Row::rms>},
    }};
}

ChunkShape chunk_shape(const SpectrumShape& shape, double row_seconds, double flush_seconds) {
    const uint64_t spectrum_bytes = uint64_t{4} * shape.bins;
    const uint64_t row_bytes = spectrum_bytes * shape.channels.size();
    const double in_time = row_seconds > 0 ? flush_seconds / 2 / row_seconds : 1;
    const auto rows = static_cast<uint64_t>(
        std::clamp(std::floor(in_time), 1.0, static_cast<double>(chunk_rows_most)));
    ChunkShape chunk;
    chunk.rows = std::clamp<uint64_t>(rows, 1, std::max<uint64_t>(1, batch_bytes_most / row_bytes));
    chunk.channels = std::clamp<uint64_t>(chunk_bytes_wanted / (spectrum_bytes * chunk.rows), 1,
                                          shape.channels.size());
    return chunk;
}

Hdf5Handle access_properties() {
    Hdf5Handle properties(H5Pcreate(H5P_FILE_ACCESS));
    if (!properties ||
        H5Pset_libver_bounds(properties.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) < 0) {
        throw RunError("the HDF5 library cannot be used: " + hdf5_cause());
    }
    return properties;
}

void create_layout(const std::string& path, const SpectrumShape& shape,
                   const std::string& description, ChunkShape chunk, unsigned int level) {
    const Hdf5Handle access = access_properties();
    Hdf5Handle file(
        need(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "make", path));
    describe_file(file.get(), shape, description, path);
    const hsize_t channels = shape.channels.size();
    const Hdf5Handle frequency = write_axis(file.get(), "frequency", H5T_NATIVE_DOUBLE,
                                            frequencies(shape), "Hz", "frequency of the bin", path);
    const Hdf5Handle channel = write_axis(file.get(), "channel", H5T_NATIVE_UINT32, shape.channels,
                                          "1", "number of the channel", path);
    const Hdf5Handle spectra =
        make_growing(file.get(), "spectra", H5T_NATIVE_FLOAT, {0, channels, shape.bins},
                     {chunk.rows, chunk.channels, shape.bins}, level, path);
    write_text(spectra.get(), "units", shape.unit, path);
    write_text(spectra.get(), "long_name", "power spectra", path);
    Hdf5Handle time;
    for (const Column& column : columns()) {
        const std::string unit = shape.unit.starts_with('V') ? "V" : "counts";
        constexpr hsize_t rows_1d = 1024;
        const hsize_t rows_2d = std::clamp<hsize_t>(8192 / channels, 1, rows_1d);
        Hdf5Handle dataset =
            column.per_channel
                ? make_growing(file.get(), column.name, column.type, {0, channels},
                               {rows_2d, channels}, 0, path)
                : make_growing(file.get(), column.name, column.type, {0}, {rows_1d}, 0, path);
        write_text(dataset.get(), "units", column.units == nullptr ? unit : column.units, path);
        write_text(dataset.get(), "long_name", column.long_name, path);
        if (std::strcmp(column.name, "flags") == 0) {
            describe_flags(dataset.get(), path);
        }
        if (!time) {
            time = std::move(dataset);
            need(H5DSset_scale(time.get(), "time"), "make", path);
            continue;
        }
        need(H5DSattach_scale(dataset.get(), time.get(), 0), "make", path);
        if (column.per_channel) {
            need(H5DSattach_scale(dataset.get(), channel.get(), 1), "make", path);
        }
    }
    need(H5DSattach_scale(spectra.get(), time.get(), 0), "make", path);
    need(H5DSattach_scale(spectra.get(), channel.get(), 1), "make", path);
    need(H5DSattach_scale(spectra.get(), frequency.get(), 2), "make", path);
    need(H5Fflush(file.get(), H5F_SCOPE_LOCAL), "write", path);
}

SpectrumShape read_shape(hid_t file, const std::string& path) {
    if (read_text(file, "format", path) != format_name) {
        throw not_ours(path);
    }
    const auto version = read_number<uint32_t>(file, "format_version", H5T_NATIVE_UINT32, path);
    if (version != format_version) {
        throw UsageError(path + " has version " + std::to_string(version) +
                         " of the layout, of which this program knows only 1: name another file");
    }
    SpectrumShape shape;
    const Hdf5Handle spectra = open_dataset(file, "spectra", path);
    const Hdf5Handle channel = open_dataset(file, "channel", path);
    const auto extent = extent_of(spectra, 3, path);
    shape.channels.resize(extent_of(channel, 1, path)[0]);
    if (shape.channels.empty() || extent[1] != shape.channels.size()) {
        throw not_ours(path);
    }
    need(H5Dread(channel.get(), H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                 shape.channels.data()),
         "read", path);
    shape.bins = static_cast<uint32_t>(extent[2]);
    shape.first_bin_hz = read_number<double>(file, "first_bin_hz", H5T_NATIVE_DOUBLE, path);
    shape.bin_spacing_hz = read_number<double>(file, "bin_spacing_hz", H5T_NATIVE_DOUBLE, path);
    shape.rate_numerator =
        read_number<uint64_t>(file, "sample_rate_numerator", H5T_NATIVE_UINT64, path);
    shape.rate_denominator =
        read_number<uint64_t>(file, "sample_rate_denominator", H5T_NATIVE_UINT64, path);
    shape.nperseg = read_number<uint32_t>(file, "nperseg", H5T_NATIVE_UINT32, path);
    shape.noverlap = read_number<uint32_t>(file, "noverlap", H5T_NATIVE_UINT32, path);
    shape.window = read_text(file, "window", path);
    shape.scaling = read_text(file, "scaling", path);
    shape.detrend = read_text(file, "detrend", path);
    shape.average = read_text(file, "average", path);
    shape.unit = read_text(spectra.get(), "units", path);
    return shape;
}

FileDatasets open_datasets(hid_t file, const std::string& path) {
    FileDatasets datasets;
    datasets.spectra = open_dataset(file, "spectra", path);
    size_t number = 0;
    for (const Column& column : columns()) {
        datasets.columns[number++] = open_dataset(file, column.name, path);
    }
    const Hdf5Handle properties(need(H5Dget_create_plist(datasets.spectra.get()), "read", path));
    std::array<hsize_t, 3> chunk{};
    if (H5Pget_chunk(properties.get(), 3, chunk.data()) != 3 ||
        chunk[2] != extent_of(datasets.spectra, 3, path)[2]) {
        throw not_ours(path);
    }
    datasets.chunk = {chunk[0], chunk[1]};
    const int filters = H5Pget_nfilters(properties.get());
    if (filters > 0) {
        unsigned int level = 0;
        size_t values = 1;
        if (filters != 2 || H5Pget_filter_by_id2(properties.get(), H5Z_FILTER_DEFLATE, nullptr,
                                                 &values, &level, 0, nullptr, nullptr) < 0) {
            throw not_ours(path);
        }
        datasets.level = level;
    }
    return datasets;
}

uint64_t rows_of(const Hdf5Handle& dataset, const std::string& path) {
    const Hdf5Handle space(need(H5Dget_space(dataset.get()), "read", path));
    std::array<hsize_t, H5S_MAX_RANK> extent{};
    need(H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr), "read", path);
    return extent[0];
}

}  // namespace echelle::record
