// Packets of the VITA Radio Transport, ANSI/VITA 49.0-2015 sections 6 and 7 (and the same fields in
// 49.2-2017, section 5). docs/udp.md states every bit that is read.
//
// All words are 32 bits, big-endian:
//   header      31:28 packet type   27 class id present   26 trailer present   25:24 kind (49.2)
//               23:22 TSI   21:20 TSF   19:16 packet count   15:0 size in words, all of it
//   stream id   types 1 and 3
//   class id    two words: 31:27 pad bits, 23:0 OUI; information class, packet class
//   seconds     TSI not 0
//   fraction    two words, TSF not 0
//   payload
//   trailer     31:20 enables, 19:8 indicators, 7:0 associated context packets
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/rational.hpp"
#include "coordinator/sources/datagram.hpp"

namespace echelle {

enum class IntegerTime : uint8_t { none, utc, gps, other };                        // TSI
enum class FractionalTime : uint8_t { none, samples, picoseconds, free_running };  // TSF

struct Vita49Packet {
    std::optional<uint32_t> stream_id;
    uint8_t count = 0;  // modulo 16
    IntegerTime integer_time = IntegerTime::none;
    FractionalTime fractional_time = FractionalTime::none;
    uint32_t seconds = 0;
    uint64_t fraction = 0;
    bool is_invalid = false;             // trailer: valid data = 0, or sample loss = 1
    bool is_over_range = false;          // trailer
    std::span<const std::byte> payload;  // without pad bits
};

// A signal data packet (types 0 and 1); fault not_samples for every other type that is sound.
DatagramFault parse_vita49(std::span<const std::byte> datagram, Vita49Packet& packet);

// The packet's time, of `samples` samples at `rate`: sample_time, time_tolerance and unix_ns of its
// place, where it says them.
void place_vita49_in_time(const Vita49Packet& packet, Rational rate, uint64_t samples,
                          PacketPlace& place);

// Places the packets of one stream: the first that comes, or the one asked for.
class Vita49Framing final : public Framing {
  public:
    Vita49Framing(const SampleLayout& layout, Rational rate, std::optional<uint32_t> stream_id)
        : layout_(layout), rate_(rate), stream_id_(stream_id), is_chosen_(stream_id.has_value()) {}

    DatagramFault place(std::span<const std::byte> datagram, PacketPlace& place) override;
    std::string remark() const override;

  private:
    int64_t step_to(const Vita49Packet& packet, const PacketPlace& place,
                    int64_t samples_per_packet) const;

    SampleLayout layout_;
    Rational rate_;
    std::optional<uint32_t> stream_id_;
    bool is_chosen_;
    // The packet of the highest number so far.
    bool has_last_ = false;
    int64_t last_number_ = 0;
    uint8_t last_count_ = 0;
    std::optional<uint64_t> last_time_;
    IntegerTime integer_time_ = IntegerTime::none;
    FractionalTime fractional_time_ = FractionalTime::none;
};

}  // namespace echelle
