// Plays a recording into the ring: all of it or the part that was asked for, once or again and
// again, as fast as the workers go or at a pace.
#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/replay_pace.hpp"
#include "coordinator/sources/replay_plan.hpp"

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

class RecordingSource : public Source {
  public:
    RecordingSource(Recording recording, ReplayKeys keys)
        : recording_(std::move(recording)),
          keys_(std::move(keys)),
          plan_(recording_.pieces, keys_, recording_.stream.rate, recording_.name) {}

    Stream stream() const override { return recording_.stream; }
    std::optional<uint64_t> total_samples() const override { return plan_.total_samples(); }
    std::optional<uint64_t> longest_stretch() const override { return plan_.longest_stretch(); }
    OverrunPolicy default_policy() const override {
        // Played at a pace it stands for a live source, and behaves like one.
        return keys_.speed ? OverrunPolicy::drop : OverrunPolicy::block;
    }
    std::string describe() const override {
        const std::string replay = keys_.text();
        return recording_.describe() + (replay.empty() ? "" : "; played " + replay);
    }
    nlohmann::json facts() const override;
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override;

  private:
    uint32_t fill(ReplayPosition& position, std::span<int16_t> frame);

    Recording recording_;
    ReplayKeys keys_;
    ReplayPlan plan_;
    std::atomic<uint64_t> passes_done_{0};
    std::atomic<uint64_t> late_frames_{0};
};

nlohmann::json RecordingSource::facts() const {
    nlohmann::json facts = recording_.facts();
    nlohmann::json& replay = facts["replay"];
    const ReplayStretch& first = plan_.stretches().front();
    replay["speed"] = keys_.speed ? nlohmann::json(keys_.speed->value()) : nlohmann::json("asap");
    replay["first_sample"] = first.index;
    replay["samples_per_channel"] = plan_.samples();
    replay["gaps"] = plan_.gaps();
    replay["passes"] = keys_.passes ? nlohmann::json(*keys_.passes) : nlohmann::json("endless");
    replay["passes_done"] = passes_done_.load(std::memory_order_relaxed);
    replay["late_frames"] = late_frames_.load(std::memory_order_relaxed);
    return facts;
}

void RecordingSource::run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) {
    ReplayPosition position(plan_);
    std::optional<ReplayPace> pace;
    if (keys_.speed) {
        pace.emplace(recording_.stream, *keys_.speed, position.index(), late_frames_);
    }
    FrameStamp stamp;
    while (!position.at_end() && room_for_frame(writer, policy, stop)) {
        stamp.flags = position.at_gap() ? frame_gap_before : 0U;
        stamp.first_sample = recording_.first_index + position.index();
        const uint64_t begin = position.index();
        stamp.valid_samples = fill(position, writer.begin());
        if (pace && !pace->wait_until_due(begin + stamp.valid_samples, stop)) {
            return;
        }
        writer.commit(stamp);
        ++stamp.frame_index;
        passes_done_.store(position.passes_done(), std::memory_order_relaxed);
    }
}

// Up to the frame's end, the next gap or the end of all. Returns how many samples the frame has.
uint32_t RecordingSource::fill(ReplayPosition& position, std::span<int16_t> frame) {
    const uint32_t samples = recording_.stream.geometry.samples;
    uint32_t filled = 0;
    do {
        const auto count = static_cast<uint32_t>(
            std::min<uint64_t>(samples - filled, position.samples_left_in_stretch()));
        recording_.store->read(recording_.pieces[position.piece()], position.sample_of_piece(),
                               count, filled, frame);
        filled += count;
        position.advance(count);
    } while (filled < samples && !position.at_end() && !position.at_gap());
    return filled;
}

}  // namespace

std::unique_ptr<Source> source_of(Recording recording, const ReplayKeys& keys) {
    return std::make_unique<RecordingSource>(std::move(recording), keys);
}

}  // namespace echelle
