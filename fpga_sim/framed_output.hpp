// Frames as a card sends them (common/card_frame.hpp), into a file, a FIFO or standard output: for
// trying out --source xdma: without a card.
//
// One thread. Throws UsageError when the file cannot be made, RunError when it cannot be written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/file_descriptor.hpp"
#include "common/ring.hpp"
#include "common/stream.hpp"

namespace echelle {

class FramedOutput {
  public:
    // "-" is standard output. A FIFO is opened with the first frame, since that waits for its
    // reader.
    FramedOutput(std::string path, const Stream& stream);

    // Unix time of sample 0; without it the frames' time counts from 0.
    void set_epoch(int64_t epoch_ns) { epoch_ns_ = epoch_ns; }
    // False when stopped before the frame was written. A frame that is cut off by a stop has no
    // end, as on a card that is switched off.
    bool write(const FrameStamp& stamp, std::span<const int16_t> frame,
               const std::atomic<bool>& stop);

  private:
    bool open_for_reader(const std::atomic<bool>& stop);
    void assemble(const FrameStamp& stamp, std::span<const int16_t> frame);

    std::string path_;
    Stream stream_;
    int64_t epoch_ns_ = 0;
    FileDescriptor fd_;
    std::vector<std::byte> wire_;
};

}  // namespace echelle
