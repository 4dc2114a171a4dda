// Numbers a card's frames for the ring: its sequence and sample index, which begin anew when the
// card does, become a frame index and a sample index that only ever rise. On the way it finds out
// which frames are lost, and gives each of them one cause, so that
//
//     frame_index of the last frame + 1 = frames placed + sum of lost, counted from the first frame
//
// Pure but for the time that it is told. Owned and called by the thread that reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/card_frame.hpp"
#include "common/rational.hpp"
#include "common/ring.hpp"

namespace echelle {

enum class CardLoss : uint32_t {
    bad_data,    // a checksum of samples that was wrong
    torn,        // bytes of the frame are missing
    bad_header,  // a damaged header
    device,      // the driver failed or the device was away
    overflow,    // the card says that it lost them
    unexplained  // the sequence jumps and nobody says why
};
inline constexpr size_t card_losses = 6;
const char* name_of(CardLoss cause);

class CardNumbering {
  public:
    explicit CardNumbering(Rational rate) : rate_(rate) {}

    enum class Verdict {
        good,
        repeated,  // the sequence of the frame before: the same frame again
        stale,     // an older one of the same stream: memory that was read twice
    };
    // Where the frame stands, at the monotonic time `now_ns`; `stamp` is set when it is good.
    Verdict place(const CardFrameHeader& header, int64_t now_ns, FrameStamp& stamp);
    // The same for frames without a header: each is taken to continue the one before, unless the
    // device failed in between.
    FrameStamp place_unnumbered(const FrameGeometry& geometry, int64_t now_ns);

    // A frame is lost to that cause; it will be missing before the next good one.
    void lose(CardLoss cause) { ++pending_[static_cast<size_t>(cause)]; }
    // The driver failed: frames missing before the next good one are the device's.
    void device_failed() { device_failed_ = true; }

    const std::array<uint64_t, card_losses>& lost() const { return lost_; }
    uint64_t placed() const { return placed_; }
    // Times at which the card began anew, or jumped so far that it must have.
    uint64_t restarts() const { return restarts_; }

  private:
    bool continues_stream(const CardFrameHeader& header) const;
    FrameStamp place_after_gap(uint64_t missing, bool overflow, uint64_t first_sample,
                               const FrameGeometry& geometry);
    void count_losses(uint64_t missing, bool overflow);
    uint64_t pending() const;
    uint64_t samples_since_last(int64_t now_ns) const;

    Rational rate_;
    std::optional<CardFrameHeader> last_;  // the last good frame
    FrameStamp last_stamp_;
    int64_t last_ns_ = 0;
    uint64_t sample_offset_ = 0;  // stream's sample index - card's, modulo 2^64
    std::array<uint64_t, card_losses> pending_{};
    bool device_failed_ = false;
    std::array<uint64_t, card_losses> lost_{};
    uint64_t placed_ = 0;
    uint64_t restarts_ = 0;
};

}  // namespace echelle
