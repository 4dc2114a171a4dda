#include "coordinator/sources/device_file.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/topology.hpp"

namespace echelle {
namespace {

// A file without a size is a device that a file system in user space serves: such a one has a
// regular file's type, whatever it stands for.
std::optional<DeviceFile::Kind> kind_of(const struct stat& status) {
    if (S_ISCHR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_size == 0)) {
        return DeviceFile::Kind::device;
    }
    if (S_ISFIFO(status.st_mode)) {
        return DeviceFile::Kind::fifo;
    }
    return S_ISREG(status.st_mode) ? std::optional(DeviceFile::Kind::file) : std::nullopt;
}

}  // namespace

int DeviceFile::open() {
    struct stat status {};
    if (stat(path_.c_str(), &status) != 0) {
        return errno;
    }
    const std::optional<Kind> kind = kind_of(status);
    if (!kind) {
        return ENOTSUP;
    }
    int flags = O_RDONLY | O_CLOEXEC;
    // Of a regular file it would be the end.
    flags |= tlast_ && *kind == Kind::device ? O_TRUNC : 0;
    flags |= *kind == Kind::fifo ? O_NONBLOCK : 0;
    fd_ = FileDescriptor(::open(path_.c_str(), flags));
    if (!fd_) {
        return errno;
    }
    kind_ = *kind;
    node_ = S_ISCHR(status.st_mode) ? status.st_rdev : 0;
    // A stream has no position, but drivers that keep one want it aligned, and a short read would
    // leave it where it is not.
    at_zero_ = kind_ == Kind::device;
    return 0;
}

bool DeviceFile::wait_readable(int64_t timeout_ns) const {
    if (kind_ != Kind::fifo) {
        return true;
    }
    pollfd descriptor{fd_.get(), POLLIN, 0};
    return ::poll(&descriptor, 1, static_cast<int>(timeout_ns / 1'000'000)) > 0;
}

ssize_t DeviceFile::read(std::span<std::byte> bytes) {
    if (read_call_) {
        return read_call_(fd_.get(), bytes.data(), bytes.size());
    }
    if (at_zero_) {
        const ssize_t count = ::pread(fd_.get(), bytes.data(), bytes.size(), 0);
        if (count >= 0 || errno != ESPIPE) {
            return count;
        }
        at_zero_ = false;
    }
    return ::read(fd_.get(), bytes.data(), bytes.size());
}

std::optional<unsigned int> node_of_device(dev_t device, const std::string& sysfs) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::path folder = fs::canonical(
        sysfs + "/dev/char/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)),
        error);
    // The node's own device, then the ones that it hangs on: the PCI function has the file.
    for (int depth = 0; !error && depth < 16 && folder.has_relative_path(); ++depth) {
        std::ifstream file(folder / "numa_node");
        int node = -1;
        if (file >> node) {
            return node >= 0 ? std::optional(static_cast<unsigned int>(node)) : std::nullopt;
        }
        folder = folder.parent_path();
    }
    return std::nullopt;
}

bool bind_this_thread_to_node(unsigned int node) {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    bool others = false;
    for (const Cpu& cpu : usable_cpus()) {
        if (cpu.node == node && cpu.number < CPU_SETSIZE) {
            CPU_SET(cpu.number, &wanted);
        } else {
            others = true;
        }
    }
    return others && CPU_COUNT(&wanted) > 0 && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

}  // namespace echelle
