// --record FILE: u32 big-endian length + packet, again and again (docs/packet.md).
//
// A regular file appears under its name only when it is complete: until finish() it has no name
// (O_TMPFILE), so nothing half-written is left whatever kills the run. Where the file system cannot
// do that a temporary name beside it is used. A pipe or device is written to as it is.
#pragma once

#include <string>
#include <vector>

#include "common/file_descriptor.hpp"
#include "coordinator/sinks/sink.hpp"

namespace echelle {

class RecordingSink : public SpectrumSink {
  public:
    // Throws UsageError when the file cannot be made.
    explicit RecordingSink(const std::string& path);
    ~RecordingSink() override;
    void write(std::span<const std::byte> packet) override;
    void finish() override;

  private:
    void flush();

    std::string path_;
    std::string temporary_path_;  // empty while the file has no name
    bool is_named_ = false;       // a pipe or device: not replaced
    FileDescriptor file_;
    std::vector<std::byte> buffer_;
};

}  // namespace echelle
