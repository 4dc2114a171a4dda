// A file whose writer was killed says in its superblock that it is still being written, so that the
// HDF5 library refuses to open it for writing again. Its public functions cannot take that back
// (the program h5clear can): here the mark is removed, by the library's own format.
//
// HDF5 File Format Specification Version 3.0, section II.A, superblock version 3: 48 bytes with
// 8-byte addresses, little-endian; byte 11 has the consistency flags, bytes 28 to 35 the
// end-of-file address, bytes 44 to 47 the checksum of those before (Jenkins' lookup3, 2006).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace echelle::record {

inline constexpr size_t superblock_bytes = 48;
using Superblock = std::array<std::byte, superblock_bytes>;

enum class Consistency {
    closed,      // nothing to do
    repaired,    // it was left open, and is now marked as closed
    other_kind,  // not an HDF5 file with a superblock of version 3
    damaged,     // its checksum is wrong
};

// Jenkins' hash of whole 4-byte words, with the initial value 0: what HDF5 calls its metadata
// checksum.
uint32_t lookup3(std::span<const std::byte> bytes);

// Clears the mark and lets the file reach to its actual end: what was written after the superblock
// belongs to it. Changes nothing unless it gives `repaired`.
Consistency clear_open_mark(Superblock& superblock, uint64_t file_bytes);

// The same in a file, open for reading and writing, that nobody else writes. Throws RunError when
// it cannot be read or written.
Consistency clear_open_mark(int file, const std::string& path);

}  // namespace echelle::record
