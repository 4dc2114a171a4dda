#include "fpga_sim/framed_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/card_frame.hpp"
#include "common/crc32.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr timespec look_for_reader{0, 20'000'000};

bool is_fifo(const std::string& path) {
    struct stat there {};
    return stat(path.c_str(), &there) == 0 && S_ISFIFO(there.st_mode);
}

bool has_over_range(const Stream& stream, std::span<const int16_t> frame) {
    return std::any_of(frame.begin(), frame.end(), [&stream](int16_t value) {
        return value <= stream.over_range_low || value >= stream.over_range_high;
    });
}

}  // namespace

FramedOutput::FramedOutput(std::string path, const Stream& stream)
    : path_(std::move(path)), stream_(stream) {
    if (path_ == "-") {
        fd_ = FileDescriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    } else if (!is_fifo(path_)) {
        fd_ = FileDescriptor(
            open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
    } else {
        return;
    }
    if (!fd_) {
        throw UsageError("cannot write '" + path_ + "': " + errno_text() +
                         "; give --write-framed a file, a FIFO or - for standard output");
    }
}

bool FramedOutput::open_for_reader(const std::atomic<bool>& stop) {
    while (!fd_) {
        // Fails until somebody reads, where a plain open would wait for him and for no signal.
        fd_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        if (fd_) {
            fcntl(fd_.get(), F_SETFL, O_WRONLY);
            return true;
        }
        if (errno != ENXIO && errno != EINTR) {
            throw RunError("cannot write '" + path_ + "': " + errno_text());
        }
        if (stop.load(std::memory_order_relaxed)) {
            return false;
        }
        nanosleep(&look_for_reader, nullptr);
    }
    return true;
}

void FramedOutput::assemble(const FrameStamp& stamp, std::span<const int16_t> frame) {
    CardFrameHeader header;
    header.flags = card_has_trailer | (epoch_ns_ != 0 ? card_time_is_unix : 0U) |
                   ((stamp.flags & frame_gap_before) != 0 ? card_overflow : 0U);
    header.stream = 1;
    header.rate_hz = stream_.rate.denominator == 1 && stream_.rate.numerator <= UINT32_MAX
                         ? static_cast<uint32_t>(stream_.rate.numerator)
                         : 0;
    header.geometry = stream_.geometry;
    header.sequence = stamp.frame_index;
    header.sample_index = stamp.first_sample;
    header.time_ns = epoch_ns_ + sample_time_ns(stamp.first_sample, stream_.rate);
    wire_.resize(card_frame_bytes(header));
    const std::span<std::byte> wire(wire_);
    const std::span<const std::byte> samples = std::as_bytes(frame);
    write_card_header(header, wire);
    std::memcpy(wire_.data() + card_header_bytes, samples.data(), samples.size());
    const uint32_t flags = has_over_range(stream_, frame) ? uint32_t{card_over_range} : 0U;
    write_card_trailer({crc32(samples), flags, header.sequence}, wire.last(card_trailer_bytes));
}

bool FramedOutput::write(const FrameStamp& stamp, std::span<const int16_t> frame,
                         const std::atomic<bool>& stop) {
    if (!open_for_reader(stop)) {
        return false;
    }
    assemble(stamp, frame);
    std::span<const std::byte> left(wire_);
    while (!left.empty()) {
        const ssize_t written = ::write(fd_.get(), left.data(), left.size());
        if (written >= 0) {
            left = left.subspan(static_cast<size_t>(written));
        } else if (errno == EINTR) {
            if (stop.load(std::memory_order_relaxed)) {
                return false;
            }
        } else {
            throw RunError("cannot write '" + path_ +
                           "': " + (errno == EPIPE ? "its reader has left" : errno_text()));
        }
    }
    return true;
}

}  // namespace echelle
