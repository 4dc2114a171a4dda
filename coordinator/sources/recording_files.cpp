#include "coordinator/sources/recording_files.hpp"

#include <algorithm>
#include <span>

#include <glob.h>
#include <sys/stat.h>

#include "common/error.hpp"

namespace echelle {

std::vector<std::string> recording_files(const std::string& path) {
    struct stat status {};
    const bool is_pattern = path.find_first_of("*[") != std::string::npos;
    if (!is_pattern || stat(path.c_str(), &status) == 0) {
        return {path};
    }
    glob_t found{};
    // Sorts the names by their bytes in the C locale, which the programs never change.
    const int result = glob(path.c_str(), 0, nullptr, &found);
    std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (result != 0 || files.empty()) {
        throw UsageError("no file matches '" + path + "': check the path and its permissions");
    }
    return files;
}

std::string bytes_of_file(const RegularFile& file, uint64_t offset, size_t most) {
    const uint64_t there = offset < file.size() ? file.size() - offset : 0;
    std::string bytes(std::min<uint64_t>(most, there), '\0');
    try {
        file.read(offset, std::as_writable_bytes(std::span(bytes)));
    } catch (const RunError& error) {
        throw UsageError(error.what());
    }
    return bytes;
}

}  // namespace echelle
