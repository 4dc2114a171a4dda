// The header of a block of GUPPI raw voltages: cards of 80 characters to a checked struct. Touches
// no file.
//
// As the GUPPI data acquisition writes them (guppi_daq; its keys are listed in the GBT's "GUPPI
// status shared memory" note) and rawspec, DSPSR and baseband read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/rational.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// A header without END among its first 4096 cards is none.
inline constexpr uint64_t most_guppi_header_bytes = uint64_t{4096} * 80;

struct GuppiHeader {
    uint64_t header_bytes = 0;  // to the first data byte, padding of DIRECTIO included
    uint64_t block_bytes = 0;   // BLOCSIZE
    uint32_t channels = 0;      // OBSNCHAN: frequency channels
    uint32_t polarisations = 0;
    ValueCoding coding = ValueCoding::int8;
    bool time_first = false;  // PKTFMT SIMPLE: [time][channel][polarisation]
    uint64_t overlap = 0;     // samples that the next block repeats
    std::optional<uint64_t> packet_index;
    uint64_t packet_bytes = 0;        // PKTSIZE; 0: not said
    uint64_t packets_per_block = 0;   // PIPERBLK, of hashpipe's recorders; 0: not said
    Rational rate;                    // 1 / TBIN
    std::optional<int64_t> start_ns;  // Unix time of packet 0
    bool dropped_packets = false;     // DROPBLK or NDROP says so

    uint64_t sample_bytes() const {
        return uint64_t{channels} * polarisations * 2 * bytes_of(coding);
    }
    uint64_t block_samples() const { return block_bytes / sample_bytes(); }
    // The index of the block's first sample in the observation, by its packet's.
    std::optional<uint64_t> first_sample() const;
};

// `bytes` begin with a block's header. `polarisations` overrides NPOL when not 0. Throws UsageError
// naming `what`, the card and its value.
GuppiHeader parse_guppi_header(std::string_view bytes, uint32_t polarisations,
                               const std::string& what);

// Whether there is an END card among the first cards of `bytes`.
bool has_guppi_end(std::string_view bytes);

// Whether bytes look like such a header.
bool looks_like_guppi(std::string_view bytes);

}  // namespace echelle
