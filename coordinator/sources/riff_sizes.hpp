// What the chunk sizes of a WAV, RF64/BW64 or W64 file say about its samples, held against the size
// of the file. libsndfile opens files whose sizes lie without a word: a data size of 0 gives no
// samples, one that wrapped at 4 GiB only the remainder (libsndfile issue 300), one beyond the end
// of the file is clipped. Touches no file by itself.
//
// Layouts: RIFF (Microsoft, Multimedia Programming Interface 1.0), RF64 (EBU Tech 3306), BW64
// (ITU-R BS.2088), W64 (Sony Pictures Digital, Sony Wave64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace echelle {

struct RiffSizes {
    const char* kind = "WAV";    // "WAV", "RF64", "W64"
    uint64_t data_offset = 0;    // byte of the first sample
    uint64_t data_bytes = 0;     // of samples, by the header
    bool data_open = false;      // the header leaves the size open: 0xFFFFFFFF in a WAV
    uint64_t file_bytes = 0;     // of the file
    uint64_t accounted_end = 0;  // behind the last whole chunk that follows the samples

    // Bytes that the header promises and the file does not have.
    uint64_t missing() const {
        const uint64_t there = file_bytes - data_offset;
        return data_bytes > there ? data_bytes - there : 0;
    }
    // Bytes behind the samples that belong to no chunk: probably samples that the header hides.
    uint64_t unaccounted() const { return file_bytes - accounted_end; }
};

// Reads up to that many bytes at an offset; fewer only at the end of the file.
using ReadBytes = std::function<size_t(uint64_t offset, std::span<std::byte> bytes)>;

// Absent when the file is none of these, or ends before its samples. Looks at no more than a few
// thousand chunks.
std::optional<RiffSizes> read_riff_sizes(const ReadBytes& read, uint64_t file_bytes);

}  // namespace echelle
