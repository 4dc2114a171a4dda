#include "coordinator/sources/stream_joiner.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "coordinator/sources/vita49.hpp"

namespace echelle {
namespace {

// A sender that starts anew at another place in time is believed after so many of each stream; its
// numbers then lie farther ahead than any loss.
constexpr size_t packets_that_make_a_step = 4;
constexpr int64_t leap_at_a_restart = int64_t{1} << 40;

// Times may lie anywhere: numbers wrap round as they do.
int64_t wrapped_sum(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <size_t bytes>
void spread(std::span<const std::byte> part, std::byte* to, size_t stride) {
    for (size_t at = 0; at < part.size(); at += bytes, to += stride) {
        std::memcpy(to, part.data() + at, bytes);
    }
}

}  // namespace

StreamJoiner::StreamJoiner(const SampleLayout& layout, Rational rate,
                           const std::vector<uint32_t>& ids, uint32_t most_open)
    : layout_(layout),
      part_{layout.channels / static_cast<uint32_t>(ids.size()), layout.values_per_sample},
      rate_(rate),
      most_open_(most_open) {
    for (const uint32_t id : ids) {
        counts_.emplace_back().id = id;
    }
}

std::optional<size_t> StreamJoiner::stream_of(std::optional<uint32_t> id) const {
    const auto found = std::ranges::find_if(
        counts_, [id](const JoinedStreamCounts& counts) { return counts.id == id; });
    return found == counts_.end() ? std::nullopt
                                  : std::optional(static_cast<size_t>(found - counts_.begin()));
}

DatagramFault StreamJoiner::add(std::span<const std::byte> datagram, int64_t arrival_ns,
                                std::vector<JoinedPacket>& complete) {
    Vita49Packet packet;
    if (const DatagramFault fault = parse_vita49(datagram, packet); fault != DatagramFault::none) {
        return fault;
    }
    const std::optional<size_t> stream = stream_of(packet.stream_id);
    if (!stream) {
        return DatagramFault::other_stream;
    }
    const size_t part_bytes = part_.sample_bytes();
    if (packet.payload.empty() || packet.payload.size() % part_bytes != 0) {
        return DatagramFault::partial_sample;
    }
    const auto samples = static_cast<int64_t>(packet.payload.size() / part_bytes);
    PacketPlace place;
    place_vita49_in_time(packet, rate_, static_cast<uint64_t>(samples), place);
    if (!place.sample_time) {
        return DatagramFault::no_time;
    }
    if (samples_per_packet_ == 0) {
        samples_per_packet_ = samples;
        last_time_ = *place.sample_time;
    } else if (samples != samples_per_packet_) {
        return DatagramFault::changed_size;
    }
    const auto number = number_at(*place.sample_time, static_cast<int64_t>(place.time_tolerance));
    if (!number) {
        return DatagramFault::off_step;
    }
    JoinedStreamCounts& counts = counts_[*stream];
    counts.received += 1;
    if (refuse_known(*number, counts)) {
        return DatagramFault::none;
    }
    Group& group = group_of(*number);
    if (group.has[*stream]) {
        counts.duplicates += 1;
        return DatagramFault::none;
    }
    PacketPlace& joined = group.packet.place;
    if (group.parts == 0) {
        joined = place;
        joined.number = *number;
    }
    joined.is_invalid = joined.is_invalid || packet.is_invalid;
    joined.is_over_range = joined.is_over_range || packet.is_over_range;
    group.packet.arrival_ns = arrival_ns;
    put(packet.payload, *stream, group);
    group.has[*stream] = true;
    if (++group.parts == counts_.size()) {
        for (JoinedStreamCounts& each : counts_) {
            each.joined += 1;
        }
        closed(*number) = {*number, true};
        joined.samples = group.packet.samples;
        complete.push_back(std::move(group.packet));
        std::erase_if(open_, [&number](const Group& each) { return each.number == *number; });
    }
    return DatagramFault::none;
}

// Counted from the packet of the highest number so far.
std::optional<int64_t> StreamJoiner::number_at(uint64_t time, int64_t tolerance) {
    const auto is_in_step = [this, tolerance](int64_t samples, int64_t& steps) {
        const int64_t half = samples_per_packet_ / 2;
        steps = (samples + (samples < 0 ? -half : half)) / samples_per_packet_;
        return std::abs(samples - steps * samples_per_packet_) <= tolerance;
    };
    // Of times half the range apart neither is before the other: what lies there fits nowhere.
    constexpr int64_t farthest = int64_t{1} << 62;
    const auto since = static_cast<int64_t>(time - last_time_);
    int64_t steps = 0;
    if (since > -farthest && since < farthest && is_in_step(since, steps)) {
        off_run_ = 0;
        const int64_t number = wrapped_sum(last_number_, steps);
        if (steps > 0) {
            last_number_ = number;
            last_time_ = time;
        }
        return number;
    }
    const auto since_off = static_cast<int64_t>(time - off_time_);
    const bool follows = off_run_ > 0 && since_off > -farthest && since_off < farthest &&
                         is_in_step(since_off, steps);
    off_run_ = follows ? off_run_ + 1 : 1;
    off_time_ = time;
    if (off_run_ < packets_that_make_a_step * counts_.size()) {
        return std::nullopt;
    }
    off_run_ = 0;
    last_number_ = wrapped_sum(last_number_, leap_at_a_restart);
    last_time_ = time;
    return last_number_;
}

// A packet of a time that is done with.
bool StreamJoiner::refuse_known(int64_t number, JoinedStreamCounts& counts) {
    const Closed& known = closed(number);
    if (known.number != number) {
        return false;
    }
    (known.is_complete ? counts.duplicates : counts.late) += 1;
    return true;
}

StreamJoiner::Group& StreamJoiner::group_of(int64_t number) {
    const auto found = std::find_if(open_.rbegin(), open_.rend(), [number](const Group& group) {
        return group.number == number;
    });
    if (found != open_.rend()) {
        return *found;
    }
    if (open_.size() > most_open_) {
        give_up_oldest();
    }
    Group& group = open_.emplace_back();
    group.number = number;
    group.has.assign(counts_.size(), false);
    if (!spare_.empty()) {
        group.packet.samples = std::move(spare_.back());
        spare_.pop_back();
    }
    group.packet.samples.resize(static_cast<size_t>(samples_per_packet_) * layout_.sample_bytes());
    return group;
}

void StreamJoiner::put(std::span<const std::byte> part, size_t stream, Group& group) const {
    const size_t bytes = part_.sample_bytes();
    const size_t stride = layout_.sample_bytes();
    std::byte* const to = group.packet.samples.data() + stream * bytes;
    // One channel to a stream is usual: its copies are then single instructions.
    if (bytes == 2) {
        spread<2>(part, to, stride);
    } else if (bytes == 4) {
        spread<4>(part, to, stride);
    } else {
        for (size_t sample = 0; sample * bytes < part.size(); ++sample) {
            std::memcpy(to + sample * stride, part.data() + sample * bytes, bytes);
        }
    }
}

void StreamJoiner::give_up_oldest() {
    Group& oldest = open_.front();
    for (size_t stream = 0; stream < counts_.size(); ++stream) {
        (oldest.has[stream] ? counts_[stream].alone : counts_[stream].absent) += 1;
    }
    closed(oldest.number) = {oldest.number, false};
    recycle(std::move(oldest.packet.samples));
    open_.pop_front();
}

void StreamJoiner::flush() {
    while (!open_.empty()) {
        give_up_oldest();
    }
}

std::string StreamJoiner::remark(uint64_t least) const {
    std::string missing;
    for (const JoinedStreamCounts& counts : counts_) {
        if (counts.received == 0 && counts.absent >= least) {
            char text[16];
            std::snprintf(text, sizeof text, "0x%X", counts.id);
            missing += (missing.empty() ? "" : ", ") + std::string(text);
        }
    }
    return missing.empty() ? missing
                           : "no packet of stream " + missing +
                                 " has come: nothing is used until all come; check streams=";
}

}  // namespace echelle
