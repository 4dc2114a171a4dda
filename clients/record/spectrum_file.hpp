// One HDF5 file that rows are appended to, while others may read it (SWMR). Rows are gathered in a
// batch, one chunk high, and written when it is full or when it is time; a chunk that was written
// with fewer rows is written again. Belongs to one thread.
//
// A file under its name is always whole: a new one is made beside it (NAME.part) and moved there.
// The process that writes holds a lock on it, which the kernel gives up when the process ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clients/record/chunk_coder.hpp"
#include "clients/record/file_layout.hpp"
#include "clients/record/spectrum_row.hpp"
#include "common/error.hpp"
#include "common/file_descriptor.hpp"

namespace echelle::record {

// The file is there, with spectra of another shape.
class OtherShape : public UsageError {
  public:
    using UsageError::UsageError;
};

struct RowCounts {
    uint64_t rows = 0;
    uint64_t rows_incomplete = 0;  // channels are missing in it
    uint64_t spectra = 0;

    RowCounts& operator+=(const RowCounts& more) {
        rows += more.rows;
        rows_incomplete += more.rows_incomplete;
        spectra += more.spectra;
        return *this;
    }
};

struct FileTerms {
    unsigned int level = 1;    // of compression
    double flush_seconds = 1;  // in which a row must stand in the file
};

class SpectrumFile {
  public:
    // Makes the file or, where it is there, goes on behind its last row. Throws OtherShape,
    // UsageError (not ours; another process writes it) and RunError.
    SpectrumFile(std::string path, const SpectrumShape& shape, const std::string& description,
                 double row_seconds, const FileTerms& terms);
    ~SpectrumFile();
    SpectrumFile(const SpectrumFile&) = delete;
    SpectrumFile& operator=(const SpectrumFile&) = delete;

    // Throws std::logic_error where is_batch_full().
    void add(SpectrumRow row);
    bool is_batch_full() const { return batch_.size() == datasets_.chunk.rows; }
    size_t unwritten_rows() const { return batch_.size() - written_in_batch_; }
    RowCounts unwritten() const;
    // Bytes that write() takes at most.
    uint64_t bytes_to_write() const;

    // Gives the unwritten rows to the file. Throws RunError: the file is then to be given up, with
    // what was flushed before in it.
    void write();
    // Rows that cannot be written are forgotten; gives the spectra in them.
    uint64_t forget_unwritten();
    // Readers see all rows that were written, and a killed process leaves them. Throws RunError.
    void flush();
    // Writes and closes; the file is then on its disk. Throws RunError.
    void close();
    // After a RunError: nothing is touched any more.
    void abandon();

    const std::string& path() const { return path_; }
    uint64_t rows() const { return rows_; }  // written
    uint64_t rows_before() const { return rows_before_; }
    uint64_t bytes() const;
    bool was_left_open() const { return was_left_open_; }  // by a process that was killed
    // Of the first row, written or not. There is one.
    int64_t first_time_ns() const { return first_time_ns_; }
    bool is_empty() const { return rows_ == 0 && batch_.empty(); }

  private:
    void lock(const std::string& path);
    void create(const SpectrumShape& shape, const std::string& description, double row_seconds,
                const FileTerms& terms);
    void go_on(const SpectrumShape& shape);
    void open_for_writing(const std::string& at);
    void load_batch();
    void write_columns(size_t from);
    void write_chunks();
    void fill_chunk(uint64_t first_channel);

    std::string path_;
    FileDescriptor lock_;
    Hdf5Handle file_;
    FileDatasets datasets_;
    size_t channels_;
    size_t bins_;
    ChunkCoder coder_{0};
    std::vector<SpectrumRow> batch_;  // rows of the chunk that is not full; of the old ones, values
    size_t written_in_batch_ = 0;
    std::vector<float> chunk_;
    uint64_t rows_ = 0;
    uint64_t rows_before_ = 0;
    uint32_t runs_before_ = 0;
    int64_t first_time_ns_ = 0;
    bool was_left_open_ = false;
};

}  // namespace echelle::record
