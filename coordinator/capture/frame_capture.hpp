// Writes the frames that come in to SigMF files, beside the work on their spectra and without
// slowing it: it reads the ring for itself, in a thread of its own at the lowest priority, and asks
// nobody to wait. What it can't write before the ring comes round is lost from the capture, counted
// by cause, and marked by a new segment.
//
// It never goes beyond what ingest has taken, so a capture holds the frames that the books of the
// run count, and no others.
//
// A frame whose samples lie interleaved in the ring is written from there; one in rows is copied
// once, into the order of files. Its slot's sequence is looked at before and after.
//
// Made and finished by the main thread, which also gives the commands.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/error.hpp"
#include "common/ring.hpp"
#include "coordinator/capture/capture_file.hpp"
#include "coordinator/capture/capture_options.hpp"
#include "coordinator/capture/capture_sequence.hpp"

namespace echelle {

// Why a frame that came in during a capture is not in it.
struct CaptureLosses {
    uint64_t overwritten = 0;   // the ring came round before it was written
    uint64_t write_failed = 0;  // the disk refused it
    uint64_t repeated = 0;      // as in the books of the run: not used there either
    uint64_t out_of_order = 0;
    uint64_t malformed = 0;
    uint64_t stopped = 0;  // not written yet when the run was ended at once

    uint64_t in_all() const {
        return overwritten + write_failed + repeated + out_of_order + malformed + stopped;
    }
};

// in = written + lost + in_flight, at every instant.
struct CaptureBooks {
    bool capturing = false;
    uint64_t in = 0;
    uint64_t written = 0;
    uint64_t in_flight = 0;
    CaptureLosses lost;
    uint64_t bytes = 0;
    uint64_t files = 0;
    uint64_t segments = 0;
    std::string last_file;  // its metadata
    std::string problem;    // the last one that the disk had; empty: none
};

// A command that cannot be followed now.
class CaptureRefusal : public std::runtime_error {
  public:
    CaptureRefusal(std::string name, const std::string& message)
        : std::runtime_error(message), name_(std::move(name)) {}
    const std::string& name() const { return name_; }

  private:
    std::string name_;
};

class FrameCapture {
  public:
    struct Setup {
        const Ring* ring = nullptr;
        const std::atomic<uint64_t>* taken = nullptr;  // ingest has taken the positions before it
        Stream stream;
        CaptureOptions options;
        std::string source_description;
        std::function<void(const std::string&)> warn;  // from the capture's thread
    };
    // Starts the thread; captures from the first frame on when the options say so. The setup's
    // pointers outlive finish().
    static std::shared_ptr<FrameCapture> begin(Setup setup);
    ~FrameCapture();

    // ---- commands; throw CaptureRefusal
    // From the next frame on.
    void start();
    // What has come in is still written.
    void stop();
    // Keeps what the ring still holds of the last `seconds`, and ends. Returns how many frames.
    uint64_t keep_last(double seconds);

    // Any thread.
    CaptureBooks books() const;

    // Writes what has come in, for `patience_ns` at most (0: the run ends at once), and ends the
    // thread. One that the kernel holds in a write for too long is left behind: false. `is_hurried`
    // is asked again and again whether to end at once after all; it must not call the capture.
    bool finish(
        int64_t patience_ns, const std::function<bool()>& is_hurried = [] { return false; });

  private:
    static constexpr uint64_t no_end = UINT64_MAX;

    explicit FrameCapture(Setup setup);
    void run();
    bool take_some();
    void take(uint64_t position);
    void write(uint64_t position, const FrameStamp& stamp, bool continues);
    bool append(uint64_t position, const FrameStamp& stamp);
    void skip_overwritten(uint64_t end);
    void lose(uint64_t CaptureLosses::*cause, uint64_t frames);
    void disk_failed(const std::string& why);
    bool needs_new_file(const FrameStamp& stamp, bool continues) const;
    void open_file(const FrameStamp& stamp);
    void close_file();
    uint64_t end_of_capture() const;
    void begin_at(uint64_t position, uint64_t end);

    const Setup setup_;
    const uint64_t sample_bytes_;
    const std::string name_start_;  // of files: when the run began

    // ---- of the capture's thread, while capturing
    CaptureSequence sequence_;
    std::unique_ptr<CaptureFile> file_;
    uint64_t first_sample_of_file_ = 0;
    uint64_t most_file_samples_;
    uint64_t files_named_ = 0;
    std::vector<int16_t> interleaved_;
    int64_t retry_ns_ = 0;  // the disk has failed: not before this

    // ---- shared
    mutable std::mutex mutex_;  // guards those up to changed_
    CaptureBooks books_;
    uint64_t next_ = 0;      // position to be taken next, while capturing
    uint64_t end_ = no_end;  // take the positions before it, then stop
    bool ending_ = false;
    bool ended_ = false;
    bool told_problem_ = false;
    std::condition_variable changed_;
    std::atomic<int64_t> give_up_ns_{INT64_MAX};  // what is not written then is lost
    std::atomic<bool> left_behind_{false};        // touch nothing of the run any more

    std::thread thread_;
};

}  // namespace echelle
