// What stands in a file, where: docs/recording.md defines it. Datasets and attributes are made
// before the file is written to as SWMR, which forbids to make more. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clients/record/hdf5_handle.hpp"
#include "clients/record/spectrum_row.hpp"
#include "clients/record/spectrum_shape.hpp"

namespace echelle::record {

// One dataset beside the spectra, with a value for each row, or for each channel of each row.
struct Column {
    const char* name;
    hid_t type;  // as it is stored; the same in memory
    bool per_channel;
    const char* units;
    const char* long_name;
    // The values of these rows, one after the other.
    std::vector<std::byte> (*values)(std::span<const SpectrumRow> rows);
};
inline constexpr size_t column_count = 10;
// `time` is the first: its length tells how many rows are whole.
std::array<Column, column_count> columns();

// Of the spectra: rows x channels x all bins.
struct ChunkShape {
    uint64_t rows = 1;
    uint64_t channels = 1;
};
// So that a chunk is full, and is written once, well within the time in which rows must stand in
// the file; and about 256 KiB.
ChunkShape chunk_shape(const SpectrumShape& shape, double row_seconds, double flush_seconds);

// Access properties for every file: the format that SWMR needs.
Hdf5Handle access_properties();

// Writes an empty file over what stands under that name. `description`: the feed's hello, or empty.
void create_layout(const std::string& path, const SpectrumShape& shape,
                   const std::string& description, ChunkShape chunk, unsigned int level);

// The shape of an open file. Throws UsageError when it is not one of ours.
SpectrumShape read_shape(hid_t file, const std::string& path);

struct FileDatasets {
    Hdf5Handle spectra;
    std::array<Hdf5Handle, column_count> columns;
    ChunkShape chunk;
    unsigned int level = 0;
};
FileDatasets open_datasets(hid_t file, const std::string& path);
// Rows that a dataset has.
uint64_t rows_of(const Hdf5Handle& dataset, const std::string& path);

}  // namespace echelle::record
