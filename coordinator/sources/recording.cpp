#include "coordinator/sources/recording.hpp"

#include <algorithm>
#include <numeric>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr int64_t wait_slice_ns = 100'000'000;

// False when `stop` came first. A producer whose frames may be dropped does not ask for room.
bool room_for_frame(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
        if (policy == OverrunPolicy::drop || writer.wait_for_room(wait_slice_ns)) {
            return true;
        }
    }
    return false;
}

// Where in the recording the next frame begins.
class PlayPosition {
  public:
    explicit PlayPosition(const Recording& recording) : recording_(recording) {}

    bool at_end() const { return piece_ == recording_.pieces.size(); }
    bool at_gap() const { return !at_end() && done_ == 0 && piece().gap_before; }
    uint64_t samples_missing() const { return piece().samples_missing; }

    // Copies what still fits of the present piece behind the `filled` samples that `frame` has;
    // returns how many samples it now has.
    uint32_t fill(std::span<int16_t> frame, uint32_t filled) {
        const FrameGeometry& geometry = recording_.stream.geometry;
        const uint64_t offset =
            piece().offset + done_ * file_sample_bytes(geometry, recording_.coding);
        const auto count = static_cast<uint32_t>(
            std::min<uint64_t>(geometry.samples - filled, piece().samples - done_));
        if (geometry.layout == Layout::sample_major || count == geometry.samples) {
            const size_t row = size_t{geometry.channels} * geometry.values_per_sample();
            read_values(recording_.file, offset, recording_.coding,
                        frame.subspan(filled * row, count * row));
        } else {
            fill_rows(frame, filled, offset, count);
        }
        done_ += count;
        if (done_ == piece().samples) {
            ++piece_;
            done_ = 0;
        }
        return filled + count;
    }

  private:
    const SamplePiece& piece() const { return recording_.pieces[piece_]; }

    // A part of a channel-major frame: short rows in the file, rows of full length in the ring.
    void fill_rows(std::span<int16_t> frame, uint32_t filled, uint64_t offset,
                   uint32_t count) const {
        const FrameGeometry& geometry = recording_.stream.geometry;
        const size_t values = geometry.values_per_sample();
        for (size_t channel = 0; channel < geometry.channels; ++channel) {
            const size_t start = (channel * geometry.samples + filled) * values;
            const auto row = frame.subspan(start, count * values);
            read_values(recording_.file, offset, recording_.coding, row);
            offset += row.size() * bytes_of(recording_.coding);
        }
    }

    const Recording& recording_;
    size_t piece_ = 0;
    uint64_t done_ = 0;  // samples of the present piece
};

}  // namespace

uint64_t Recording::total_samples() const {
    return std::accumulate(
        pieces.begin(), pieces.end(), uint64_t{0},
        [](uint64_t sum, const SamplePiece& piece) { return sum + piece.samples; });
}

uint64_t Recording::longest_stretch() const {
    uint64_t longest = 0;
    uint64_t stretch = 0;
    for (const SamplePiece& piece : pieces) {
        stretch = piece.samples + (piece.gap_before ? 0 : stretch);
        longest = std::max(longest, stretch);
    }
    return longest;
}

void Recording::play(RingWriter& writer, OverrunPolicy policy,
                     const std::atomic<bool>& stop) const {
    PlayPosition position(*this);
    FrameStamp stamp;
    while (!position.at_end() && room_for_frame(writer, policy, stop)) {
        stamp.flags = 0;
        if (position.at_gap()) {
            stamp.flags = frame_gap_before;
            stamp.first_sample += position.samples_missing();
        }
        const std::span<int16_t> frame = writer.begin();
        uint32_t filled = position.fill(frame, 0);
        while (filled < stream.geometry.samples && !position.at_end() && !position.at_gap()) {
            filled = position.fill(frame, filled);
        }
        stamp.valid_samples = filled;
        writer.commit(stamp);
        ++stamp.frame_index;
        stamp.first_sample += filled;
    }
}

uint64_t file_sample_bytes(const FrameGeometry& geometry, ValueCoding coding) {
    return uint64_t{geometry.channels} * geometry.values_per_sample() * bytes_of(coding);
}

uint64_t whole_samples(const std::string& path, uint64_t bytes, const FrameGeometry& geometry,
                       ValueCoding coding, bool drop_tail) {
    const uint64_t unit = file_sample_bytes(geometry, coding);
    const uint64_t left_over = bytes % unit;
    if (left_over != 0 && !drop_tail) {
        throw UsageError("'" + path + "' holds " + std::to_string(bytes) +
                         " bytes of samples, not a whole number of samples of " +
                         std::to_string(unit) + " bytes (" + std::to_string(geometry.channels) +
                         " channels x " + std::to_string(unit / geometry.channels) +
                         "): check channels and format, or add the key tail=drop to leave out the "
                         "last " +
                         std::to_string(left_over));
    }
    return bytes / unit;
}

}  // namespace echelle
