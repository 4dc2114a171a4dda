// What became of the packets: received = written + all that were dropped, once everything has
// ended. Each field has one writer: the thread that reads packets, or the one that writes; the
// other looks when that has ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelle::record {

struct FileEntry {
    std::string path;
    uint64_t rows_before = 0;  // that stood in it already
    uint64_t rows = 0;         // that were added
    uint64_t bytes = 0;        // of the file at its end
};

// By the thread that reads.
struct ReceivedBooks {
    uint64_t received = 0;
    uint64_t bad_packet = 0;       // bytes that are no packet; the end of a cut recording
    uint64_t no_trailer = 0;       // 1.0: it does not say when it was made
    uint64_t other_shape = 0;      // does not fit into the file
    uint64_t unknown_channel = 0;  // a channel that is not recorded
    uint64_t late = 0;             // of a row that is over
    uint64_t repeated = 0;         // of a channel that the row has already
    uint64_t queue_full = 0;       // the writer was too slow for so long that the queue was full
    uint64_t surplus = 0;          // came behind the last row that was asked for
    uint64_t missed = 0;           // never received: holes in the sequence numbers, of all channels
};

// By the thread that writes.
struct WrittenBooks {
    uint64_t written = 0;
    uint64_t disk_full = 0;
    uint64_t write_failed = 0;
    uint64_t rows = 0;
    uint64_t rows_incomplete = 0;  // channels are missing in it
    std::vector<FileEntry> files;
};

}  // namespace echelle::record
