#include "common/instance.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

namespace fs = std::filesystem;

// Long enough for the nursery of a killed coordinator to see its death and clear up.
constexpr int64_t patience_ns = 1'500'000'000;
constexpr const char* file_names[] = {"tokens", "notices", "control", "feed", "spectra"};

std::string base_directory() {
    // Read before any thread exists; nobody changes the environment.
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
    if (runtime != nullptr && runtime[0] == '/' && access(runtime, W_OK) == 0) {
        return std::string(runtime) + "/echelle";
    }
    return "/tmp/echelle-" + std::to_string(getuid());
}

// In /tmp anybody may have put something of that name there first.
void make_own_directory(const std::string& path) {
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        throw UsageError("cannot make the directory " + path + ": " + errno_text());
    }
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != getuid() || (status.st_mode & 022) != 0) {
        throw UsageError(path +
                         " is not a directory that only you can write: remove it, or set "
                         "XDG_RUNTIME_DIR");
    }
}

// The lock file's descriptor when it could be locked and still is the one that the path names: the
// last holder removes the file.
std::optional<FileDescriptor> try_lock(const std::string& path) {
    FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
        if (errno == ENOENT) {
            return std::nullopt;  // the directory is being removed at this moment
        }
        throw UsageError("cannot make the lock file " + path + ": " + errno_text());
    }
    while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EINTR) {
            return std::nullopt;
        }
    }
    struct stat by_descriptor {};
    struct stat by_path {};
    if (fstat(file.get(), &by_descriptor) != 0 || stat(path.c_str(), &by_path) != 0 ||
        by_descriptor.st_ino != by_path.st_ino || by_descriptor.st_dev != by_path.st_dev) {
        return std::nullopt;
    }
    return file;
}

void check_socket_path(const std::string& directory) {
    // The longest of our socket names, after the directory and a slash.
    if (directory.size() + 1 + std::string("notices").size() >= sizeof(sockaddr_un::sun_path)) {
        throw UsageError("the instance's directory " + directory +
                         " is too long for a socket's path (107 characters): give a shorter --name "
                         "or XDG_RUNTIME_DIR");
    }
}

}  // namespace

std::string instance_directory(const std::string& name) {
    constexpr std::string_view allowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (name.empty() || name.size() > 64 || name.front() == '.' ||
        name.find_first_not_of(allowed) != std::string::npos) {
        throw UsageError("instance name '" + name +
                         "' is not usable: give 1 to 64 letters, digits, '-', '_' or '.'");
    }
    return base_directory() + "/" + name;
}

std::string control_endpoint(const std::string& name) {
    return "ipc://" + instance_directory(name) + "/control";
}

std::string feed_endpoint(const std::string& name) {
    return "ipc://" + instance_directory(name) + "/feed";
}

std::string spectrum_ring_socket(const std::string& name) {
    return instance_directory(name) + "/spectra";
}

Instance Instance::lock(const std::string& wanted_name) {
    Instance instance;
    instance.name_ = wanted_name.empty() ? default_instance_name : wanted_name;
    const int64_t deadline = monotonic_ns() + (wanted_name.empty() ? 0 : patience_ns);
    while (true) {
        instance.directory_ = instance_directory(instance.name_);
        check_socket_path(instance.directory_);
        make_own_directory(base_directory());
        make_own_directory(instance.directory_);
        if (auto lock = try_lock(instance.directory_ + "/lock")) {
            instance.lock_ = std::move(*lock);
            for (const char* file : file_names) {
                unlink((instance.directory_ + "/" + file).c_str());
            }
            return instance;
        }
        if (monotonic_ns() >= deadline) {
            if (!wanted_name.empty()) {
                throw UsageError("instance '" + wanted_name +
                                 "' is running already: stop it (a coordinator with `echellectl "
                                 "--name " +
                                 wanted_name + " stop`), or give another --name");
            }
            instance.name_ = std::string(default_instance_name) + "-" + std::to_string(getpid());
        }
        const timespec pause{0, 20'000'000};
        nanosleep(&pause, nullptr);
    }
}

Instance Instance::adopt(const std::string& name, FileDescriptor lock) {
    Instance instance;
    instance.name_ = name;
    instance.directory_ = instance_directory(name);
    instance.lock_ = std::move(lock);
    return instance;
}

WakeupEndpoints Instance::wakeup_endpoints() const {
    return {"ipc://" + directory_ + "/tokens", "ipc://" + directory_ + "/notices"};
}

std::string Instance::control_endpoint() const {
    return "ipc://" + directory_ + "/control";
}

std::string Instance::feed_endpoint() const {
    return "ipc://" + directory_ + "/feed";
}

std::string Instance::spectrum_ring_socket() const {
    return directory_ + "/spectra";
}

void Instance::remove_files() const {
    for (const char* file : file_names) {
        unlink((directory_ + "/" + file).c_str());
    }
    // The lock goes last: until then a new coordinator of this name waits.
    unlink((directory_ + "/lock").c_str());
    std::error_code ignored;  // another instance's directory may stand beside ours
    fs::remove(directory_, ignored);
    fs::remove(fs::path(directory_).parent_path(), ignored);
}

}  // namespace echelle
