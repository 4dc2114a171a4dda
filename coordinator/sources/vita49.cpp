#include "coordinator/sources/vita49.hpp"

namespace echelle {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr size_t word_bytes = 4;
constexpr uint64_t picoseconds_per_second = 1'000'000'000'000;
// GPS time began at 1980-01-06T00:00:00 UTC and has no leap seconds: 18 since then, the last one at
// the end of 2016 (IERS Bulletin C 52).
constexpr int64_t gps_epoch_s = 315'964'800;
constexpr int64_t gps_ahead_of_utc_s = 18;
// A time that lies farther back than this many packets is a clock that was set back.
constexpr int64_t farthest_back = 1024;
constexpr int64_t farthest_ahead = int64_t{1} << 31;

// The trailer's enable bits; the indicator that belongs to one lies 12 bits below it.
enum TrailerBit : uint32_t {
    valid_data = 1U << 30,
    over_range = 1U << 25,
    sample_loss = 1U << 24,
};

bool is_enabled(uint32_t trailer, TrailerBit bit) {
    return (trailer & bit) != 0;
}

bool indicates(uint32_t trailer, TrailerBit bit) {
    return (trailer & bit >> 12) != 0;
}

// Walks over the words of a packet; false once they have ended.
class Words {
  public:
    explicit Words(std::span<const std::byte> bytes) : left_(bytes) {}

    bool take(size_t words, uint64_t& value) {
        if (left_.size() < words * word_bytes) {
            return false;
        }
        value = big_endian(left_, 0, words * word_bytes);
        left_ = left_.subspan(words * word_bytes);
        return true;
    }
    bool take_last(uint64_t& value) {
        if (left_.size() < word_bytes) {
            return false;
        }
        value = big_endian(left_, left_.size() - word_bytes, word_bytes);
        left_ = left_.first(left_.size() - word_bytes);
        return true;
    }
    std::span<const std::byte> left() const { return left_; }

  private:
    std::span<const std::byte> left_;
};

void read_trailer(uint32_t trailer, Vita49Packet& packet) {
    packet.is_invalid = (is_enabled(trailer, valid_data) && !indicates(trailer, valid_data)) ||
                        (is_enabled(trailer, sample_loss) && indicates(trailer, sample_loss));
    packet.is_over_range = is_enabled(trailer, over_range) && indicates(trailer, over_range);
}

// seconds x rate + fraction, in samples, rounded to nearest.
uint64_t samples_at(uint64_t seconds, uint64_t picoseconds, Rational rate) {
    const Wide by_seconds = Wide{seconds} * rate.numerator;
    const Wide rest = by_seconds % rate.denominator;
    const Wide unit = Wide{rate.denominator} * picoseconds_per_second;
    const Wide part = rest * picoseconds_per_second + Wide{picoseconds} * rate.numerator;
    return static_cast<uint64_t>(by_seconds / rate.denominator) +
           static_cast<uint64_t>((part + unit / 2) / unit);
}

// A second or more where the samples are that many.
uint64_t picoseconds_of(uint64_t samples, Rational rate) {
    const Wide scaled = Wide{samples} * rate.denominator;
    return scaled >= rate.numerator
               ? picoseconds_per_second
               : static_cast<uint64_t>(scaled * picoseconds_per_second / rate.numerator);
}

int64_t rounded_quotient(int64_t dividend, int64_t divisor) {
    const int64_t rest = dividend % divisor;
    return dividend / divisor + (rest > divisor / 2 ? 1 : rest < -(divisor / 2) ? -1 : 0);
}

std::optional<int64_t> unix_second(const Vita49Packet& packet) {
    switch (packet.integer_time) {
        case IntegerTime::utc:
            return packet.seconds;
        case IntegerTime::gps:
            return packet.seconds + gps_epoch_s - gps_ahead_of_utc_s;
        case IntegerTime::none:
        case IntegerTime::other:
            break;
    }
    return std::nullopt;
}

}  // namespace

DatagramFault parse_vita49(std::span<const std::byte> datagram, Vita49Packet& packet) {
    constexpr uint64_t first_reserved_type = 8;
    constexpr uint64_t first_context_type = 4;
    Words words(datagram);
    uint64_t header = 0;
    if (!words.take(1, header)) {
        return DatagramFault::too_short;
    }
    const uint64_t type = header >> 28;
    if (type >= first_reserved_type) {
        return DatagramFault::unknown_header;
    }
    if ((header & 0xFFFF) * word_bytes != datagram.size()) {
        return DatagramFault::size_mismatch;
    }
    // Extension data and spectra (49.2: bit 24 of a data packet) are not samples in time.
    const bool is_spectrum = type < first_context_type && (header >> 24 & 1) != 0;
    if (type > 1 || is_spectrum) {
        return DatagramFault::not_samples;
    }
    packet = {};
    packet.count = static_cast<uint8_t>(header >> 16 & 0xF);
    packet.integer_time = static_cast<IntegerTime>(header >> 22 & 3);
    packet.fractional_time = static_cast<FractionalTime>(header >> 20 & 3);
    uint64_t value = 0;
    if (type == 1) {
        if (!words.take(1, value)) {
            return DatagramFault::too_short;
        }
        packet.stream_id = static_cast<uint32_t>(value);
    }
    uint64_t class_id = 0;
    if ((header >> 27 & 1) != 0 && !words.take(2, class_id)) {
        return DatagramFault::too_short;
    }
    if (packet.integer_time != IntegerTime::none) {
        if (!words.take(1, value)) {
            return DatagramFault::too_short;
        }
        packet.seconds = static_cast<uint32_t>(value);
    }
    if (packet.fractional_time != FractionalTime::none && !words.take(2, packet.fraction)) {
        return DatagramFault::too_short;
    }
    if ((header >> 26 & 1) != 0) {
        if (!words.take_last(value)) {
            return DatagramFault::too_short;
        }
        read_trailer(static_cast<uint32_t>(value), packet);
    }
    const uint64_t pad_bits = class_id >> 59;
    if (pad_bits % 8 != 0 || pad_bits / 8 > words.left().size()) {
        return DatagramFault::partial_sample;
    }
    packet.payload = words.left().first(words.left().size() - pad_bits / 8);
    return DatagramFault::none;
}

