// A file of raw samples, in memory order and machine byte order, that stands under its name only
// when it is whole: it is written beside it as NAME.partial and renamed at the end.
//
// One thread. Throws UsageError when the file cannot be made, RunError when it cannot be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/file_descriptor.hpp"

namespace echelle {

class RawRecording {
  public:
    explicit RawRecording(const std::string& path);
    // Removes the partial file unless finish() was reached.
    ~RawRecording();
    RawRecording(const RawRecording&) = delete;
    RawRecording& operator=(const RawRecording&) = delete;

    void write(std::span<const int16_t> samples);
    // Writes what is buffered and gives the file its name, replacing an older one.
    void finish();

  private:
    void write_out(std::span<const std::byte> bytes);
    [[noreturn]] void fail(const std::string& doing) const;

    std::string path_;
    std::string partial_path_;
    pid_t owner_;
    FileDescriptor fd_;
    std::vector<std::byte> buffer_;
    uint64_t bytes_written_ = 0;
};

}  // namespace echelle
