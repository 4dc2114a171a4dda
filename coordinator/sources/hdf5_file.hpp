// HDF5 files with samples in them, through HDF5's C library. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

#include "coordinator/sources/sample_store.hpp"

namespace echelle {

// An open HDF5 object of any kind.
class Hdf5Handle {
  public:
    Hdf5Handle() = default;
    explicit Hdf5Handle(hid_t id) : id_(id) {}
    Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
    Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    Hdf5Handle(const Hdf5Handle&) = delete;
    Hdf5Handle& operator=(const Hdf5Handle&) = delete;
    ~Hdf5Handle() {
        if (id_ >= 0) {
            H5Idec_ref(id_);
        }
    }

    hid_t get() const { return id_; }
    explicit operator bool() const { return id_ >= 0; }

  private:
    hid_t id_ = H5I_INVALID_HID;
};

// Opens for reading, without locks: a recorder may still hold the file. Throws UsageError.
Hdf5Handle open_hdf5(const std::string& path);

// A whole number in an attribute of the file. Throws UsageError when it is not there.
uint64_t hdf5_attribute(const Hdf5Handle& file, const std::string& name, const std::string& path);

// A data set of samples [row][channel] of 8- or 16-bit signed integers, or pairs {r, i} of them.
struct Hdf5Samples {
    Hdf5Handle file;
    Hdf5Handle data;
    uint64_t rows = 0;
    uint32_t channels = 0;
    bool is_complex = false;
    ValueCoding coding = ValueCoding::int16_little;  // the width counts: HDF5 swaps by itself
};

// Throws UsageError naming the file, what it holds and the remedy.
Hdf5Samples open_hdf5_samples(const std::string& path, const std::string& name);

// Rows of several files of one kind, opened one by one; a piece's offset is its first row.
class Hdf5Store : public SampleStore {
  public:
    Hdf5Store(std::vector<std::string> paths, std::string name, const FrameGeometry& geometry);
    void read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
              std::span<int16_t> frame) override;

  private:
    void open(uint32_t index);

    std::vector<std::string> paths_;
    std::string name_;
    FrameGeometry geometry_;
    Hdf5Handle value_type_;  // in memory: int16, or two of them
    Hdf5Samples samples_;
    uint32_t open_index_ = 0;
};

}  // namespace echelle
