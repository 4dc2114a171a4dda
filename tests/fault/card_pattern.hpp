// The frames that the faulty card sends and the test expects: every frame differs from every other,
// so that one that is torn, stale or put together wrongly cannot look right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace echelle {

class CardPattern {
  public:
    explicit CardPattern(size_t payload_bytes)
        : payload_bytes_(payload_bytes), noise_((payload_bytes + spread) / sizeof(uint64_t) + 1) {
        uint64_t state = 1;
        for (uint64_t& word : noise_) {
            // SplitMix64 (Steele, Lea, Flood 2014).
            state += 0x9E3779B97F4A7C15;
            uint64_t mixed = state;
            mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
            word = mixed ^ (mixed >> 31);
        }
    }

    // The frame's number stands in its first 8 bytes.
    void write(uint64_t number, std::span<std::byte> payload) const {
        std::memcpy(payload.data(), begin(number), payload_bytes_);
        std::memcpy(payload.data(), &number, sizeof number);
    }
    static uint64_t number_of(std::span<const std::byte> payload) {
        uint64_t number = 0;
        std::memcpy(&number, payload.data(), sizeof number);
        return number;
    }
    bool is_right(std::span<const std::byte> payload) const {
        return std::memcmp(payload.data() + sizeof(uint64_t),
                           begin(number_of(payload)) + sizeof(uint64_t),
                           payload_bytes_ - sizeof(uint64_t)) == 0;
    }

  private:
    static constexpr size_t step = 8;
    static constexpr size_t turns = 4096;
    static constexpr size_t spread = step * turns;

    const std::byte* begin(uint64_t number) const {
        return reinterpret_cast<const std::byte*>(noise_.data()) + number % turns * step;
    }

    size_t payload_bytes_;
    std::vector<uint64_t> noise_;
};

}  // namespace echelle
