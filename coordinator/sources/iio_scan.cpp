#include "coordinator/sources/iio_scan.hpp"

#include <algorithm>
#include <numeric>

#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

size_t rounded_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

std::string format_text(const IioElement& element) {
    return std::string(element.is_big_endian ? "be:" : "le:") + (element.is_signed ? "s" : "u") +
           std::to_string(element.bits) + "/" + std::to_string(element.storage_bits) +
           (element.repeat > 1 ? "X" + std::to_string(element.repeat) : "") + ">>" +
           std::to_string(element.shift);
}

void check_format(const IioElement& element) {
    constexpr uint32_t most_repeats = 4096;
    const bool is_storage = element.storage_bits == 8 || element.storage_bits == 16 ||
                            element.storage_bits == 32 || element.storage_bits == 64;
    if (!is_storage || element.bits < 1 || element.shift >= element.storage_bits ||
        element.bits > element.storage_bits - element.shift || element.repeat < 1 ||
        element.repeat > most_repeats) {
        throw UsageError("channel '" + element.name + "' has the scan format " +
                         format_text(element) + ", which cannot be: its driver is at fault");
    }
}

void check_width(const IioElement& element, uint32_t dropped_bits) {
    constexpr uint32_t widest = 16;
    if (element.bits <= dropped_bits) {
        throw UsageError("drop-bits=" + std::to_string(dropped_bits) + " leaves nothing of the " +
                         std::to_string(element.bits) + " bits of channel '" + element.name +
                         "': give fewer");
    }
    if (element.bits - dropped_bits > widest) {
        throw UsageError("channel '" + element.name + "' has values of " +
                         std::to_string(element.bits) + " bits (" + format_text(element) +
                         "), which 16 bits don't hold: add the key drop-bits=" +
                         std::to_string(element.bits - widest) +
                         " to leave out the lowest ones, or choose other channels");
    }
}

}  // namespace

IioScan::IioScan(std::vector<IioElement> elements, uint32_t dropped_bits)
    : dropped_bits_(dropped_bits) {
    ECHELLE_INVARIANT(!elements.empty());
    std::sort(elements.begin(), elements.end(),
              [](const IioElement& a, const IioElement& b) { return a.index < b.index; });
    size_t largest = 1;
    uint32_t widest = 0;
    for (const IioElement& element : elements) {
        check_format(element);
        check_width(element, dropped_bits);
        const size_t storage = element.storage_bits / 8;
        const size_t size = storage * element.repeat;
        const size_t offset = rounded_up(unpadded_bytes_, size);
        for (uint32_t i = 0; i < element.repeat; ++i) {
            places_.push_back({offset + i * storage, storage, element.shift, element.bits,
                               element.is_signed, element.is_big_endian});
        }
        unpadded_bytes_ = offset + size;
        largest = std::max(largest, size);
        widest = std::max(widest, element.bits - dropped_bits);
    }
    bytes_ = rounded_up(unpadded_bytes_, largest);
    least_ = static_cast<int16_t>(-(1 << (widest - 1)));
    most_ = static_cast<int16_t>((1 << (widest - 1)) - 1);
}

size_t IioScan::common_scans() const {
    return bytes_ / std::gcd(bytes_, unpadded_bytes_);
}

int16_t IioScan::value_at(const std::byte* bytes, const Place& place) const {
    uint64_t stored = 0;
    for (size_t i = 0; i < place.storage_bytes; ++i) {
        const size_t from = place.is_big_endian ? i : place.storage_bytes - 1 - i;
        stored = stored << 8U | std::to_integer<uint64_t>(bytes[from]);
    }
    // What stands beside the bits that count may be anything: status, or another converter's.
    const uint32_t unused = 64 - place.bits;
    const uint64_t at_top = (stored >> place.shift) << unused;
    const auto value = static_cast<int64_t>(
        place.is_signed ? at_top : at_top ^ (uint64_t{1} << 63U));  // offset binary
    return static_cast<int16_t>(value >> (unused + dropped_bits_));
}

void IioScan::decode(std::span<const std::byte> scans, std::span<int16_t> out) const {
    ECHELLE_INVARIANT(scans.size() % bytes_ == 0 &&
                      out.size() == scans.size() / bytes_ * places_.size());
    auto to = out.begin();
    for (size_t scan = 0; scan < scans.size(); scan += bytes_) {
        for (const Place& place : places_) {
            *to++ = value_at(scans.data() + scan + place.offset, place);
        }
    }
}

}  // namespace echelle
