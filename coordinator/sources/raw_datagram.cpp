#include "coordinator/sources/raw_datagram.hpp"

namespace echelle {
namespace {

// So often must numbers follow one another in the other byte order before it is said.
constexpr uint64_t enough_evidence = 3;

// Of any two numbers: their sum wraps round, and such a packet is not believed anyway.
int64_t moved(int64_t number, uint64_t by) {
    return static_cast<int64_t>(static_cast<uint64_t>(number) + by);
}

}  // namespace

void RawFraming::watch_byte_order(uint64_t sequence) {
    const SequenceField& field = *header_.sequence;
    const auto step = static_cast<int64_t>(header_.step);
    if (field.distance(sequence, last_sequence_) == step) {
        ++in_order_;
    } else if (field.distance(field.swapped(sequence), field.swapped(last_sequence_)) == step) {
        ++in_other_order_;
    }
}

// A sender that counts samples may be restarted at a number between two steps: believed when the
// next one follows it.
DatagramFault RawFraming::begin_anew(uint64_t sequence, PacketPlace& place) {
    // Farther than any loss, so that the packets from here on are seen to be of a new start.
    constexpr uint64_t far_away = uint64_t{1} << 40;
    const bool follows =
        stray_sequence_ && header_.sequence->distance(sequence, *stray_sequence_) ==
                               static_cast<int64_t>(header_.step);
    stray_sequence_ = sequence;
    if (!follows) {
        return DatagramFault::off_step;
    }
    last_sequence_ = sequence;
    last_number_ = moved(last_number_, far_away);
    place.number = last_number_;
    return DatagramFault::none;
}

DatagramFault RawFraming::place(std::span<const std::byte> datagram, PacketPlace& place) {
    if (datagram.size() < header_.bytes || datagram.empty()) {
        return DatagramFault::too_short;
    }
    const std::span<const std::byte> samples = datagram.subspan(header_.bytes);
    if (samples.empty() || samples.size() % layout_.sample_bytes() != 0) {
        return DatagramFault::partial_sample;
    }
    place = {};
    place.samples = samples;
    if (!header_.sequence) {
        last_number_ = moved(last_number_, 1);
        place.number = last_number_;
        return DatagramFault::none;
    }
    const uint64_t sequence = header_.sequence->read(datagram);
    if (!has_last_) {
        has_last_ = true;
        last_sequence_ = sequence;
        place.number = last_number_;
        return DatagramFault::none;
    }
    watch_byte_order(sequence);
    const int64_t jump = header_.sequence->distance(sequence, last_sequence_);
    const auto step = static_cast<int64_t>(header_.step);
    if (jump % step != 0) {
        return begin_anew(sequence, place);
    }
    last_number_ = moved(last_number_, static_cast<uint64_t>(jump / step));
    last_sequence_ = sequence;
    place.number = last_number_;
    return DatagramFault::none;
}

int64_t RawFraming::longest_loss() const {
    // Of a short counter a restart is told from a loss only when the loss would be long.
    constexpr int64_t of_two_bytes = 4096;
    return header_.sequence && header_.sequence->bytes == 2 ? of_two_bytes
                                                            : Framing::longest_loss();
}

std::string RawFraming::remark() const {
    return header_.sequence ? std::string()
                            : "datagrams carry no sequence number: losses, duplicates and order "
                              "cannot be seen";
}

std::string RawFraming::contradiction() const {
    if (!header_.sequence || in_other_order_ < enough_evidence || in_other_order_ <= in_order_) {
        return {};
    }
    SequenceField other = *header_.sequence;
    other.is_big_endian = !other.is_big_endian;
    return "the sequence numbers are implausible as " + header_.sequence->text() +
           " and follow one another in the other byte order: give sequence=" + other.text();
}

}  // namespace echelle
