#include "clients/record/row_assembler.hpp"

#include <span>
#include <utility>

namespace echelle::record {

RowAssembler::RowAssembler(const client::SpectrumPacket& example,
                           const std::vector<uint32_t>& channels, uint32_t run,
                           ReceivedBooks& books)
    : example_(example), run_(run), books_(books), last_sequence_(channels.size()) {
    example_.data = {};
    for (size_t i = 0; i < channels.size(); ++i) {
        index_of_.emplace(channels[i], i);
    }
}

bool RowAssembler::fits(const client::SpectrumPacket& packet) const {
    return have_same_shape(packet, example_);
}

std::vector<SpectrumRow> RowAssembler::add(const client::SpectrumPacket& packet) {
    std::vector<SpectrumRow> complete;
    const auto found = index_of_.find(packet.channel_id);
    if (found == index_of_.end()) {
        books_.unknown_channel += 1;
        return complete;
    }
    if (!fits(packet)) {
        books_.other_shape += 1;
        return complete;
    }
    const uint64_t sample = packet.trailer->first_sample;
    if ((last_sample_ && sample <= *last_sample_) || (row_ && sample < row_->first_sample)) {
        books_.late += 1;
        return complete;
    }
    if (row_ && sample > row_->first_sample) {
        complete.push_back(*finish());
    }
    if (!row_) {
        row_.emplace(index_of_.size(), example_.fft_size);
        row_->run = run_;
        row_->first_sample = sample;
        row_->time_ns = packet.trailer->timestamp_ns;
        row_->segments_expected = packet.trailer->segments_expected;
    }
    if ((row_->flags[found->second] & flag_missing) == 0) {
        books_.repeated += 1;
        return complete;
    }
    take(packet, found->second);
    if (row_->present == index_of_.size()) {
        complete.push_back(*finish());
    }
    return complete;
}

void RowAssembler::take(const client::SpectrumPacket& packet, size_t index) {
    const client::Trailer& trailer = *packet.trailer;
    const size_t bins = example_.fft_size;
    packet.copy_values(std::span(row_->values).subspan(index * bins, bins));
    row_->present += 1;
    row_->sequence[index] = trailer.sequence;
    row_->flags[index] = trailer.flags & static_cast<uint16_t>(~flag_missing);
    row_->segments_averaged[index] = trailer.segments_averaged;
    row_->over_range_count[index] = trailer.over_range_count;
    row_->mean[index] = trailer.mean;
    row_->rms[index] = trailer.rms;
    count_missed(index, trailer.sequence);
}

void RowAssembler::count_missed(size_t index, uint64_t sequence) {
    std::optional<uint64_t>& last = last_sequence_[index];
    if (last && sequence > *last) {
        books_.missed += sequence - *last - 1;
    }
    last = sequence;
}

std::optional<SpectrumRow> RowAssembler::finish() {
    if (row_) {
        last_sample_ = row_->first_sample;
    }
    return std::exchange(row_, std::nullopt);
}

void RowAssembler::begin_run(uint32_t run) {
    run_ = run;
    last_sample_.reset();
    last_sequence_.assign(last_sequence_.size(), std::nullopt);
}

}  // namespace echelle::record
