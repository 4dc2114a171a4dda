// Everything that a packet says beside its values: the header and trailer fields that follow from
// the stream, the Welch parameters and a channel's sums. Used by workers for what they compute and
// by the collector for what it merges, so that both label alike.
#pragma once

#include <cstdint>

#include "common/packet.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "worker/welch_engine.hpp"

namespace echelle {

class SpectrumLabels {
  public:
    SpectrumLabels(const Stream& stream, const WelchParameters& parameters);

    uint32_t bins() const { return bins_; }
    PacketHeader header(uint32_t channel, uint64_t first_sample, uint32_t values) const;
    // `flags` are added to those that follow from the rest. Segment counts above 2^32 - 1 are given
    // as that. `sequence` is left 0: only the collector numbers spectra.
    PacketTrailer trailer(const ChannelSums& sums, uint64_t first_sample,
                          uint64_t segments_averaged, uint64_t segments_expected,
                          uint16_t flags) const;

  private:
    Stream stream_;
    WelchParameters parameters_;
    uint32_t bins_;
    double unit_;  // volts per count, or 1
};

}  // namespace echelle
