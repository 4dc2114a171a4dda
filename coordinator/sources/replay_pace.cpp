#include "coordinator/sources/replay_pace.hpp"

#include <limits>

#include "common/clock.hpp"

namespace echelle {
namespace {

// Not pedantic ISO C++: nanoseconds of a long recording times a ratio.
__extension__ using int128 = __int128;

}  // namespace

ReplayPace::ReplayPace(const Stream& stream, Rational speed, uint64_t first_sample,
                       std::atomic<uint64_t>& late_frames)
    : rate_(stream.rate),
      speed_(speed),
      frame_ns_(stream.frame_period_ns() / speed.value()),
      first_sample_(first_sample),
      start_ns_(monotonic_ns()),
      late_frames_(late_frames) {}

int64_t ReplayPace::deadline_ns(uint64_t end_sample) const {
    const int128 ns = int128{sample_time_ns(end_sample - first_sample_, rate_)} *
                      int128{speed_.denominator} / int128{speed_.numerator};
    constexpr int64_t latest = std::numeric_limits<int64_t>::max();
    return ns < latest - start_ns_ ? start_ns_ + static_cast<int64_t>(ns) : latest;
}

bool ReplayPace::wait_until_due(uint64_t end_sample, const std::atomic<bool>& stop) {
    const int64_t due_ns = deadline_ns(end_sample);
    if (!sleep_until(due_ns, stop)) {
        return false;
    }
    if (static_cast<double>(monotonic_ns() - due_ns) > frame_ns_) {
        late_frames_.fetch_add(1, std::memory_order_relaxed);
    }
    return true;
}

}  // namespace echelle
