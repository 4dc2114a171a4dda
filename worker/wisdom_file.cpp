#include "worker/wisdom_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fftw3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_descriptor.hpp"
#include "worker/kernels.hpp"

namespace echelle {
namespace {

// Wisdom for one size is a few KiB.
constexpr size_t kMostWisdom = size_t{1} << 20;

std::optional<std::string> absolute_path_in(const char* variable) {
    // Plans are made before any thread exists, so nothing can change the environment meanwhile.
    const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || value[0] != '/') {
        return std::nullopt;
    }
    return std::string(value);
}

bool write_all(int fd, const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        done += static_cast<size_t>(written);
    }
    return true;
}

}  // namespace

std::optional<std::string> wisdom_directory() {
    // The XDG base directory specification: a relative path is to be ignored.
    if (auto cache = absolute_path_in("XDG_CACHE_HOME")) {
        return *cache + "/echelle";
    }
    if (auto home = absolute_path_in("HOME")) {
        return *home + "/.cache/echelle";
    }
    return std::nullopt;
}

std::string wisdom_file_name(uint32_t nperseg, const std::string& kinds,
                             const std::string& effort) {
    return std::string(fftwf_version) + "-" + kernels::target() + "-" + std::to_string(nperseg) +
           "-" + kinds + "-" + effort + ".wisdom";
}

std::optional<std::string> read_wisdom(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return std::nullopt;
    }
    std::string text;
    std::vector<char> part(16384);
    for (;;) {
        const ssize_t count = ::read(file.get(), part.data(), part.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 || text.size() > kMostWisdom) {
            return std::nullopt;
        }
        if (count == 0) {
            return text;
        }
        text.append(part.data(), static_cast<size_t>(count));
    }
}

bool write_wisdom(const std::string& path, const std::string& text) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) {
        return false;
    }
    std::string temporary = path + ".XXXXXX";
    FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!file) {
        return false;
    }
    if (write_all(file.get(), text) && ::rename(temporary.c_str(), path.c_str()) == 0) {
        return true;
    }
    ::unlink(temporary.c_str());
    return false;
}

}  // namespace echelle
