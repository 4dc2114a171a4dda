// Puts packets together to rows: those of the same first sample. They come in time order, so a
// packet of a later sample ends a row, as do all its channels. Belongs to the thread that reads
// packets.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "clients/record/record_books.hpp"
#include "clients/record/spectrum_row.hpp"
#include "echelle/packet.hpp"

namespace echelle::record {

class RowAssembler {
  public:
    // `example`: a packet of the shape that all must have. Its bytes are not looked at again.
    RowAssembler(const client::SpectrumPacket& example, const std::vector<uint32_t>& channels,
                 uint32_t run, ReceivedBooks& books);

    bool fits(const client::SpectrumPacket& packet) const;
    // Takes the packet in, or counts why not. Gives the rows that are complete by then: none, one,
    // or two (the row before and, of one channel, this one).
    std::vector<SpectrumRow> add(const client::SpectrumPacket& packet);
    bool has_begun_row() const { return row_.has_value(); }
    // The row that was begun, if any: nothing more comes for it.
    std::optional<SpectrumRow> finish();
    // The coordinator began anew: so do sequence numbers and samples.
    void begin_run(uint32_t run);

  private:
    void take(const client::SpectrumPacket& packet, size_t index);
    void count_missed(size_t index, uint64_t sequence);

    client::SpectrumPacket example_;
    std::unordered_map<uint32_t, size_t> index_of_;  // channel's number -> place in the row
    uint32_t run_;
    ReceivedBooks& books_;
    std::optional<SpectrumRow> row_;
    std::optional<uint64_t> last_sample_;                 // of the row that ended last
    std::vector<std::optional<uint64_t>> last_sequence_;  // of each channel
};

}  // namespace echelle::record
