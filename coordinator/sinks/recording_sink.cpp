#include "coordinator/sinks/recording_sink.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 20;

std::string directory_of(const std::string& path) {
    const auto parent = std::filesystem::path(path).parent_path();
    return parent.empty() ? "." : parent.string();
}

}  // namespace

RecordingSink::RecordingSink(const std::string& path) : path_(path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        if (S_ISDIR(status.st_mode)) {
            throw UsageError("cannot record into " + path + ": it is a directory; name a file");
        }
        is_named_ = true;
        file_ = FileDescriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    } else {
        file_ = FileDescriptor(
            open(directory_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
        if (!file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
            temporary_path_ = path + ".part-" + std::to_string(getpid());
            file_ = FileDescriptor(
                open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
        }
    }
    if (!file_) {
        throw UsageError("cannot record into " + path + ": " + errno_text() +
                         "; name a file in a directory that you can write");
    }
    buffer_.reserve(buffer_bytes);
}

RecordingSink::~RecordingSink() {
    if (!temporary_path_.empty()) {
        unlink(temporary_path_.c_str());
    }
}

void RecordingSink::write(std::span<const std::byte> packet) {
    if (buffer_.size() + 4 + packet.size() > buffer_bytes) {
        flush();
    }
    const size_t bytes = packet.size();
    for (const int shift : {24, 16, 8, 0}) {
        buffer_.push_back(static_cast<std::byte>(bytes >> shift & 0xFF));
    }
    buffer_.insert(buffer_.end(), packet.begin(), packet.end());
}

void RecordingSink::flush() {
    size_t written = 0;
    while (written < buffer_.size()) {
        const ssize_t n = ::write(file_.get(), buffer_.data() + written, buffer_.size() - written);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            throw RunError("cannot write the recording " + path_ + ": " + errno_text() +
                           "; nothing is left under that name");
        }
        written += static_cast<size_t>(n);
    }
    buffer_.clear();
}

void RecordingSink::finish() {
    flush();
    if (is_named_) {
        return;
    }
    if (temporary_path_.empty()) {
        // linkat() does not replace a file: the name is made beside it and moved over it.
        temporary_path_ = path_ + ".part-" + std::to_string(getpid());
        const std::string descriptor = "/proc/self/fd/" + std::to_string(file_.get());
        unlink(temporary_path_.c_str());
        if (linkat(AT_FDCWD, descriptor.c_str(), AT_FDCWD, temporary_path_.c_str(),
                   AT_SYMLINK_FOLLOW) != 0) {
            const int error = errno;
            temporary_path_.clear();
            throw RunError("cannot give the recording its name " + path_ + ": " +
                           errno_text(error));
        }
    }
    if (rename(temporary_path_.c_str(), path_.c_str()) != 0) {
        throw RunError("cannot give the recording its name " + path_ + ": " + errno_text());
    }
    temporary_path_.clear();
}

}  // namespace echelle
