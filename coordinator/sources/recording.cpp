#include "coordinator/sources/recording.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

constexpr size_t most_listed_gaps = 1000;
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
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(
            recording_.stream.geometry.samples - filled, piece().samples - done_));
        recording_.store->read(piece(), done_, count, filled, frame);
        done_ += count;
        if (done_ == piece().samples) {
            ++piece_;
            done_ = 0;
        }
        return filled + count;
    }

  private:
    const SamplePiece& piece() const { return recording_.pieces[piece_]; }

    const Recording& recording_;
    size_t piece_ = 0;
    uint64_t done_ = 0;  // samples of the present piece
};

class RecordingSource : public Source {
  public:
    explicit RecordingSource(Recording recording) : recording_(std::move(recording)) {}

    Stream stream() const override { return recording_.stream; }
    std::optional<uint64_t> total_samples() const override { return recording_.total_samples(); }
    std::optional<uint64_t> longest_stretch() const override {
        return recording_.longest_stretch();
    }
    OverrunPolicy default_policy() const override { return OverrunPolicy::block; }
    std::string describe() const override { return recording_.describe(); }
    nlohmann::json facts() const override { return recording_.facts(); }
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        recording_.play(writer, policy, stop);
    }

  private:
    Recording recording_;
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

size_t Recording::gaps() const {
    return static_cast<size_t>(std::count_if(
        pieces.begin(), pieces.end(), [](const SamplePiece& piece) { return piece.gap_before; }));
}

std::string Recording::describe() const {
    std::string text = name + ": " + text_of(stream) + ", " + coding + " values, " +
                       std::to_string(total_samples()) + " samples per channel";
    const size_t count = gaps();
    if (count > 0) {
        text += ", " + std::to_string(count) + (count == 1 ? " gap" : " gaps");
    }
    for (const std::string& remark : remarks) {
        text += "; " + remark;
    }
    return text;
}

nlohmann::json Recording::facts() const {
    nlohmann::json facts;
    facts["samples_per_channel"] = total_samples();
    facts["longest_stretch"] = longest_stretch();
    nlohmann::json& listed = facts["gaps"]["first"] = nlohmann::json::array();
    uint64_t position = 0;
    uint64_t missing = 0;
    for (const SamplePiece& piece : pieces) {
        if (piece.gap_before && listed.size() < most_listed_gaps) {
            listed.push_back({{"after_sample", position}, {"missing", piece.samples_missing}});
        }
        position += piece.samples_missing + piece.samples;
        missing += piece.samples_missing;
    }
    facts["gaps"]["count"] = gaps();
    facts["gaps"]["samples_missing"] = missing;
    facts["remarks"] = remarks;
    if (!annotations.empty()) {
        facts["annotations"] = nlohmann::json::parse(annotations);
        facts["annotations_left_out"] = annotations_left_out;
    }
    return facts;
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

std::unique_ptr<Source> source_of(Recording recording) {
    return std::make_unique<RecordingSource>(std::move(recording));
}

}  // namespace echelle
