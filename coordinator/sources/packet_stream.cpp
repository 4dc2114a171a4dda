#include "coordinator/sources/packet_stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "common/invariant.hpp"

namespace echelle {
namespace {

__extension__ using WideSigned = __int128;

constexpr int64_t ns_per_second = 1'000'000'000;
constexpr int64_t longest_clock_lead_ns = int64_t{86'400} * ns_per_second;
// As far as the frame index may jump (GroupBuilder refuses more than twice this).
constexpr uint64_t longest_believable_gap_frames = uint64_t{1} << 31;

}  // namespace

uint64_t PacketFacts::held() const {
    return placed - (packets.delivered + packets.duplicates + packets.late + packets.strays);
}

PacketStream::PacketStream(const Stream& stream, std::unique_ptr<Framing> framing,
                           std::unique_ptr<StreamJoiner> joiner, uint32_t reorder, size_t batch)
    : stream_(stream),
      framing_(std::move(framing)),
      joiner_(std::move(joiner)),
      sample_bytes_(stream.geometry.bytes_per_sample() * stream.geometry.channels),
      window_(reorder, framing_->longest_loss()) {
    const size_t count = reorder + ReorderWindow::restart_run + batch;
    // Left as the system gives it: only what datagrams touch takes memory.
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(count * buffer_bytes);
    packets_.resize(count);
    free_.resize(count);
    std::iota(free_.rbegin(), free_.rend(), Handle{0});
}

PacketStream::Handle PacketStream::free_buffer() {
    ECHELLE_INVARIANT(!free_.empty());
    // The one used last: it is still in the cache.
    const Handle handle = free_.back();
    free_.pop_back();
    return handle;
}

void PacketStream::take(Handle handle, size_t bytes, int64_t arrival_ns) {
    facts_.datagrams += 1;
    facts_.bytes += bytes;
    if (joiner_) {
        take_part(handle, bytes, arrival_ns);
        return;
    }
    Packet& packet = packets_[handle];
    const DatagramFault fault = framing_->place(buffer(handle).first(bytes), packet.place);
    if (fault != DatagramFault::none) {
        facts_.faults[static_cast<size_t>(fault)] += 1;
        free_.push_back(handle);
        return;
    }
    packet.arrival_ns = arrival_ns;
    facts_.placed += 1;
    window_.add(packet.place.number, handle, outcome_);
    carry_out();
}

void PacketStream::take_part(Handle handle, size_t bytes, int64_t arrival_ns) {
    const DatagramFault fault = joiner_->add(buffer(handle).first(bytes), arrival_ns, joined_);
    facts_.faults[static_cast<size_t>(fault)] += fault != DatagramFault::none ? 1 : 0;
    free_.push_back(handle);
    for (JoinedPacket& each : joined_) {
        const Handle whole = free_buffer();  // its number alone: the samples have their own memory
        Packet& packet = packets_[whole];
        packet.joined.swap(each.samples);
        joiner_->recycle(std::move(each.samples));
        packet.place = each.place;
        packet.arrival_ns = each.arrival_ns;
        facts_.placed += 1;
        window_.add(packet.place.number, whole, outcome_);
        carry_out();
    }
    joined_.clear();
}

void PacketStream::flush() {
    if (joiner_) {
        joiner_->flush();
    }
    window_.flush(outcome_);
    carry_out();
}

void PacketStream::finish() {
    flush();
    frames_->finish();
    publish();
}

void PacketStream::carry_out() {
    for (const ReorderWindow::Delivery& delivery : outcome_.deliveries) {
        deliver(delivery);
        free_.push_back(delivery.handle);
    }
    free_.insert(free_.end(), outcome_.refused.begin(), outcome_.refused.end());
    outcome_.clear();
}

void PacketStream::deliver(const ReorderWindow::Delivery& delivery) {
    const Packet& packet = packets_[delivery.handle];
    const uint64_t samples = samples_of(packet);
    if (!std::exchange(has_begun_, true)) {
        frames_->begin(index_of(packet));
    } else {
        skip_hole(packet, delivery);
    }
    if (packet.place.is_invalid) {
        frames_->skip(samples);
        facts_.missing.marked += samples;
        facts_.gaps += 1;
    } else {
        frames_->append(packet.place.samples);
        facts_.samples += samples;
    }
    facts_.over_range_packets += packet.place.is_over_range ? 1 : 0;
    last_samples_ = samples;
    last_time_ = packet.place.sample_time;
}

// The count says how many packets are missing, the time how many samples; where they agree within
// the clock's tolerance the count decides, else the time.
void PacketStream::skip_hole(const Packet& packet, const ReorderWindow::Delivery& delivery) {
    if (delivery.is_restart) {
        skip_unknown(packet);
        return;
    }
    uint64_t missing = delivery.lost_before * last_samples_;
    const bool packets_are_missing = missing > 0;
    if (packet.place.sample_time && last_time_) {
        const auto by_time =
            static_cast<int64_t>(*packet.place.sample_time - (*last_time_ + last_samples_));
        const auto off = static_cast<int64_t>(static_cast<uint64_t>(by_time) - missing);
        const auto tolerance = static_cast<int64_t>(packet.place.time_tolerance);
        const bool is_believable =
            by_time >= 0 && static_cast<uint64_t>(by_time) / stream_.geometry.samples <=
                                longest_believable_gap_frames;
        if ((off < -tolerance || off > tolerance) && !is_believable) {
            skip_unknown(packet);  // the clock was set
            return;
        }
        missing = off < -tolerance || off > tolerance ? static_cast<uint64_t>(by_time) : missing;
    }
    if (missing > 0) {
        frames_->skip(missing);
        facts_.gaps += 1;
        (packets_are_missing ? facts_.missing.lost_packets : facts_.missing.sender_clock) +=
            missing;
    } else if (packets_are_missing) {
        frames_->skip(0);
        facts_.gaps += 1;
    }
}

void PacketStream::skip_unknown(const Packet& packet) {
    const uint64_t index = index_of(packet);
    const uint64_t position = frames_->position();
    const uint64_t most = longest_believable_gap_frames * stream_.geometry.samples;
    const uint64_t missing = index > position && index - position <= most ? index - position : 0;
    frames_->skip(missing);
    facts_.missing.unknown += missing;
    facts_.gaps += 1;
}

// By the packet's own time, where it is none of the future or from before the stream; else by its
// arrival, when its last sample had been taken.
uint64_t PacketStream::index_of(const Packet& packet) {
    const auto index_at = [this](int64_t unix_ns) {
        constexpr WideSigned farthest = WideSigned{1} << 62;  // keeps the product within 128 bits
        const WideSigned since =
            std::clamp(WideSigned{unix_ns} - stream_.epoch_ns, -farthest, farthest);
        const WideSigned scaled = since * WideSigned{stream_.rate.numerator};
        const WideSigned unit = WideSigned{stream_.rate.denominator} * ns_per_second;
        return (scaled + unit / 2) / unit;
    };
    const auto samples = static_cast<WideSigned>(samples_of(packet));
    WideSigned index = index_at(packet.arrival_ns) - samples;
    facts_.uses_packet_time = false;
    if (packet.place.unix_ns && *packet.place.unix_ns >= stream_.epoch_ns &&
        *packet.place.unix_ns < packet.arrival_ns + longest_clock_lead_ns) {
        index = index_at(*packet.place.unix_ns);
        facts_.uses_packet_time = true;
    }
    return static_cast<uint64_t>(std::clamp<WideSigned>(index, 0, WideSigned{1} << 62));
}

void PacketStream::publish() {
    facts_.packets = window_.counts();
    if (frames_ != nullptr) {
        facts_.frames = frames_->frames();
    }
    facts_.remarks.clear();
    if (joiner_) {
        facts_.streams = joiner_->counts();
    }
    for (const std::string& remark :
         {joiner_ ? joiner_->remark() : framing_->remark(), framing_->contradiction()}) {
        if (!remark.empty()) {
            facts_.remarks.push_back(remark);
        }
    }
    const std::lock_guard lock(mutex_);
    published_ = facts_;
}

std::string PacketStream::contradiction() const {
    constexpr uint64_t enough = 100;  // packets without one of that stream: it is not just late
    return joiner_ ? joiner_->remark(enough) : framing_->contradiction();
}

PacketFacts PacketStream::snapshot() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

}  // namespace echelle
