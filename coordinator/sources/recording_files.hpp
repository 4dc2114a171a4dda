// The files of a recording that is split over several.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// The file of that name, or, where there is none and the name holds * or [], the files that match
// it, as the shell would list them, sorted. At least one. Throws UsageError.
std::vector<std::string> recording_files(const std::string& path);

// Up to `most` bytes of a file from `offset` on; fewer where it ends. Throws UsageError.
std::string bytes_of_file(const RegularFile& file, uint64_t offset, size_t most);

}  // namespace echelle
