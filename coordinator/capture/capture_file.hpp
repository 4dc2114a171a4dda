// One SigMF recording that is being written: NAME.sigmf-data and NAME.sigmf-meta.
//
// The metadata are written before the first sample of a segment, and say that the recording is
// unfinished; so whatever kills the program, what is there opens. They get their last form, with
// the SHA-512, when the file is finished. Owned and called by the capture's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/file_descriptor.hpp"
#include "coordinator/capture/capture_metadata.hpp"
#include "coordinator/sources/sha512.hpp"

namespace echelle {

class CaptureFile {
  public:
    // Makes the data file; `base` is its path without ending. Throws RunError, and Exists where
    // there is such a file.
    struct Exists {};
    CaptureFile(std::string base, const Stream& stream, const std::string& description,
                bool with_sha512);
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;
    // Removes a file without samples.
    ~CaptureFile();

    // What is written next begins with this sample of the stream. Throws RunError.
    void begin_segment(uint64_t global_index, bool gap_before);
    // Appends interleaved samples, whole ones. Throws RunError; nothing of them is in the file
    // then.
    void append(std::span<const std::byte> samples);
    // Takes the last append back: its samples were overwritten while they were written. Throws
    // RunError.
    void take_back();
    // Throws RunError.
    void finish();

    const std::string& base() const { return base_; }
    uint64_t bytes() const { return bytes_; }
    size_t segments() const { return metadata_.segments.size(); }

  private:
    void write_metadata() const;
    void cut_to(uint64_t bytes);

    std::string base_;
    FileDescriptor data_;
    CaptureMetadata metadata_;
    uint64_t sample_bytes_;
    bool with_sha512_;
    uint64_t bytes_ = 0;
    uint64_t bytes_before_ = 0;  // the last append
    Sha512 digest_;
    Sha512 digest_before_;
};

}  // namespace echelle
