#include "clients/record/row_writer.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

#include <sys/statvfs.h>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle::record {
namespace {

constexpr std::chrono::milliseconds look(50);
// Room that the file's own structure may take beside the rows.
constexpr uint64_t reserve_bytes = uint64_t{4} << 20;

}  // namespace

RowWriter::RowWriter(WriterTerms terms, SpectrumShape shape, std::string description,
                     double row_seconds, WrittenBooks& books)
    : terms_(std::move(terms)),
      shape_(std::move(shape)),
      description_(std::move(description)),
      row_seconds_(row_seconds),
      books_(books) {
    file_number_ = terms_.roll.is_rolling() ? last_rolling_number(terms_.path) : 0;
    open_file();
    thread_ = std::thread([this] { run(); });
}

RowWriter::~RowWriter() {
    try {
        finish();
    } catch (const std::exception&) {
        // Told by whoever called finish().
    }
}

bool RowWriter::offer(SpectrumRow& row) {
    const std::lock_guard guard(mutex_);
    if (failure_ || (!queue_.empty() && queued_bytes_ + row.bytes() > terms_.queue_bytes)) {
        return false;
    }
    queued_bytes_ += row.bytes();
    queue_.push_back(std::move(row));
    changed_.notify_all();
    return true;
}

bool RowWriter::wait_and_offer(SpectrumRow& row) {
    while (!offer(row)) {
        std::unique_lock guard(mutex_);
        if (failure_) {
            return false;
        }
        changed_.wait_for(guard, look);
    }
    return true;
}

bool RowWriter::has_failed() const {
    const std::lock_guard guard(mutex_);
    return failure_ != nullptr;
}

void RowWriter::finish() {
    {
        const std::lock_guard guard(mutex_);
        is_ending_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) {
        thread_.join();
        if (failure_) {
            std::rethrow_exception(failure_);
        }
    }
}

void RowWriter::run() {
    try {
        quiet_hdf5();
        work();
    } catch (const std::exception&) {
        give_up();
        const std::lock_guard guard(mutex_);
        failure_ = std::current_exception();
        for (const SpectrumRow& row : queue_) {
            books_.write_failed += row.present;
        }
        queue_.clear();
        changed_.notify_all();
    }
}

// What was written since the last flush may or may not be found in the file: it counts as lost.
void RowWriter::give_up() {
    if (file_) {
        books_.write_failed += file_->forget_unwritten() + unflushed_.spectra;
        books_.written -= unflushed_.spectra;
        books_.rows -= unflushed_.rows;
        books_.rows_incomplete -= unflushed_.rows_incomplete;
        books_.files.back().rows -= unflushed_.rows;
        file_->abandon();
        books_.files.back().bytes = file_->bytes();
    }
}

// Waits a moment for a row.
std::optional<SpectrumRow> RowWriter::take() {
    std::unique_lock guard(mutex_);
    if (queue_.empty() && !is_ending_) {
        changed_.wait_for(guard, look);
    }
    if (queue_.empty()) {
        return std::nullopt;
    }
    SpectrumRow row = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= row.bytes();
    changed_.notify_all();
    return row;
}

void RowWriter::work() {
    const auto flush_ns = static_cast<int64_t>(terms_.file.flush_seconds * 1e9);
    for (;;) {
        if (auto row = take()) {
            put(*std::move(row));
        } else {
            const std::lock_guard guard(mutex_);
            if (is_ending_ && queue_.empty()) {
                break;
            }
        }
        const int64_t now_ns = monotonic_ns();
        if (file_->unwritten_rows() > 0 &&
            (file_->is_batch_full() || now_ns - oldest_unwritten_ns_ >= flush_ns)) {
            write_batch();
        }
        if (unflushed_.rows > 0 && now_ns - flushed_ns_ >= flush_ns / 2) {
            file_->flush();
            flushed_ns_ = now_ns;
            unflushed_ = {};
        }
    }
    close_file();
}

void RowWriter::put(SpectrumRow row) {
    if (is_due_to_roll(row)) {
        if (!has_room(file_->bytes_to_write())) {
            books_.disk_full += row.present;
            return;
        }
        try {
            close_file();
            ++file_number_;
            open_file();
        } catch (const std::exception&) {
            books_.write_failed += row.present;
            throw;
        }
    }
    if (file_->unwritten_rows() == 0) {
        oldest_unwritten_ns_ = monotonic_ns();
    }
    file_->add(std::move(row));
}

bool RowWriter::is_due_to_roll(const SpectrumRow& row) const {
    if (file_->is_empty()) {
        return false;
    }
    const auto span_ns = static_cast<double>(row.time_ns - file_->first_time_ns());
    return (terms_.roll.seconds > 0 && span_ns >= terms_.roll.seconds * 1e9) ||
           (terms_.roll.bytes > 0 && file_->bytes() >= terms_.roll.bytes);
}

// Looked at before: the library takes no failed write well.
bool RowWriter::has_room(uint64_t bytes) {
    struct statvfs status {};
    const bool has = statvfs(file_->path().c_str(), &status) != 0 ||
                     status.f_bavail * status.f_frsize >= bytes + reserve_bytes;
    if (has == is_disk_full_ && !terms_.quiet) {
        std::fprintf(
            stderr, "echelle-record: %s %s\n",
            has ? "there is room again for" : "disk full: rows are dropped and counted, of",
            file_->path().c_str());
    }
    is_disk_full_ = !has;
    return has;
}

void RowWriter::open_file() {
    if (!terms_.roll.is_rolling()) {
        file_ = std::make_unique<SpectrumFile>(terms_.path, shape_, description_, row_seconds_,
                                               terms_.file);
    } else {
        try {
            file_ = std::make_unique<SpectrumFile>(rolling_path(terms_.path, file_number_), shape_,
                                                   description_, row_seconds_, terms_.file);
        } catch (const OtherShape& other) {
            ++file_number_;
            const std::string next = rolling_path(terms_.path, file_number_);
            std::fprintf(stderr, "echelle-record: %s: beginning %s\n", other.what(), next.c_str());
            file_ = std::make_unique<SpectrumFile>(next, shape_, description_, row_seconds_,
                                                   terms_.file);
        }
    }
    books_.files.push_back({file_->path(), file_->rows_before(), 0, file_->bytes()});
    if (file_->was_left_open() && !terms_.quiet) {
        std::fprintf(stderr,
                     "echelle-record: %s was left open by a writer that was killed; it goes "
                     "on behind row %llu\n",
                     file_->path().c_str(), static_cast<unsigned long long>(file_->rows_before()));
    }
}

void RowWriter::close_file() {
    if (file_->unwritten_rows() > 0) {
        write_batch();
    }
    file_->close();
    books_.files.back().bytes = file_->bytes();
    unflushed_ = {};
    file_.reset();
}

void RowWriter::write_batch() {
    if (!has_room(file_->bytes_to_write())) {
        books_.disk_full += file_->forget_unwritten();
        return;
    }
    const RowCounts unwritten = file_->unwritten();
    file_->write();
    books_.written += unwritten.spectra;
    books_.rows += unwritten.rows;
    books_.rows_incomplete += unwritten.rows_incomplete;
    books_.files.back().rows += unwritten.rows;
    books_.files.back().bytes = file_->bytes();
    unflushed_ += unwritten;
}

}  // namespace echelle::record
