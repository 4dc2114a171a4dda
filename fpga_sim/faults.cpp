#include "fpga_sim/faults.hpp"

#include <algorithm>
#include <string>

#include "common/error.hpp"
#include "fpga_sim/philox.hpp"

namespace echelle {
namespace {

// Counter words that no noise uses: its component numbers end at 1000.
enum FaultStream : uint32_t { drop_stream = 0xFFFF'FF00, burst_stream = 0xFFFF'FF01 };

uint32_t random_word(uint64_t seed, FaultStream stream, uint64_t frame_index) {
    return philox4x32({static_cast<uint32_t>(frame_index), static_cast<uint32_t>(frame_index >> 32),
                       0xFFFF'FFFF, stream},
                      philox_key(seed))[0];
}

bool is_nth(uint64_t frame_index, uint64_t every) {
    return every != 0 && frame_index % every == every - 1;
}

}  // namespace

void FaultOptions::validate() const {
    if (!(drop >= 0 && drop < 1)) {
        throw UsageError("simulator: drop=" + std::to_string(drop) +
                         " is not a fraction of the frames: give 0 or more and less than 1");
    }
    if (drop_every == 1) {
        throw UsageError("simulator: drop-every=1 would drop every frame: give 2 or more");
    }
    if (!(pause_ms >= 0 && pause_ms <= 3'600'000)) {
        throw UsageError("simulator: pause-ms=" + std::to_string(pause_ms) +
                         " is out of range: give 0 to 3600000");
    }
}

bool Faults::drops(uint64_t frame_index) const {
    return is_nth(frame_index, options_.drop_every) ||
           (options_.drop > 0 &&
            random_word(seed_, drop_stream, frame_index) < options_.drop * 0x1p32);
}

bool Faults::repeats(uint64_t frame_index) const {
    return is_nth(frame_index, options_.repeat_every);
}

int64_t Faults::pause_before_ns(uint64_t frame_index) const {
    return is_nth(frame_index, options_.pause_every) ? static_cast<int64_t>(options_.pause_ms * 1e6)
                                                     : 0;
}

void Faults::apply_over_range(uint64_t frame_index, const Stream& stream,
                              std::span<int16_t> frame) const {
    if (!is_nth(frame_index, options_.over_range_every)) {
        return;
    }
    const FrameGeometry& geometry = stream.geometry;
    const size_t parts = geometry.values_per_sample();
    const uint32_t burst = std::min(over_range_burst_samples, geometry.samples);
    const size_t start =
        random_word(seed_, burst_stream, frame_index) % (geometry.samples - burst + 1);
    const bool rows = geometry.layout == Layout::channel_major;
    // A burst is one run of each channel's row, or one run across all channels.
    const size_t runs = rows ? geometry.channels : 1;
    const size_t values = parts * burst * (rows ? 1 : geometry.channels);
    for (size_t run = 0; run < runs; ++run) {
        const size_t first = rows ? run * geometry.samples * parts + start * parts
                                  : start * geometry.channels * parts;
        for (int16_t& value : frame.subspan(first, values)) {
            value = value < 0 ? stream.over_range_low : stream.over_range_high;
        }
    }
}

}  // namespace echelle
