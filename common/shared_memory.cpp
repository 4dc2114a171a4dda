#include "common/shared_memory.hpp"

#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/clock.hpp"
#include "common/control_group.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr size_t small_page = 4096;
constexpr size_t huge_page = size_t{2} << 20;

size_t rounded_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

std::string mebibytes(size_t bytes) {
    return std::to_string(rounded_up(bytes, size_t{1} << 20) >> 20) + " MiB";
}

// "MemAvailable:    123 kB" in a file of such lines, in bytes; UINT64_MAX when it isn't there.
uint64_t kib_field(const char* path, const std::string& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        uint64_t kib = 0;
        if (line.rfind(name, 0) == 0 && std::istringstream(line.substr(name.size())) >> kib) {
            return kib * 1024;
        }
    }
    return UINT64_MAX;
}

uint64_t resource_limit(decltype(RLIMIT_AS) resource) {
    rlimit limit{};
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                               : UINT64_MAX;
}

uint64_t address_space_left() {
    const uint64_t limit = resource_limit(RLIMIT_AS);
    const uint64_t used = limit != UINT64_MAX ? kib_field("/proc/self/status", "VmSize:") : 0;
    return limit - std::min(limit, used);
}

[[noreturn]] void throw_no_memory(const std::string& what, size_t bytes, const std::string& why) {
    throw UsageError("no memory for " + what + ": " + mebibytes(bytes) + " asked for, " +
                     mebibytes(memory_available()) + " available (" + why +
                     "); ask for less (--ring-frames, --channels, --samples) or free some");
}

// 0, or the error: posix_fallocate answers it and leaves errno alone.
int reserve(int fd, size_t bytes) {
    int error = 0;
    do {
        error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    } while (error == EINTR);
    return error;
}

// Maps the whole file at a multiple of `alignment`: the kernel gives huge pages only to address
// ranges that begin where a huge page does. Null, with errno, when it cannot.
std::byte* map_aligned(int fd, size_t size, size_t alignment) {
    void* reserved = mmap(nullptr, size + alignment, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return nullptr;
    }
    auto* start = static_cast<std::byte*>(reserved);
    const size_t before = rounded_up(reinterpret_cast<uintptr_t>(start), alignment) -
                          reinterpret_cast<uintptr_t>(start);
    std::byte* wanted = start + before;
    if (before > 0) {
        munmap(start, before);
    }
    munmap(wanted + size, alignment - before);
    if (mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        const int error = errno;
        munmap(wanted, size);
        errno = error;
        return nullptr;
    }
    return wanted;
}

// Reserves and zeroes every page now, so that no later touch can raise SIGBUS. False when memory
// does not suffice.
bool populate(int fd, std::byte* data, size_t bytes) {
    while (madvise(data, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno == EINTR || errno == EAGAIN) {
            continue;
        }
        if (errno != EINVAL) {
            return false;
        }
        // A kernel before 5.14 does not know MADV_POPULATE_WRITE.
        errno = reserve(fd, bytes);
        return errno == 0;
    }
    return true;
}

// True when the kernel backs most of the mapping at `data` with transparent huge pages.
bool has_transparent_huge_pages(const std::byte* data, size_t bytes) {
    char start[32];
    std::snprintf(start, sizeof start, "%" PRIxPTR "-", reinterpret_cast<uintptr_t>(data));
    std::ifstream smaps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
        if (line.rfind(start, 0) == 0) {
            inside = true;
        } else if (inside && line.rfind("ShmemPmdMapped:", 0) == 0) {
            std::istringstream fields(line.substr(15));
            uint64_t kib = 0;
            fields >> kib;
            return kib * 1024 >= bytes / 2;
        }
    }
    return false;
}

std::string region_path(const std::string& file_name) {
    return file_name.starts_with('/') ? file_name : "/dev/shm/" + file_name;
}

// False when somebody has removed the file behind `fd` and perhaps made another of its name.
bool still_names(const std::string& path, int fd) {
    struct stat named {};
    struct stat held {};
    return stat(path.c_str(), &named) == 0 && fstat(fd, &held) == 0 &&
           named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

}  // namespace

uint64_t memory_available() {
    // A control group's limit shows only as SIGBUS or an OOM kill at first touch: look before.
    return std::min({kib_field("/proc/meminfo", "MemAvailable:"), control_group_memory_left(),
                     address_space_left(), resource_limit(RLIMIT_FSIZE)});
}

