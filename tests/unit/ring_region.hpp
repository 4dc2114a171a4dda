// A ring's region as an outside program makes it: a file in /dev/shm, filled by the byte offsets of
// docs/ring.md and not by way of the structs that the library reads it with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/file_descriptor.hpp"

namespace echelle {

inline std::string unused_ring_name() {
    static int count = 0;
    return "unit-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

// A running ring of 4 frames of 2 channels x 1024 samples, channel-major i16: 4096 bytes a frame.
class RingRegion {
  public:
    static constexpr size_t usual_bytes = 4096 + 4 * 4096;

    explicit RingRegion(size_t bytes = usual_bytes)
        : name_(unused_ring_name()), path_("/dev/shm/echelle-" + name_), bytes_(bytes) {
        const FileDescriptor fd(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
            throw std::runtime_error("cannot make " + path_);
        }
        if (bytes > 0) {
            void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
            if (address == MAP_FAILED) {
                throw std::runtime_error("cannot map " + path_);
            }
            data_ = static_cast<std::byte*>(address);
        }
        if (bytes >= 256) {
            fill_header();
        }
    }
    RingRegion(const RingRegion&) = delete;
    RingRegion& operator=(const RingRegion&) = delete;
    ~RingRegion() {
        if (data_ != nullptr) {
            munmap(data_, bytes_);
        }
        unlink(path_.c_str());
    }

    const std::string& name() const { return name_; }
    const std::string& path() const { return path_; }
    std::byte* data() const { return data_; }

    template <typename T>
    void put(size_t offset, T value) {
        std::memcpy(data_ + offset, &value, sizeof value);
    }
    template <typename T>
    T get(size_t offset) const {
        T value{};
        std::memcpy(&value, data_ + offset, sizeof value);
        return value;
    }

    void fill_header() {
        std::memset(data_, 0, 256);
        std::memcpy(data_, "ECHRING", 8);
        put<uint32_t>(8, 0x00010000);
        put<uint32_t>(12, 256);
        put<uint32_t>(16, 2);
        put<uint32_t>(20, 1024);
        put<uint32_t>(24, 1);
        put<uint32_t>(28, 1);
        put<uint64_t>(32, 10'000'000);
        put<uint64_t>(40, 1);
        put<int64_t>(48, 1'600'000'000'000'000'000);
        put<uint64_t>(56, 4);
        put<uint64_t>(64, 4096);
        put<uint64_t>(72, 4096);
        put<uint64_t>(80, bytes_);
        put<int32_t>(88, -128);
        put<int32_t>(92, 127);
        put<uint32_t>(140, 1);
    }

  private:
    std::string name_;
    std::string path_;
    size_t bytes_;
    std::byte* data_ = nullptr;
};

}  // namespace echelle
