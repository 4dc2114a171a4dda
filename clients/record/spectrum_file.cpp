#include "clients/record/spectrum_file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/record/file_consistency.hpp"
#include "common/clock.hpp"

namespace echelle::record {
namespace {

// Rows x the rest, of a dataset's space.
Hdf5Handle select_rows(const Hdf5Handle& dataset, uint64_t first, uint64_t count,
                       const std::string& path) {
    Hdf5Handle space(need(H5Dget_space(dataset.get()), "write", path));
    std::array<hsize_t, H5S_MAX_RANK> start{};
    std::array<hsize_t, H5S_MAX_RANK> extent{};
    H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
    start[0] = first;
    extent[0] = count;
    need(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(),
                             nullptr),
         "write", path);
    return space;
}

Hdf5Handle plain_space(uint64_t values) {
    const hsize_t extent = values;
    return Hdf5Handle(H5Screate_simple(1, &extent, nullptr));
}

void set_rows(const Hdf5Handle& dataset, uint64_t rows, const std::string& path) {
    const Hdf5Handle space(need(H5Dget_space(dataset.get()), "write", path));
    std::array<hsize_t, H5S_MAX_RANK> extent{};
    H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
    if (extent[0] != rows) {
        extent[0] = rows;
        need(H5Dset_extent(dataset.get(), extent.data()), "write", path);
    }
}

// The last value of a column in a file with rows.
template <typename Value>
Value value_at(const Hdf5Handle& dataset, hid_t type, uint64_t row, const std::string& path) {
    Value value{};
    const Hdf5Handle from = select_rows(dataset, row, 1, path);
    const Hdf5Handle to = plain_space(1);
    need(H5Dread(dataset.get(), type, to.get(), from.get(), H5P_DEFAULT, &value), "read", path);
    return value;
}

// A reader locks the file, too, at the moment when it opens it: tried again for a while.
Hdf5Handle open_in_time(const std::string& path, unsigned int mode) {
    constexpr int64_t patience_ns = 2'000'000'000;
    constexpr std::chrono::milliseconds pause(10);
    const Hdf5Handle access = access_properties();
    const int64_t begun_ns = monotonic_ns();
    for (;;) {
        Hdf5Handle file(H5Fopen(path.c_str(), mode, access.get()));
        if (file) {
            return file;
        }
        const std::string cause = hdf5_cause();
        if (cause != errno_text(EAGAIN) || monotonic_ns() - begun_ns > patience_ns) {
            throw UsageError("cannot open " + path + " to go on: " + cause +
                             "; close it elsewhere, or name another file");
        }
        std::this_thread::sleep_for(pause);
    }
}

constexpr size_t time_column = 0;
constexpr size_t run_column = 2;

}  // namespace

SpectrumFile::SpectrumFile(std::string path, const SpectrumShape& shape,
                           const std::string& description, double row_seconds,
                           const FileTerms& terms)
    : path_(std::move(path)), channels_(shape.channels.size()), bins_(shape.bins) {
    lock_ = FileDescriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!lock_ && errno != ENOENT) {
        throw UsageError("cannot write " + path_ + ": " + errno_text());
    }
    if (lock_) {
        lock(path_);
        go_on(shape);
        open_for_writing(path_);
    } else {
        create(shape, description, row_seconds, terms);
    }
}

SpectrumFile::~SpectrumFile() {
    // In this order: datasets, then their file, then the lock.
    datasets_ = {};
    file_.close();
}

// An open file description's lock: the library opens and closes the file by itself, and its own
// lock (flock) is another kind, which it takes only while it opens.
void SpectrumFile::lock(const std::string& path) {
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    struct stat here {};
    struct stat there {};
    if (fstat(lock_.get(), &here) != 0 || !S_ISREG(here.st_mode)) {
        throw UsageError("cannot write " + path + ": it is not a regular file; name another one");
    }
    const bool is_locked = fcntl(lock_.get(), F_OFD_SETLK, &wanted) == 0;
    if (!is_locked && errno != EAGAIN && errno != EACCES) {
        throw UsageError("cannot lock " + path + ": " + errno_text() +
                         "; name a file on a file system that has locks");
    }
    if (!is_locked || stat(path.c_str(), &there) != 0 || here.st_ino != there.st_ino ||
        here.st_dev != there.st_dev) {
        throw UsageError("another echelle-record writes " + path_ +
                         ": stop it, or name another file");
    }
}