void place_vita49_in_time(const Vita49Packet& packet, Rational rate, uint64_t samples,
                          PacketPlace& place) {
    const bool has_seconds = packet.integer_time != IntegerTime::none;
    uint64_t picoseconds = 0;
    switch (packet.fractional_time) {
        case FractionalTime::none:
            return;  // whole seconds place no sample
        case FractionalTime::free_running:
            place.sample_time = packet.fraction;
            return;
        case FractionalTime::samples:
            if (!has_seconds) {
                return;  // begins anew each second, and nobody says which
            }
            place.sample_time = samples_at(packet.seconds, 0, rate) + packet.fraction;
            // A second is then no whole number of samples.
            place.time_tolerance = rate.numerator % rate.denominator == 0 ? 0 : 1;
            picoseconds = picoseconds_of(packet.fraction, rate);
            break;
        case FractionalTime::picoseconds:
            if (!has_seconds || packet.fraction >= picoseconds_per_second) {
                return;
            }
            place.sample_time = samples_at(packet.seconds, packet.fraction, rate);
            // Half a packet: clocks that are set by GPS or PTP do not run with the converter's.
            place.time_tolerance = samples / 2 + 1;
            picoseconds = packet.fraction;
            break;
    }
    if (const auto second = unix_second(packet); second && picoseconds < picoseconds_per_second) {
        place.unix_ns = *second * 1'000'000'000 + static_cast<int64_t>(picoseconds / 1000);
    }
}

// How many packets this one is ahead of the last. Four bits of count are unwrapped by the time
// where both agree; where they do not, the sender itself has left samples out or was restarted, and
// the count decides.
int64_t Vita49Framing::step_to(const Vita49Packet& packet, const PacketPlace& place,
                               int64_t samples_per_packet) const {
    constexpr int64_t wrap = 16;
    constexpr int64_t most_ahead = 11;  // without a time: 11 ahead, or 4 behind
    const int64_t ahead = (packet.count - last_count_) & (wrap - 1);
    if (place.sample_time && last_time_) {
        const auto samples = static_cast<int64_t>(*place.sample_time - *last_time_);
        const int64_t by_time = rounded_quotient(samples, samples_per_packet);
        if (by_time >= -farthest_back && by_time <= farthest_ahead &&
            ((by_time - ahead) & (wrap - 1)) == 0) {
            return by_time;
        }
        if (by_time > 0 || by_time < -farthest_back) {
            return ahead == 0 ? wrap : ahead;
        }
    }
    return ahead <= most_ahead ? ahead : ahead - wrap;
}

DatagramFault Vita49Framing::place(std::span<const std::byte> datagram, PacketPlace& place) {
    Vita49Packet packet;
    if (const DatagramFault fault = parse_vita49(datagram, packet); fault != DatagramFault::none) {
        return fault;
    }
    if (packet.payload.empty() || packet.payload.size() % layout_.sample_bytes() != 0) {
        return DatagramFault::partial_sample;
    }
    if ((has_last_ || is_chosen_) && packet.stream_id != stream_id_) {
        return DatagramFault::other_stream;
    }
    stream_id_ = packet.stream_id;
    place = {};
    place.samples = packet.payload;
    place.is_invalid = packet.is_invalid;
    place.is_over_range = packet.is_over_range;
    const auto samples = static_cast<int64_t>(place.samples.size() / layout_.sample_bytes());
    place_vita49_in_time(packet, rate_, static_cast<uint64_t>(samples), place);
    const int64_t step = has_last_ ? step_to(packet, place, samples) : 1;
    place.number =
        static_cast<int64_t>(static_cast<uint64_t>(last_number_) + static_cast<uint64_t>(step));
    if (step > 0) {
        last_number_ = place.number;
        last_count_ = packet.count;
        last_time_ = place.sample_time;
        integer_time_ = packet.integer_time;
        fractional_time_ = packet.fractional_time;
        has_last_ = true;
    }
    return DatagramFault::none;
}

std::string Vita49Framing::remark() const {
    if (has_last_ && !last_time_) {
        return "packets carry no time that counts samples (TSI " +
               std::to_string(static_cast<int>(integer_time_)) + ", TSF " +
               std::to_string(static_cast<int>(fractional_time_)) +
               "): more than 11 packets lost at once are counted modulo 16";
    }
    return {};
}

}  // namespace echelle
