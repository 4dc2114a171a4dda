// SHA-512, of a part of a file or of bytes as they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <nettle/sha2.h>

#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// A copy goes on from where the original was.
class Sha512 {
  public:
    Sha512() { sha512_init(&state_); }
    void update(std::span<const std::byte> bytes);
    // Of all bytes so far, in lower-case hexadecimal digits.
    std::string text() const;

  private:
    sha512_ctx state_{};
};

// In lower-case hexadecimal digits. Reads all of it: about a second for half a gigabyte. Throws
// UsageError when the file cannot be read.
std::string sha512_of(const RegularFile& file, uint64_t offset, uint64_t bytes);

}  // namespace echelle
