// A device node, FIFO or file that frames are read from, one system call at a time. Nothing is
// interpreted here but what the kernel says; who reads decides what it means.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <sys/types.h>

#include "common/file_descriptor.hpp"

namespace echelle {

class DeviceFile {
  public:
    enum class Kind {
        device,  // a character device: a read blocks until its driver has something
        fifo,    // a pipe: can be waited for
        file,    // a file with an end
    };
    // Stands in for read(); tests give another one.
    using ReadCall = std::function<ssize_t(int fd, void* bytes, size_t count)>;

    // `tlast`: O_TRUNC at open, which is how XDMA is told to end a read at TLAST.
    DeviceFile(std::string path, bool tlast) : path_(std::move(path)), tlast_(tlast) {}

    const std::string& path() const { return path_; }
    Kind kind() const { return kind_; }
    bool is_open() const { return static_cast<bool>(fd_); }
    dev_t node() const { return node_; }
    // What lengths and addresses of reads must be multiples of.
    size_t alignment() const { return kind_ == Kind::device ? 64 : 1; }

    // 0, or the errno. Never waits for a FIFO's writer. A folder, a block device or a socket is
    // refused with ENOTSUP.
    int open();
    void close() { fd_.close(); }

    // Waits for a FIFO until there is something to be read or the writer has gone; true in these
    // cases and at once for everything else.
    bool wait_readable(int64_t timeout_ns) const;
    // One read: the count, which a faulty driver may make larger than asked, or -1 with errno.
    ssize_t read(std::span<std::byte> bytes);

    void set_read_call(ReadCall call) { read_call_ = std::move(call); }

  private:
    std::string path_;
    bool tlast_;
    FileDescriptor fd_;
    Kind kind_ = Kind::file;
    dev_t node_ = 0;
    bool at_zero_ = false;  // read with pread at position 0
    ReadCall read_call_;
};

// The NUMA node of the card behind a character device, as its driver's device says in sysfs;
// nothing where there is none. `sysfs` is /sys.
std::optional<unsigned int> node_of_device(dev_t device, const std::string& sysfs);

// Binds the calling thread to the usable CPUs of that node; false when there are none, or all are
// there anyway.
bool bind_this_thread_to_node(unsigned int node);

}  // namespace echelle
