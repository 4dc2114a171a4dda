#include "coordinator/capture/capture_file.hpp"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr const char* data_ending = ".sigmf-data";
constexpr const char* meta_ending = ".sigmf-meta";

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
    throw RunError("cannot " + what + " '" + path + "': " + errno_text(error));
}

// Throws RunError; how much had been written then is not known.
void write_all(int fd, uint64_t offset, std::span<const std::byte> bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            fail("write", path, n < 0 ? errno : ENOSPC);
        }
        offset += static_cast<uint64_t>(n);
        bytes = bytes.subspan(static_cast<size_t>(n));
    }
}

}  // namespace

CaptureFile::CaptureFile(std::string base, const Stream& stream, const std::string& description,
                         bool with_sha512)
    : base_(std::move(base)),
      sample_bytes_(uint64_t{stream.geometry.channels} * stream.geometry.bytes_per_sample()),
      with_sha512_(with_sha512) {
    const std::string path = base_ + data_ending;
    data_ = FileDescriptor(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
    if (!data_ && errno == EEXIST) {
        throw Exists{};
    }
    if (!data_) {
        fail("make", path, errno);
    }
    metadata_.stream = stream;
    metadata_.description = description;
    metadata_.unfinished = true;
}

CaptureFile::~CaptureFile() {
    if (bytes_ == 0) {
        unlink((base_ + data_ending).c_str());
        unlink((base_ + meta_ending).c_str());
    }
}

void CaptureFile::begin_segment(uint64_t global_index, bool gap_before) {
    std::vector<CaptureSegment>& segments = metadata_.segments;
    const uint64_t sample = bytes_ / sample_bytes_;
    const bool replaces = !segments.empty() && segments.back().sample_start == sample;
    const std::vector<CaptureSegment> before = segments;
    if (replaces) {
        segments.pop_back();  // nothing of it has stayed
    }
    segments.push_back({sample, global_index, gap_before && !segments.empty()});
    try {
        write_metadata();
    } catch (const RunError&) {
        segments = before;
        throw;
    }
}

void CaptureFile::append(std::span<const std::byte> samples) {
    try {
        write_all(data_.get(), bytes_, samples, base_ + data_ending);
    } catch (const RunError&) {
        cut_to(bytes_);
        throw;
    }
    bytes_before_ = bytes_;
    bytes_ += samples.size();
    if (with_sha512_) {
        digest_before_ = digest_;
        digest_.update(samples);
    }
}

void CaptureFile::take_back() {
    digest_ = digest_before_;
    bytes_ = bytes_before_;
    cut_to(bytes_);
}

void CaptureFile::cut_to(uint64_t bytes) {
    if (ftruncate(data_.get(), static_cast<off_t>(bytes)) != 0) {
        fail("cut off what could not be written of", base_ + data_ending, errno);
    }
}

void CaptureFile::finish() {
    if (bytes_ == 0) {
        return;
    }
    metadata_.unfinished = false;
    if (with_sha512_) {
        metadata_.sha512 = digest_.text();
    }
    write_metadata();
}

// As a whole or not at all: the name always stands for complete JSON.
void CaptureFile::write_metadata() const {
    const std::string path = base_ + meta_ending;
    const std::string temporary = path + ".part-" + std::to_string(getpid());
    const std::string text = text_of(metadata_);
    try {
        const FileDescriptor file(
            open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
        if (!file) {
            fail("make", temporary, errno);
        }
        write_all(file.get(), 0, std::as_bytes(std::span(text)), temporary);
        if (rename(temporary.c_str(), path.c_str()) != 0) {
            fail("rename", temporary, errno);
        }
    } catch (const RunError&) {
        unlink(temporary.c_str());
        throw;
    }
}

}  // namespace echelle
