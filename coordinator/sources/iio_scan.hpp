// How the kernel's industrial I/O (IIO) packs a scan: one sample of each enabled channel. Pure.
//
// Linux, Documentation/iio/ and drivers/iio/industrialio-buffer.c (iio_compute_scan_bytes):
// elements stand in the order of their index, each at a multiple of its own size, and a scan ends
// at a multiple of its largest element. libiio 0.24 leaves that padding at the end out of its
// sample size (libiio PR#1010), so bytes are taken apart here by the kernel's rule.
//
// Element format, sysfs "type": [le|be]:[s|u]BITS/STORAGE[XREPEAT]>>SHIFT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace echelle {

struct IioElement {
    std::string name;
    uint64_t index = 0;         // orders the elements of a scan; gaps mean nothing
    uint32_t bits = 0;          // that count
    uint32_t storage_bits = 0;  // 8, 16, 32 or 64
    uint32_t repeat = 1;        // values of this format, one behind the other
    uint32_t shift = 0;         // to the right, before the bits are taken
    bool is_signed = false;
    bool is_big_endian = false;
};

class IioScan {
  public:
    // Elements in any order, at least one. `dropped_bits` are left out at the low end of every
    // value, to make wide converters fit. Throws UsageError, naming the element, on an impossible
    // format and on values that 16 bits do not hold.
    IioScan(std::vector<IioElement> elements, uint32_t dropped_bits);

    uint32_t values() const { return static_cast<uint32_t>(places_.size()); }  // repeats counted
    size_t bytes() const { return bytes_; }                    // from one scan to the next
    size_t unpadded_bytes() const { return unpadded_bytes_; }  // as libiio 0.24 counts
    // Scans of which both counts agree on where they end: refills are multiples of it.
    size_t common_scans() const;
    // The rails of the widest values, after dropping.
    int16_t least() const { return least_; }
    int16_t most() const { return most_; }

    // Takes whole scans apart: value v of scan s goes to out[s * values() + v]. Unsigned values are
    // offset binary: the middle of their range becomes 0.
    void decode(std::span<const std::byte> scans, std::span<int16_t> out) const;

  private:
    struct Place {
        size_t offset = 0;
        size_t storage_bytes = 0;
        uint32_t shift = 0;
        uint32_t bits = 0;
        bool is_signed = false;
        bool is_big_endian = false;
    };
    int16_t value_at(const std::byte* bytes, const Place& place) const;

    std::vector<Place> places_;
    uint32_t dropped_bits_;
    size_t bytes_ = 0;
    size_t unpadded_bytes_ = 0;
    int16_t least_ = 0;
    int16_t most_ = 0;
};

}  // namespace echelle
