// Shared memory that never turns into SIGBUS: pages are reserved when it is made.
//
// Owner: whoever holds the object; unmapping and closing are in the destructor. Processes forked
// later inherit the mapping. Anonymous memory (memfd) vanishes with its last user, so nothing is
// left behind after any kind of death; a named region is a file in /dev/shm that outside programs
// can map, removed by its maker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/file_descriptor.hpp"

namespace echelle {

enum class PageKind { huge_2m, transparent_huge, small_4k };
std::string_view name_of(PageKind kind);  // "2M", "THP", "4K"

// Bytes that this process may still take for shared memory: of the machine, its control groups and
// its limits on address space and file size (which count for memory files too), the least.
uint64_t memory_available();

class SharedMemory {
  public:
    SharedMemory() = default;
    SharedMemory(SharedMemory&&) noexcept;
    SharedMemory& operator=(SharedMemory&&) noexcept;
    ~SharedMemory();

    // A sealed memfd of at least `bytes`, all pages reserved and zero. With `huge`, 2 MiB pages if
    // the kernel has enough free, else transparent huge pages if it gives them to shared memory,
    // else 4 KiB pages. Throws UsageError when memory does not suffice (the message says how much
    // was asked for and how much is available).
    static SharedMemory anonymous(const std::string& what, size_t bytes, bool huge);

    // Makes /dev/shm/`file_name` of at least `bytes`, mode 0600, reserved and zero. An existing
    // file of that name is replaced: the caller has made sure that nobody uses it. The file is
    // removed by the destructor in the process that made it. Throws UsageError.
    static SharedMemory create_named(const std::string& file_name, size_t bytes);

    // Maps an existing /dev/shm/`file_name`, or any file when the name begins with '/', for reading
    // and writing. Throws UsageError when it does not exist, cannot be mapped or is empty.
    static SharedMemory open_named(const std::string& file_name);

    // Maps memory that another process made, from its descriptor, which is taken over.
    static SharedMemory from_descriptor(FileDescriptor fd, const std::string& what);

    int descriptor() const { return fd_.get(); }
    std::byte* data() const { return data_; }
    size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }
    PageKind page_kind() const { return page_kind_; }
    // Touches every page until `deadline_ns` (CLOCK_MONOTONIC), so that this process need not meet
    // them one by one later: the mapping, and under a hypervisor its own table, is made for each
    // process. Changes no byte and may run beside anything; true when all have been touched.
    bool touch_pages(int64_t deadline_ns) const;
    explicit operator bool() const { return data_ != nullptr; }

  private:
    // False, with errno, when memory does not suffice; the object is then to be thrown away.
    bool make_anonymous(size_t size, unsigned int memfd_flags);
    void map(const std::string& what);
    void release();

    FileDescriptor fd_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
    PageKind page_kind_ = PageKind::small_4k;
    std::string remove_path_;  // set for a region that this object made
    pid_t maker_ = 0;          // the process that made it
};

}  // namespace echelle
