// Files of samples: positioned reads of whole numbers of values, whatever their coding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/file_descriptor.hpp"

namespace echelle {

// How one value (a real sample, or one part of a complex one) stands in a file. 8-bit values are
// widened without scaling: -128..127 stay -128..127. Unsigned ones are offset binary, as converters
// and WAV write them: the middle of their range, 128 or 32768, becomes 0.
enum class ValueCoding { int16_little, int16_big, int8, uint16_little, uint16_big, uint8 };

std::string_view name_of(ValueCoding coding);  // "16-bit little-endian", ..., "8-bit"
constexpr bool is_8_bit(ValueCoding coding) {
    return coding == ValueCoding::int8 || coding == ValueCoding::uint8;
}
constexpr size_t bytes_of(ValueCoding coding) {
    return is_8_bit(coding) ? 1 : 2;
}
constexpr bool is_unsigned(ValueCoding coding) {
    return coding == ValueCoding::uint8 || coding == ValueCoding::uint16_little ||
           coding == ValueCoding::uint16_big;
}

// A regular file, open for reading. Reads are positioned, so threads may share it.
class RegularFile {
  public:
    // Throws UsageError when there is no such file, it may not be read, or it is something else: a
    // directory, or a FIFO or device, which cannot be read at a position.
    explicit RegularFile(const std::string& path);

    const std::string& path() const { return path_; }
    // Bytes at the time of opening.
    uint64_t size() const { return size_; }
    // Fills `bytes` from `offset` on. Throws RunError on an I/O error and when the file ends
    // sooner: it has shrunk since it was opened.
    void read(uint64_t offset, std::span<std::byte> bytes) const;

  private:
    std::string path_;
    FileDescriptor fd_;
    uint64_t size_ = 0;
};

// Fills `values` from `offset` on, in machine byte order. Little-endian 16-bit values go straight
// to their place. Throws RunError as RegularFile::read.
void read_values(const RegularFile& file, uint64_t offset, ValueCoding coding,
                 std::span<int16_t> values);

}  // namespace echelle
