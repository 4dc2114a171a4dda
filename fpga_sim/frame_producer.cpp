#include "fpga_sim/frame_producer.hpp"

#include <algorithm>
#include <vector>

#include "common/clock.hpp"
#include "common/invariant.hpp"
#include "common/punctual_sleep.hpp"

namespace echelle {
namespace {

constexpr int64_t look_at_stop_ns = 50'000'000;

}  // namespace

FrameProducer::FrameProducer(const SimOptions& options)
    : options_(options),
      generator_(options.signal, options.stream, options.seed),
      faults_(options.faults, options.seed) {
    if (!options.write_raw.empty()) {
        raw_.emplace(options.write_raw);
    }
    if (!options.write_framed.empty()) {
        framed_.emplace(options.write_framed, options.stream);
    }
}

bool FrameProducer::is_beyond_end(uint64_t frame_index) const {
    return options_.frames && frame_index >= *options_.frames;
}

void FrameProducer::make(uint64_t frame_index, std::span<int16_t> frame) const {
    generator_.generate(frame_index * options_.stream.geometry.samples, frame);
    faults_.apply_over_range(frame_index, options_.stream, frame);
}

void FrameProducer::fill(Ring& ring, const std::atomic<bool>& stop) const {
    ECHELLE_INVARIANT(ring.stream().geometry == options_.stream.geometry);
    if (options_.generate == Generate::each) {
        return;
    }
    uint64_t used = ring.slot_count();
    if (options_.frames) {
        // Repeats take up slots of their own, at most one for each frame.
        used = std::min(used, *options_.frames * (options_.faults.repeat_every > 0 ? 2 : 1));
    }
    for (uint64_t slot = 0; slot < used && !stop.load(std::memory_order_relaxed); ++slot) {
        make(slot, ring.frame(slot));
    }
}

// Sample 0 is taken now.
void FrameProducer::begin_time() {
    start_ns_ = monotonic_ns();
    if (framed_ && options_.pace == Pace::realtime) {
        framed_->set_epoch(realtime_ns());
    }
}

void FrameProducer::run(RingWriter& writer, bool wait_for_room, const std::atomic<bool>& stop) {
    const PunctualThread punctual;
    const uint32_t samples = options_.stream.geometry.samples;
    begin_time();
    bool gap = false;
    for (uint64_t index = 0; !is_beyond_end(index) && !stop.load(std::memory_order_relaxed);
         ++index) {
        if (faults_.drops(index)) {
            ++counts_.dropped;
            gap = true;
            continue;
        }
        FrameStamp stamp{index, index * samples, samples, gap ? frame_gap_before : 0U};
        if (!pause_before(index, stop)) {
            break;
        }
        const std::span<const int16_t> frame = publish(writer, stamp, wait_for_room, stop);
        if (frame.empty()) {
            break;
        }
        gap = false;
        if (!write_out(stamp, frame, stop)) {
            break;
        }
        stamp.flags = 0;  // nothing is missing between a frame and its repeat
        if (faults_.repeats(index) && !publish(writer, stamp, wait_for_room, stop).empty()) {
            ++counts_.repeated;
        }
    }
    finish_raw();
}

// A repeat is a card's doing, so it is in what the card sends, and once in the raw file.
bool FrameProducer::write_out(const FrameStamp& stamp, std::span<const int16_t> frame,
                              const std::atomic<bool>& stop) {
    if (raw_) {
        raw_->write(frame);
    }
    if (!framed_) {
        return true;
    }
    if (!framed_->write(stamp, frame, stop)) {
        return false;
    }
    FrameStamp again = stamp;
    again.flags = 0;
    return !faults_.repeats(stamp.frame_index) || framed_->write(again, frame, stop);
}

std::span<const int16_t> FrameProducer::publish(RingWriter& writer, const FrameStamp& stamp,
                                                bool wait_for_room, const std::atomic<bool>& stop) {
    while (wait_for_room && !writer.wait_for_room(look_at_stop_ns)) {
        if (stop.load(std::memory_order_relaxed)) {
            return {};
        }
    }
    std::span<int16_t> frame;
    if (options_.generate == Generate::each) {
        // As a DMA engine does, the slot is overwritten while its samples are being taken.
        frame = writer.begin();
        make(stamp.frame_index, frame);
        if (!wait_until_due(stamp.frame_index, stop)) {
            return {};
        }
    } else {
        if (!wait_until_due(stamp.frame_index, stop)) {
            return {};
        }
        frame = writer.begin();
    }
    writer.commit(stamp);
    ++counts_.published;
    return frame;
}

bool FrameProducer::pause_before(uint64_t frame_index, const std::atomic<bool>& stop) const {
    const int64_t pause_ns = faults_.pause_before_ns(frame_index);
    return pause_ns == 0 || sleep_until(monotonic_ns() + pause_ns, stop);
}

bool FrameProducer::wait_until_due(uint64_t frame_index, const std::atomic<bool>& stop) {
    if (options_.pace == Pace::asap) {
        return true;
    }
    const uint64_t end_sample = (frame_index + 1) * options_.stream.geometry.samples;
    const int64_t deadline_ns = start_ns_ + sample_time_ns(end_sample, options_.stream.rate);
    if (!sleep_until(deadline_ns, stop)) {
        return false;
    }
    const auto behind_ns = static_cast<double>(monotonic_ns() - deadline_ns);
    counts_.late += behind_ns > options_.stream.frame_period_ns() ? 1 : 0;
    return true;
}

std::span<const int16_t> FrameProducer::frame_without_ring(uint64_t frame_index) {
    const bool recurs = framed_ && options_.generate == Generate::once;
    const uint64_t slot = recurs ? frame_index % recurring_frames : 0;
    if (slot >= made_.size()) {
        made_.resize(slot + 1);
    }
    if (made_[slot].empty() || !recurs) {
        made_[slot].resize(options_.stream.geometry.frame_values());
        make(recurs ? slot : frame_index, made_[slot]);
    }
    return made_[slot];
}

void FrameProducer::write_files(const std::atomic<bool>& stop) {
    ECHELLE_INVARIANT(raw_.has_value() || framed_.has_value());
    const PunctualThread punctual;
    const uint32_t samples = options_.stream.geometry.samples;
    for (uint64_t slot = 0; framed_ && options_.generate == Generate::once &&
                            slot < recurring_frames && !is_beyond_end(slot);
         ++slot) {
        frame_without_ring(slot);  // before the first is due
    }
    begin_time();
    bool gap = false;
    for (uint64_t index = 0; !is_beyond_end(index) && !stop.load(std::memory_order_relaxed);
         ++index) {
        if (faults_.drops(index)) {
            ++counts_.dropped;
            gap = true;
            continue;
        }
        const std::span<const int16_t> frame = frame_without_ring(index);
        if (framed_ && !(pause_before(index, stop) && wait_until_due(index, stop))) {
            break;
        }
        const uint32_t flags = gap ? uint32_t{frame_gap_before} : 0U;
        if (!write_out({index, index * samples, samples, flags}, frame, stop)) {
            break;
        }
        gap = false;
        ++counts_.published;
        counts_.repeated += framed_ && faults_.repeats(index) ? 1 : 0;
    }
    finish_raw();
}

void FrameProducer::finish_raw() {
    if (raw_) {
        raw_->finish();
    }
}

}  // namespace echelle
