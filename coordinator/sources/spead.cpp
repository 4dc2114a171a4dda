#include "coordinator/sources/spead.hpp"

#include <optional>

namespace echelle {
namespace {

constexpr size_t header_bytes = 8;
constexpr size_t item_bytes = 8;
constexpr uint64_t most_heap_bytes = uint64_t{1} << 40;

enum ItemId : uint64_t {
    heap_count_id = 1,
    heap_length_id = 2,
    payload_offset_id = 3,
    payload_length_id = 4,
    descriptor_id = 5,
    stream_control_id = 6,
};

struct Items {
    std::optional<uint64_t> heap_count;
    std::optional<uint64_t> heap_length;
    std::optional<uint64_t> payload_offset;
    std::optional<uint64_t> payload_length;
    bool is_control = false;
};

Items read_items(std::span<const std::byte> items, unsigned address_bits) {
    Items found;
    const uint64_t address_mask = (uint64_t{1} << address_bits) - 1;
    const uint64_t id_mask = (uint64_t{1} << (63 - address_bits)) - 1;
    for (size_t offset = 0; offset < items.size(); offset += item_bytes) {
        const uint64_t item = big_endian(items, offset, item_bytes);
        const uint64_t id = item >> address_bits & id_mask;
        const bool is_immediate = item >> 63 != 0;
        // Where one of these is an address its value lies in the heap, which nobody does.
        if (id >= heap_count_id && id <= payload_length_id && !is_immediate) {
            continue;
        }
        const uint64_t value = item & address_mask;
        switch (id) {
            case heap_count_id:
                found.heap_count = value;
                break;
            case heap_length_id:
                found.heap_length = value;
                break;
            case payload_offset_id:
                found.payload_offset = value;
                break;
            case payload_length_id:
                found.payload_length = value;
                break;
            case descriptor_id:
            case stream_control_id:
                found.is_control = true;
                break;
            default:
                break;
        }
    }
    return found;
}

}  // namespace

DatagramFault parse_spead(std::span<const std::byte> datagram, SpeadPacket& packet) {
    if (datagram.size() < header_bytes) {
        return DatagramFault::too_short;
    }
    const uint64_t header = big_endian(datagram, 0, header_bytes);
    const uint64_t id_bytes = header >> 40 & 0xFF;
    const uint64_t address_bytes = header >> 32 & 0xFF;
    const bool is_known = header >> 48 == 0x5304 && id_bytes > 0 && address_bytes > 0 &&
                          id_bytes + address_bytes == item_bytes;
    if (!is_known) {
        return DatagramFault::unknown_header;
    }
    const uint64_t items_bytes = (header & 0xFFFF) * item_bytes;
    if (datagram.size() - header_bytes < items_bytes) {
        return DatagramFault::too_short;
    }
    const Items items = read_items(datagram.subspan(header_bytes, items_bytes),
                                   static_cast<unsigned>(8 * address_bytes));
    if (items.is_control) {
        return DatagramFault::not_samples;
    }
    if (!items.heap_count || !items.heap_length || !items.payload_offset || !items.payload_length) {
        return DatagramFault::missing_item;
    }
    const std::span<const std::byte> payload = datagram.subspan(header_bytes + items_bytes);
    if (*items.payload_length != payload.size()) {
        return DatagramFault::size_mismatch;
    }
    if (*items.heap_length > most_heap_bytes || payload.size() > *items.heap_length ||
        *items.payload_offset > *items.heap_length - payload.size()) {
        return DatagramFault::beyond_heap;
    }
    packet = {*items.heap_count, *items.heap_length, *items.payload_offset, payload};
    return DatagramFault::none;
}

// Every packet but a heap's last has the same size, so that an offset tells which packet it is.
DatagramFault SpeadFraming::check_sizes(const SpeadPacket& packet) const {
    const uint64_t end = packet.payload_offset + packet.payload.size();
    const bool is_whole = packet.payload.size() == packet_bytes_ || end == heap_length_;
    if (packet.heap_length != heap_length_ || packet.payload_offset % packet_bytes_ != 0 ||
        packet.payload.size() > packet_bytes_ || !is_whole) {
        return DatagramFault::changed_size;
    }
    // Backwards too, for a sender that was restarted.
    const uint64_t distance = packet.heap_count >= first_heap_ ? packet.heap_count - first_heap_
                                                               : first_heap_ - packet.heap_count;
    return distance % heap_step_ == 0 ? DatagramFault::none : DatagramFault::off_step;
}

void SpeadFraming::begin(const SpeadPacket& packet) {
    has_begun_ = true;
    first_heap_ = packet.heap_count;
    heap_length_ = packet.heap_length;
    packet_bytes_ = packet.payload.size();
    packets_per_heap_ = (heap_length_ + packet_bytes_ - 1) / packet_bytes_;
}

DatagramFault SpeadFraming::place(std::span<const std::byte> datagram, PacketPlace& place) {
    SpeadPacket packet;
    if (const DatagramFault fault = parse_spead(datagram, packet); fault != DatagramFault::none) {
        return fault;
    }
    const size_t unit = layout_.sample_bytes();
    if (packet.payload.empty() || packet.payload.size() % unit != 0 ||
        packet.payload_offset % unit != 0 || packet.heap_length % unit != 0) {
        return DatagramFault::partial_sample;
    }
    if (!has_begun_) {
        if (packet.payload_offset != 0) {
            return DatagramFault::before_start;
        }
        begin(packet);
    }
    if (const DatagramFault fault = check_sizes(packet); fault != DatagramFault::none) {
        return fault;
    }
    // Counts have at most 56 bits, so that their difference has a sign; products may wrap round.
    const auto heaps =
        (static_cast<int64_t>(packet.heap_count) - static_cast<int64_t>(first_heap_)) /
        static_cast<int64_t>(heap_step_);
    place = {};
    place.samples = packet.payload;
    place.number = static_cast<int64_t>(static_cast<uint64_t>(heaps) * packets_per_heap_ +
                                        packet.payload_offset / packet_bytes_);
    place.sample_time =
        static_cast<uint64_t>(heaps) * (heap_length_ / unit) + packet.payload_offset / unit;
    return DatagramFault::none;
}

}  // namespace echelle
