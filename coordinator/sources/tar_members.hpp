// The files in a tar archive, where they lie in it: tar stores them as they are, so they can be
// read in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/sources/sample_file.hpp"

namespace echelle {

struct TarMember {
    std::string name;     // with its folders
    uint64_t offset = 0;  // of its first byte in the archive
    uint64_t bytes = 0;
};

// The regular files of the archive, at most 100,000. Throws UsageError: no tar archive, compressed,
// damaged, or with a sparse file in it.
std::vector<TarMember> list_tar_members(const RegularFile& archive);

// Whether the first 512 bytes of a file are a tar header.
bool looks_like_tar(std::string_view bytes);

}  // namespace echelle
