// Philox4x32-10: random numbers without a state. Block number in, four random words out, so that
// any sample of any channel can be made alone and in any order.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC'11, doi:10.1145/2063384.2063405.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace echelle {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxKey philox_key(uint64_t seed) {
    return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// `lanes` blocks at once, in place: word w of block l stands in words[w][l]. The lanes are
// independent, which is what lets the compiler and the processor work on several together.
template <size_t lanes>
inline void philox4x32(std::array<std::array<uint32_t, lanes>, 4>& words, PhiloxKey key) {
    constexpr int rounds = 10;
    for (int round = 0; round < rounds; ++round) {
        for (size_t lane = 0; lane < lanes; ++lane) {
            const uint64_t even = uint64_t{0xD2511F53} * words[0][lane];
            const uint64_t odd = uint64_t{0xCD9E8D57} * words[2][lane];
            words[0][lane] = static_cast<uint32_t>(odd >> 32) ^ words[1][lane] ^ key[0];
            words[2][lane] = static_cast<uint32_t>(even >> 32) ^ words[3][lane] ^ key[1];
            words[1][lane] = static_cast<uint32_t>(odd);
            words[3][lane] = static_cast<uint32_t>(even);
        }
        key[0] += 0x9E3779B9;  // Weyl sequences: the golden ratio and sqrt(3) - 1
        key[1] += 0xBB67AE85;
    }
}

inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
    std::array<std::array<uint32_t, 1>, 4> words{
        {{counter[0]}, {counter[1]}, {counter[2]}, {counter[3]}}};
    philox4x32<1>(words, key);
    return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

}  // namespace echelle
