#include "coordinator/progress.hpp"

#include <cstdio>

#include <unistd.h>

#include "common/clock.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

constexpr int64_t terminal_interval_ns = 500'000'000;
constexpr int64_t pipe_interval_ns = 5'000'000'000;

}  // namespace

Progress::Progress(bool quiet)
    : quiet_(quiet || !log_shows(LogLevel::info)),
      // A line that is rewritten in place is none for programs to read.
      is_terminal_(isatty(STDERR_FILENO) == 1 && log_format() == LogFormat::text),
      last_ns_(monotonic_ns()) {}

void Progress::update(const RunFacts& facts) {
    const int64_t now_ns = monotonic_ns();
    const int64_t interval_ns = now_ns - last_ns_;
    if (quiet_ || interval_ns < (is_terminal_ ? terminal_interval_ns : pipe_interval_ns) ||
        !standard_error_takes_more()) {
        return;
    }
    const RunFigures figures = figures_of(facts);
    const uint64_t done = figures.books.frames.done;
    const double frames_per_s =
        static_cast<double>(done - last_done_) * 1e9 / static_cast<double>(interval_ns);
    const uint32_t alive = facts.supervisor->alive();
    const double realtime = frames_per_s * facts.stream.frame_period_ns() / 1e9;
    const uint64_t dropped = figures.books.frames.dropped_in_all();
    char line[160];
    std::snprintf(line, sizeof line,
                  "%.0f frames/s, %.2f x real time, %u worker%s, ring %.0f %% full, %lu dropped",
                  frames_per_s, realtime, alive, alive == 1 ? "" : "s", 100.0 * figures.ring_fill,
                  dropped);
    if (is_terminal_) {
        std::fprintf(stderr, "\r\033[K%s", line);
    } else {
        note(line, {{"frames_per_second", frames_per_s},
                    {"realtime_factor", realtime},
                    {"workers", uint64_t{alive}},
                    {"ring_fill", figures.ring_fill},
                    {"frames_dropped", dropped}});
    }
    line_is_open_ = is_terminal_;
    last_ns_ = now_ns;
    last_done_ = done;
}

void Progress::finish() {
    if (line_is_open_) {
        std::fputc('\n', stderr);
        line_is_open_ = false;
    }
}

}  // namespace echelle