std::string_view name_of(PageKind kind) {
    switch (kind) {
        case PageKind::huge_2m:
            return "2M";
        case PageKind::transparent_huge:
            return "THP";
        case PageKind::small_4k:
            return "4K";
    }
    return "unknown";
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      page_kind_(other.page_kind_),
      remove_path_(std::exchange(other.remove_path_, {})),
      maker_(other.maker_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    if (this != &other) {
        release();
        fd_ = std::move(other.fd_);
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
        page_kind_ = other.page_kind_;
        remove_path_ = std::exchange(other.remove_path_, {});
        maker_ = other.maker_;
    }
    return *this;
}

SharedMemory::~SharedMemory() {
    release();
}

void SharedMemory::release() {
    if (data_ != nullptr) {
        munmap(data_, size_);
        data_ = nullptr;
    }
    // A forked child that ends does not take its parent's region away, nor do we another's.
    if (!remove_path_.empty() && maker_ == getpid() && still_names(remove_path_, fd_.get())) {
        unlink(remove_path_.c_str());
    }
    remove_path_.clear();
    fd_.close();
}

void SharedMemory::map(const std::string& what) {
    void* address = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (address == MAP_FAILED) {
        throw UsageError("cannot map " + what + " (" + mebibytes(size_) + "): " + errno_text());
    }
    data_ = static_cast<std::byte*>(address);
}

SharedMemory SharedMemory::anonymous(const std::string& what, size_t bytes, bool huge) {
    if (bytes > memory_available()) {
        throw_no_memory(what, bytes, "more than the machine or its limits allow");
    }
    if (huge) {
        SharedMemory memory;
        if (memory.make_anonymous(rounded_up(bytes, huge_page), MFD_HUGETLB | MFD_HUGE_2MB)) {
            memory.page_kind_ = PageKind::huge_2m;
            return memory;
        }
        // Too few huge pages are reserved on this machine: transparent or small ones do.
    }
    SharedMemory memory;
    if (!memory.make_anonymous(rounded_up(bytes, huge ? huge_page : small_page), 0)) {
        throw_no_memory(what, bytes, errno_text());
    }
    if (huge && has_transparent_huge_pages(memory.data_, memory.size_)) {
        memory.page_kind_ = PageKind::transparent_huge;
    }
    return memory;
}

bool SharedMemory::make_anonymous(size_t size, unsigned int memfd_flags) {
    fd_ = FileDescriptor(memfd_create("echelle", MFD_CLOEXEC | MFD_ALLOW_SEALING | memfd_flags));
    if (!fd_ && memfd_flags == 0) {
        throw RunError("cannot make memory to share (memfd_create): " + errno_text() +
                       "; in a container: its seccomp profile");
    }
    if (!fd_ || ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
        return false;
    }
    data_ = map_aligned(fd_.get(), size, size % huge_page == 0 ? huge_page : small_page);
    if (data_ == nullptr) {
        return false;
    }
    size_ = size;
    if (size % huge_page == 0) {
        madvise(data_, size_, MADV_HUGEPAGE);
    }
    if (!populate(fd_.get(), data_, size_)) {
        return false;
    }
    fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return true;
}

bool SharedMemory::touch_pages(int64_t deadline_ns) const {
    const size_t page = page_kind_ == PageKind::huge_2m ? huge_page : small_page;
    for (size_t at = 0; at < size_; at += huge_page) {
        if (monotonic_ns() >= deadline_ns) {
            return false;
        }
        const size_t bytes = std::min(huge_page, size_ - at);
        // Many pages in one call; that it fails (an older kernel) costs only time.
        madvise(data_ + at, bytes, MADV_POPULATE_WRITE);
        for (size_t offset = 0; offset < bytes; offset += page) {
            static_cast<void>(*static_cast<const volatile std::byte*>(data_ + at + offset));
        }
    }
    return true;
}

SharedMemory SharedMemory::create_named(const std::string& file_name, size_t bytes) {
    const std::string path = region_path(file_name);
    // /dev/shm may be as large as the memory: reserving too much would end in an OOM kill.
    if (bytes > memory_available()) {
        throw_no_memory(path, bytes, "more than the machine or its limits allow");
    }
    unlink(path.c_str());
    SharedMemory memory;
    memory.fd_ = FileDescriptor(
        open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!memory.fd_) {
        throw UsageError("cannot make the shared-memory region " + path + ": " + errno_text());
    }
    memory.remove_path_ = path;
    memory.maker_ = getpid();
    memory.size_ = rounded_up(bytes, small_page);
    if (const int error = reserve(memory.fd_.get(), memory.size_); error != 0) {
        throw_no_memory(path, bytes, errno_text(error));
    }
    memory.map(path);
    return memory;
}

SharedMemory SharedMemory::from_descriptor(FileDescriptor fd, const std::string& what) {
    SharedMemory memory;
    memory.fd_ = std::move(fd);
    struct stat status {};
    if (fstat(memory.fd_.get(), &status) != 0 || status.st_size <= 0) {
        throw UsageError("cannot take over " + what + ": " + errno_text());
    }
    memory.size_ = static_cast<size_t>(status.st_size);
    memory.map(what);
    return memory;
}

SharedMemory SharedMemory::open_named(const std::string& file_name) {
    const std::string path = region_path(file_name);
    SharedMemory memory;
    memory.fd_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!memory.fd_) {
        const std::string why = errno_text();
        throw UsageError("cannot open the shared-memory region " + path + ": " + why +
                         (errno == ENOENT ? "; start its producer first" : ""));
    }
    struct stat status {};
    if (fstat(memory.fd_.get(), &status) != 0 || status.st_size <= 0) {
        throw UsageError("the shared-memory region " + path +
                         " is empty: its producer has not made it");
    }
    memory.size_ = static_cast<size_t>(status.st_size);
    memory.map(path);
    return memory;
}

}  // namespace echelle
