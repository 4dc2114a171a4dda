// Writes rows into files on a thread of its own, behind a bounded queue: a disk that stalls for a
// while costs the reader of packets nothing. Rolls, flushes, and counts what became of every
// spectrum. A full disk costs the rows that find no room, each counted, and it goes on when there
// is room again; any other failed write ends it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "clients/record/file_sequence.hpp"
#include "clients/record/record_books.hpp"
#include "clients/record/spectrum_file.hpp"
#include "clients/record/spectrum_row.hpp"

namespace echelle::record {

struct WriterTerms {
    std::string path;
    FileTerms file;
    RollTerms roll;
    uint64_t queue_bytes = uint64_t{256} << 20;
    bool quiet = false;
};

class RowWriter {
  public:
    // Opens the first file: throws what SpectrumFile does. `books` belong to the writer's thread
    // until finish() has returned.
    RowWriter(WriterTerms terms, SpectrumShape shape, std::string description, double row_seconds,
              WrittenBooks& books);
    ~RowWriter();
    RowWriter(const RowWriter&) = delete;
    RowWriter& operator=(const RowWriter&) = delete;

    // By the reader's thread. Hands the row over; where the queue is full it is left as it is, and
    // the answer is false.
    bool offer(SpectrumRow& row);
    // The same, but waits for room. False when the writer has failed.
    bool wait_and_offer(SpectrumRow& row);
    bool has_failed() const;
    // Writes all that is queued and closes the file. Throws the RunError that ended the writer.
    void finish();

  private:
    void run();
    void work();
    std::optional<SpectrumRow> take();
    void put(SpectrumRow row);
    bool has_room(uint64_t bytes);
    bool is_due_to_roll(const SpectrumRow& row) const;
    void open_file();
    void close_file();
    void write_batch();
    void give_up();

    const WriterTerms terms_;
    const SpectrumShape shape_;
    const std::string description_;
    const double row_seconds_;
    WrittenBooks& books_;
    std::unique_ptr<SpectrumFile> file_;
    uint64_t file_number_ = 0;
    int64_t oldest_unwritten_ns_ = 0;
    int64_t flushed_ns_ = 0;
    RowCounts unflushed_;  // written since the last flush
    bool is_disk_full_ = false;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<SpectrumRow> queue_;
    uint64_t queued_bytes_ = 0;
    bool is_ending_ = false;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace echelle::record
