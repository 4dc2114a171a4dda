#include "fpga_sim/raw_recording.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 20;

}  // namespace

RawRecording::RawRecording(const std::string& path)
    : path_(path), partial_path_(path + ".partial"), owner_(getpid()) {
    struct stat there {};
    if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
        throw UsageError("cannot write '" + path +
                         "': it is not a regular file; give the name of a file");
    }
    fd_ =
        FileDescriptor(open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd_) {
        throw UsageError("cannot write '" + partial_path_ + "': " + errno_text() +
                         "; give --write-raw a file in a directory that can be written");
    }
    buffer_.reserve(buffer_bytes);
}

RawRecording::~RawRecording() {
    // A process forked from ours holds a copy of this object, but the file is not its own.
    if (fd_ && getpid() == owner_) {
        unlink(partial_path_.c_str());
    }
}

void RawRecording::write(std::span<const int16_t> samples) {
    const std::span<const std::byte> bytes = std::as_bytes(samples);
    if (buffer_.size() + bytes.size() > buffer_bytes) {
        write_out(buffer_);
        buffer_.clear();
    }
    if (bytes.size() >= buffer_bytes) {
        write_out(bytes);
        return;
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void RawRecording::finish() {
    write_out(buffer_);
    buffer_.clear();
    // Before the rename: some file systems report a full disk only here.
    while (fsync(fd_.get()) != 0) {
        if (errno != EINTR) {
            fail("write");
        }
    }
    if (rename(partial_path_.c_str(), path_.c_str()) != 0) {
        fail("name");
    }
    fd_.close();
}

void RawRecording::write_out(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            fail("write");
        }
        bytes_written_ += static_cast<uint64_t>(written);
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

void RawRecording::fail(const std::string& doing) const {
    const int error = errno;
    throw RunError("cannot " + doing + " '" + path_ + "': " + errno_text(error) + " after " +
                   std::to_string(bytes_written_) +
                   " bytes; the partial file is removed: free some space or write elsewhere");
}

}  // namespace echelle