void SpectrumFile::create(const SpectrumShape& shape, const std::string& description,
                          double row_seconds, const FileTerms& terms) {
    const std::string part = path_ + ".part";
    lock_ = FileDescriptor(open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock_) {
        throw UsageError("cannot make " + part + ": " + errno_text() +
                         "; name a file in a directory that you can write");
    }
    lock(part);
    try {
        create_layout(part, shape, description,
                      chunk_shape(shape, row_seconds, terms.flush_seconds), terms.level);
        // Before it has its name: somebody who opens a file that is not marked as being written
        // keeps the library's lock on it, and would keep us out of our own file.
        open_for_writing(part);
        if (renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
            return;
        }
        const int error = errno;
        // Not every file system can refuse to replace.
        if (error != EINVAL || access(path_.c_str(), F_OK) == 0 ||
            rename(part.c_str(), path_.c_str()) != 0) {
            throw UsageError("cannot give " + part + " its name: " + errno_text(error));
        }
    } catch (...) {
        datasets_ = {};
        file_.close();
        unlink(part.c_str());
        throw;
    }
}

// Makes an old file ready: closed, and with the same number of rows in every dataset.
void SpectrumFile::go_on(const SpectrumShape& shape) {
    const Consistency found = clear_open_mark(lock_.get(), path_);
    if (found == Consistency::other_kind || found == Consistency::damaged) {
        throw UsageError(path_ +
                         (found == Consistency::damaged
                              ? " is damaged: the checksum of its superblock is wrong"
                              : " is not a file of echelle-record") +
                         "; name another one");
    }
    was_left_open_ = found == Consistency::repaired;
    Hdf5Handle file = open_in_time(path_, H5F_ACC_RDWR);
    const std::string other = difference(read_shape(file.get(), path_), shape);
    if (!other.empty()) {
        throw OtherShape(path_ + " has spectra of another shape: " + other + "; name another file");
    }
    FileDatasets datasets = open_datasets(file.get(), path_);
    uint64_t rows = rows_of(datasets.spectra, path_);
    for (const Hdf5Handle& column : datasets.columns) {
        rows = std::min(rows, rows_of(column, path_));
    }
    // Of a killed process: what it had not flushed.
    set_rows(datasets.spectra, rows, path_);
    for (const Hdf5Handle& column : datasets.columns) {
        set_rows(column, rows, path_);
    }
    rows_ = rows_before_ = rows;
    if (rows > 0) {
        first_time_ns_ =
            value_at<int64_t>(datasets.columns[time_column], H5T_NATIVE_INT64, 0, path_);
        runs_before_ = 1 + value_at<uint32_t>(datasets.columns[run_column], H5T_NATIVE_UINT32,
                                              rows - 1, path_);
    }
    datasets = {};
    if (!file.close()) {
        throw RunError("cannot write " + path_ + ": " + hdf5_cause());
    }
}

void SpectrumFile::open_for_writing(const std::string& at) {
    file_ = open_in_time(at, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE);
    datasets_ = open_datasets(file_.get(), path_);
    coder_ = ChunkCoder(datasets_.level);
    load_batch();
}

// The rows of a chunk that is not full: it will be written again.
void SpectrumFile::load_batch() {
    const uint64_t first = rows_ - rows_ % datasets_.chunk.rows;
    for (uint64_t row = first; row < rows_; ++row) {
        SpectrumRow old(0, 0);
        old.values.resize(channels_ * bins_);
        const Hdf5Handle from = select_rows(datasets_.spectra, row, 1, path_);
        const Hdf5Handle to = plain_space(old.values.size());
        need(H5Dread(datasets_.spectra.get(), H5T_NATIVE_FLOAT, to.get(), from.get(), H5P_DEFAULT,
                     old.values.data()),
             "read", path_);
        batch_.push_back(std::move(old));
    }
    written_in_batch_ = batch_.size();
}

void SpectrumFile::add(SpectrumRow row) {
    if (is_batch_full()) {
        throw std::logic_error("the batch is full");
    }
    if (is_empty()) {
        first_time_ns_ = row.time_ns;
    }
    row.run += runs_before_;
    batch_.push_back(std::move(row));
}

