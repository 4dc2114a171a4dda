// Plays a recording into the ring: all of it or the part that was asked for, once or again and
// again, as fast as the workers go or at a pace.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/punctual_sleep.hpp"
#include "coordinator/sources/recording.hpp"
#include "coordinator/sources/replay_plan.hpp"

namespace echelle {
namespace {

// Not pedantic ISO C++: nanoseconds of a long recording times a ratio.
__extension__ using int128 = __int128;

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

// When a sample of the stream has been taken, at a multiple of the recording's own speed. Counted
// from the first one without drift.
class ReplayClock {
  public:
    ReplayClock(Rational rate, Rational speed, uint64_t first_sample)
        : rate_(rate), speed_(speed), first_sample_(first_sample), start_ns_(monotonic_ns()) {}

    int64_t deadline_ns(uint64_t end_sample) const {
        const int128 ns = int128{sample_time_ns(end_sample - first_sample_, rate_)} *
                          int128{speed_.denominator} / int128{speed_.numerator};
        constexpr int64_t latest = std::numeric_limits<int64_t>::max();
        return ns < latest - start_ns_ ? start_ns_ + static_cast<int64_t>(ns) : latest;
    }

  private:
    Rational rate_;
    Rational speed_;
    uint64_t first_sample_;
    int64_t start_ns_;
};

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
    bool wait_until_due(const ReplayClock& clock, uint64_t end_sample,
                        const std::atomic<bool>& stop);

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
    std::optional<PunctualThread> punctual;
    std::optional<ReplayClock> clock;
    if (keys_.speed) {
        punctual.emplace();
        clock.emplace(recording_.stream.rate, *keys_.speed, position.index());
    }
    FrameStamp stamp;
    while (!position.at_end() && room_for_frame(writer, policy, stop)) {
        stamp.flags = position.at_gap() ? frame_gap_before : 0U;
        stamp.first_sample = recording_.first_index + position.index();
        const uint64_t begin = position.index();
        stamp.valid_samples = fill(position, writer.begin());
        if (clock && !wait_until_due(*clock, begin + stamp.valid_samples, stop)) {
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

bool RecordingSource::wait_until_due(const ReplayClock& clock, uint64_t end_sample,
                                     const std::atomic<bool>& stop) {
    const int64_t deadline_ns = clock.deadline_ns(end_sample);
    if (!sleep_until(deadline_ns, stop)) {
        return false;
    }
    const auto behind_ns = static_cast<double>(monotonic_ns() - deadline_ns);
    if (behind_ns > recording_.stream.frame_period_ns() / keys_.speed->value()) {
        late_frames_.fetch_add(1, std::memory_order_relaxed);
    }
    return true;
}

}  // namespace

std::unique_ptr<Source> source_of(Recording recording, const ReplayKeys& keys) {
    return std::make_unique<RecordingSource>(std::move(recording), keys);
}

}  // namespace echelle
