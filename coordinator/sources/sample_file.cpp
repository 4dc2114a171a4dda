#include "coordinator/sources/sample_file.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fcntl.h>
#include <sys/stat.h>

#include "common/error.hpp"

namespace echelle {
namespace {

const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) {
        return "a directory";
    }
    if (S_ISFIFO(mode)) {
        return "a FIFO";
    }
    if (S_ISCHR(mode) || S_ISBLK(mode)) {
        return "a device";
    }
    return "not a file of data";
}

void check_regular(const std::string& path, const struct stat& status) {
    if (!S_ISREG(status.st_mode)) {
        throw UsageError("'" + path + "' is " + kind_of(status.st_mode) +
                         ": a regular file is needed");
    }
}

void require(int result, const std::string& path) {
    if (result < 0) {
        throw UsageError("cannot open '" + path + "': " + errno_text() +
                         "; check the path and its permissions");
    }
}

constexpr int16_t swapped(int16_t value) {
    const auto bits = static_cast<uint16_t>(value);
    return static_cast<int16_t>(static_cast<uint16_t>((bits << 8) | (bits >> 8)));
}

// Offset binary to two's complement: the middle of the range becomes 0.
constexpr int16_t without_offset(int16_t value) {
    return static_cast<int16_t>(static_cast<uint16_t>(value) ^ 0x8000U);
}

void read_8_bit(const RegularFile& file, uint64_t offset, int subtract, std::span<int16_t> values) {
    std::array<uint8_t, 65'536> buffer;  // small enough to stay in the core's second-level cache
    while (!values.empty()) {
        const std::span<uint8_t> part(buffer.data(), std::min(buffer.size(), values.size()));
        file.read(offset, std::as_writable_bytes(part));
        std::transform(part.begin(), part.end(), values.begin(), [subtract](uint8_t value) {
            return static_cast<int16_t>(subtract == 0 ? static_cast<int8_t>(value)
                                                      : value - subtract);
        });
        offset += part.size();
        values = values.subspan(part.size());
    }
}

// `convert` changes values in place, part by part while they are in the cache.
template <typename Convert>
void read_16_bit(const RegularFile& file, uint64_t offset, Convert convert,
                 std::span<int16_t> values) {
    constexpr size_t cached_values = 65'536;
    while (!values.empty()) {
        const std::span<int16_t> part = values.first(std::min(cached_values, values.size()));
        file.read(offset, std::as_writable_bytes(part));
        std::transform(part.begin(), part.end(), part.begin(), convert);
        offset += part.size_bytes();
        values = values.subspan(part.size());
    }
}

}  // namespace

std::string_view name_of(ValueCoding coding) {
    switch (coding) {
        case ValueCoding::int16_little:
            return "16-bit little-endian";
        case ValueCoding::int16_big:
            return "16-bit big-endian";
        case ValueCoding::int8:
            return "8-bit";
        case ValueCoding::uint16_little:
            return "16-bit little-endian offset-binary";
        case ValueCoding::uint16_big:
            return "16-bit big-endian offset-binary";
        case ValueCoding::uint8:
            return "8-bit offset-binary";
    }
    return "unknown";
}

RegularFile::RegularFile(const std::string& path) : path_(path) {
    struct stat status {};
    // Looked at before it is opened: opening a device can start it, opening a FIFO waits.
    require(stat(path.c_str(), &status), path);
    check_regular(path, status);
    int fd = -1;
    do {
        fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    require(fd, path);
    fd_ = FileDescriptor(fd);
    require(fstat(fd, &status), path);
    check_regular(path, status);
    size_ = static_cast<uint64_t>(status.st_size);
    // Only advice: a file system that does not take it reads as well.
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void RegularFile::read(uint64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t got =
            pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw RunError("reading '" + path_ + "' at byte " + std::to_string(offset) +
                           " failed: " + errno_text() + "; check the disk");
        }
        if (got == 0) {
            throw RunError("'" + path_ + "' ends at byte " + std::to_string(offset) + ", but had " +
                           std::to_string(size_) +
                           " bytes when it was opened: it shrank while it was read; start again "
                           "when nothing writes to it");
        }
        offset += static_cast<uint64_t>(got);
        bytes = bytes.subspan(static_cast<size_t>(got));
    }
}

void read_values(const RegularFile& file, uint64_t offset, ValueCoding coding,
                 std::span<int16_t> values) {
    if (is_8_bit(coding)) {
        read_8_bit(file, offset, is_unsigned(coding) ? 128 : 0, values);
        return;
    }
    const bool file_is_little =
        coding == ValueCoding::int16_little || coding == ValueCoding::uint16_little;
    const bool machine_is_little = std::endian::native == std::endian::little;
    const bool swap = file_is_little != machine_is_little;
    if (swap && is_unsigned(coding)) {
        read_16_bit(
            file, offset, [](int16_t value) { return without_offset(swapped(value)); }, values);
    } else if (swap) {
        read_16_bit(file, offset, swapped, values);
    } else if (is_unsigned(coding)) {
        read_16_bit(file, offset, without_offset, values);
    } else {
        file.read(offset, std::as_writable_bytes(values));
    }
}

}  // namespace echelle
