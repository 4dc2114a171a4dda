// A packet's values as an Eigen array, without a copy.
#pragma once

#include <bit>
#include <stdexcept>

#include <Eigen/Core>

#include "echelle/packet.hpp"

namespace echelle::client {

using SpectrumView = Eigen::Map<const Eigen::ArrayXf, Eigen::Unaligned>;

// Of a 1.x packet, as long as its bytes live. Throws std::invalid_argument where that cannot be: a
// coded packet (use values()), data at an odd address, a big-endian machine.
inline SpectrumView view(const SpectrumPacket& packet) {
    const auto address = std::bit_cast<uintptr_t>(packet.data.data());
    if (packet.coding != Coding::float32 || address % alignof(float) != 0 ||
        std::endian::native != std::endian::little) {
        throw std::invalid_argument("these values cannot be viewed in place: use values()");
    }
    return {reinterpret_cast<const float*>(packet.data.data()),
            static_cast<Eigen::Index>(packet.fft_size)};
}

}  // namespace echelle::client
