// SHA-512 of a part of a file.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// In lower-case hexadecimal digits. Reads all of it: about a second for half a gigabyte. Throws
// UsageError when the file cannot be read.
std::string sha512_of(const RegularFile& file, uint64_t offset, uint64_t bytes);

}  // namespace echelle