uint64_t SpectrumFile::bytes_to_write() const {
    const uint64_t rounded = (channels_ + datasets_.chunk.channels - 1) / datasets_.chunk.channels *
                             datasets_.chunk.channels;
    uint64_t bytes = datasets_.chunk.rows * rounded * bins_ * sizeof(float);
    for (size_t i = written_in_batch_; i < batch_.size(); ++i) {
        bytes += batch_[i].bytes() - batch_[i].values.size() * sizeof(float);
    }
    return bytes;
}

void SpectrumFile::write() {
    if (unwritten_rows() == 0) {
        return;
    }
    const size_t from = written_in_batch_;
    set_rows(datasets_.spectra, rows_ + batch_.size() - from, path_);
    write_chunks();
    write_columns(from);
    rows_ += batch_.size() - from;
    written_in_batch_ = batch_.size();
    if (is_batch_full()) {
        batch_.clear();
        written_in_batch_ = 0;
    }
}

void SpectrumFile::fill_chunk(uint64_t first_channel) {
    const auto [rows, chunk_channels] = datasets_.chunk;
    chunk_.assign(rows * chunk_channels * bins_, std::numeric_limits<float>::quiet_NaN());
    const size_t count = std::min<size_t>(chunk_channels, channels_ - first_channel) * bins_;
    for (size_t row = 0; row < batch_.size(); ++row) {
        const float* from = batch_[row].values.data() + first_channel * bins_;
        std::copy(from, from + count, chunk_.data() + row * chunk_channels * bins_);
    }
}

void SpectrumFile::write_chunks() {
    const uint64_t first_row = rows_ - rows_ % datasets_.chunk.rows;
    for (uint64_t channel = 0; channel < channels_; channel += datasets_.chunk.channels) {
        fill_chunk(channel);
        const CodedChunk coded = coder_.encode(chunk_);
        const std::array<hsize_t, 3> at{first_row, channel, 0};
        need(H5Dwrite_chunk(datasets_.spectra.get(), H5P_DEFAULT, coded.filter_mask, at.data(),
                            coded.bytes.size(), coded.bytes.data()),
             "write", path_);
    }
}

void SpectrumFile::write_columns(size_t from) {
    const std::span<const SpectrumRow> rows = std::span(batch_).subspan(from);
    const auto all = columns();
    for (size_t number = column_count; number-- > 0;) {  // `time` last: see flush()
        const Column& column = all[number];
        const Hdf5Handle& dataset = datasets_.columns[number];
        set_rows(dataset, rows_ + rows.size(), path_);
        const Hdf5Handle to = select_rows(dataset, rows_, rows.size(), path_);
        const Hdf5Handle values =
            plain_space(rows.size() * (column.per_channel ? channels_ : size_t{1}));
        need(H5Dwrite(dataset.get(), column.type, values.get(), to.get(), H5P_DEFAULT,
                      column.values(rows).data()),
             "write", path_);
    }
}

RowCounts SpectrumFile::unwritten() const {
    RowCounts found;
    for (size_t i = written_in_batch_; i < batch_.size(); ++i) {
        found.rows += 1;
        found.rows_incomplete += batch_[i].present < channels_ ? 1 : 0;
        found.spectra += batch_[i].present;
    }
    return found;
}

uint64_t SpectrumFile::forget_unwritten() {
    const uint64_t spectra = unwritten().spectra;
    batch_.resize(written_in_batch_);
    return spectra;
}

// `time` last: a row that stands in it stands in all.
void SpectrumFile::flush() {
    need(H5Dflush(datasets_.spectra.get()), "write", path_);
    for (size_t i = column_count; i-- > 0;) {
        need(H5Dflush(datasets_.columns[i].get()), "write", path_);
    }
    need(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), "write", path_);
}

void SpectrumFile::close() {
    write();
    flush();
    datasets_ = {};
    if (!file_.close()) {
        throw RunError("cannot write " + path_ + ": " + hdf5_cause());
    }
    if (fsync(lock_.get()) != 0) {
        throw RunError("cannot write " + path_ + ": " + errno_text());
    }
}

void SpectrumFile::abandon() {
    datasets_.spectra.abandon();
    for (Hdf5Handle& column : datasets_.columns) {
        column.abandon();
    }
    file_.abandon();
}

uint64_t SpectrumFile::bytes() const {
    struct stat status {};
    return fstat(lock_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace echelle::record
