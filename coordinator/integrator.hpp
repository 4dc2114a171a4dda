// Makes finished spectra of blocks: checks their packets, merges the parts of an integration,
// numbers the spectra of each channel and hands them to the sinks in time order.
//
// Owned and called by the collector thread, with blocks in the order of their numbers. A block that
// holds a whole integration passes through with only its trailer renewed. Parts are merged in
// double, weighted by their segment counts (mean), by the largest value (max), or kept row by row
// until the integration ends (median).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/ledger.hpp"
#include "common/packet.hpp"
#include "common/stream.hpp"
#include "common/welch_parameters.hpp"
#include "coordinator/accounts.hpp"
#include "coordinator/sinks/sink.hpp"
#include "worker/block_result.hpp"
#include "worker/spectrum_labels.hpp"

namespace echelle {

class Integrator {
  public:
    // Sinks must outlive the integrator. `frames_per_integration` 0: the whole stream.
    Integrator(const Stream& stream, const WelchParameters& welch, uint64_t frames_per_integration,
               std::vector<SpectrumSink*> sinks);

    // False when a packet's checksum is wrong: the block then counts as missing.
    bool add(const BlockDescriptor& block, const BlockResult& result);
    // The block was dropped, overwritten or failed: its channels lack its segments.
    void add_missing(const BlockDescriptor& block);
    // The stream has ended: the last integration is closed. The sinks are finished by their owner.
    void finish();

    const SpectraBooks& books() const { return books_; }

  private:
    // One channel of the integration that is being merged.
    struct Channel {
        ChannelSums sums;
        uint64_t segments = 0;
        uint32_t worker = worker_unknown;
        bool has_parts = false;
        bool gap = false;            // to be told by the channel's next spectrum
        uint64_t sequence = 0;       // of the channel's next spectrum
        std::vector<double> values;  // mean: weighted sum; max: largest
        std::vector<float> rows;     // median: every segment's spectrum
    };

    void enter(const BlockDescriptor& block);
    void close_integration(bool cut_short);
    uint64_t segments_missing(bool cut_short) const;
    bool check(const BlockDescriptor& block, const BlockResult& result);
    void pass_through(const BlockDescriptor& block, const BlockResult& result);
    void merge(const BlockDescriptor& block, const BlockResult& result);
    void merge_values(Channel& channel, const PacketView& part, uint32_t segments);
    void emit_merged(uint32_t channel_number, Channel& channel, uint64_t segments_expected,
                     uint16_t flags);
    void values_of(Channel& channel, std::span<float> values);
    void emit(std::span<const std::byte> packet, uint16_t flags);

    AverageMode mode_;
    uint64_t frames_per_integration_;
    uint32_t samples_per_frame_;
    uint32_t hop_;
    SpectrumLabels labels_;
    std::vector<SpectrumSink*> sinks_;
    std::vector<Channel> channels_;
    std::vector<PacketView> views_;      // of the block at hand
    std::vector<float> packet_storage_;  // float for its alignment
    std::vector<float> column_;          // one bin over all segments, for the median

    bool open_ = false;  // an integration is being merged
    uint64_t integration_ = 0;
    uint64_t first_sample_ = 0;
    uint64_t frames_seen_ = 0;
    uint64_t segments_expected_ = 0;  // of the frames seen
    uint64_t segments_lost_ = 0;      // of the frames known to be lost between them
    bool saw_last_frame_ = false;
    bool ends_in_short_frame_ = false;  // of the block at hand: the stream ended in its last frame
    SpectraBooks books_;
};

}  // namespace echelle
