#include "fpga_sim/packet_sender.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include <net/if.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/punctual_sleep.hpp"
#include "fpga_sim/philox.hpp"

namespace echelle {
namespace {

constexpr uint64_t sound_at_start = 16;
constexpr uint64_t sound_at_end = 128;
constexpr size_t batch = 32;         // datagrams of one system call
constexpr int64_t nap_ns = 100'000;  // shorter waits are not worth going to sleep
constexpr int64_t late_ns = 1'000'000;
constexpr size_t loop_bytes = size_t{16} << 20;

void put_samples(std::span<const int16_t> values, bool is_big_endian, std::byte* to) {
    for (const int16_t value : values) {
        const auto bits = static_cast<uint16_t>(value);
        const auto high = static_cast<std::byte>(bits >> 8);
        const auto low = static_cast<std::byte>(bits & 0xFF);
        *to++ = is_big_endian ? high : low;
        *to++ = is_big_endian ? low : high;
    }
}

}  // namespace

PacketSender::PacketSender(const SimOptions& sim, SendOptions options)
    : sim_(sim),
      options_(std::move(options)),
      generator_(sim.signal, sim.stream, sim.seed),
      packets_in_all_(sim.frames
                          ? *sim.frames * sim.stream.geometry.samples / options_.format.samples
                          : std::numeric_limits<uint64_t>::max()) {
    if (packets_in_all_ == 0) {
        throw UsageError("--send: the stream is shorter than one packet of " +
                         std::to_string(options_.format.samples) +
                         " samples: give more frames or a smaller mtu");
    }
    const FrameGeometry& geometry = sim_.stream.geometry;
    const uint64_t frames = std::max<uint64_t>(2, loop_bytes / geometry.frame_bytes()) +
                            options_.format.samples / geometry.samples;
    loop_samples_ = frames * geometry.samples;
    loop_.resize(frames * geometry.frame_bytes());
    frame_.resize(geometry.frame_values());
    open_socket();
}

void PacketSender::open_socket() {
    fd_ = FileDescriptor(socket(options_.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd_) {
        throw UsageError("cannot make a UDP socket: " + errno_text());
    }
    const int buffer = 16 << 20;
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (options_.interface.empty()) {
        return;
    }
    const auto index = static_cast<int>(if_nametoindex(options_.interface.c_str()));
    ip_mreqn request{};
    request.imr_ifindex = index;
    const bool is_v6 = options_.address.ss_family == AF_INET6;
    const int result =
        is_v6 ? setsockopt(fd_.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index)
              : setsockopt(fd_.get(), IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
    if (index == 0 || result != 0) {
        throw UsageError("--send: multicast cannot leave by interface=" + options_.interface +
                         ": " + errno_text() + "; see ip link");
    }
}

// Frames until `sample` is among them; with Generate::once each is made only the first time round.
void PacketSender::make_frames_up_to(uint64_t sample) {
    const FrameGeometry& geometry = sim_.stream.geometry;
    while (frames_made_ * geometry.samples < sample) {
        const uint64_t first = frames_made_ * geometry.samples;
        if (sim_.generate == Generate::each || first < loop_samples_) {
            generator_.generate(first, frame_);
            put_samples(frame_, options_.format.is_big_endian,
                        loop_.data() + first % loop_samples_ * options_.format.sample_bytes());
        }
        ++frames_made_;
    }
}

PacketSender::Datagram PacketSender::make_packet(uint64_t number) {
    const PacketFormat& format = options_.format;
    const size_t header = format.header_bytes();
    const size_t payload = format.samples * format.sample_bytes();
    const uint64_t first_sample = number * format.samples;
    const uint64_t restart = options_.faults.restart_after;
    Datagram bytes;
    if (!spare_.empty()) {
        bytes = std::move(spare_.back());
        spare_.pop_back();
    }
    bytes.resize(header + payload);
    format.write_header(restart != 0 && number >= restart ? number - restart : number, first_sample,
                        std::span(bytes).first(header));
    make_frames_up_to(first_sample + format.samples);
    const size_t begin = first_sample % loop_samples_ * format.sample_bytes();
    const size_t first_part = std::min(payload, loop_.size() - begin);
    std::memcpy(bytes.data() + header, loop_.data() + begin, first_part);
    std::memcpy(bytes.data() + header + first_part, loop_.data(), payload - first_part);
    return bytes;
}

// In [0, 1), by the seed.
double PacketSender::chance(Chance what, uint64_t number) const {
    constexpr uint32_t packet_stream = 0xFFFF'FF10;  // apart from noise and the faults of frames
    const PhiloxCounter words =
        philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                    static_cast<uint32_t>(what), packet_stream},
                   philox_key(sim_.seed));
    return words[0] * 0x1p-32;
}

bool PacketSender::may_fail(uint64_t number) const {
    return number >= sound_at_start && (packets_in_all_ == std::numeric_limits<uint64_t>::max() ||
                                        number + sound_at_end < packets_in_all_);
}

void PacketSender::dispatch(uint64_t number) {
    const PacketFaults& faults = options_.faults;
    ++counts_.packets;
    if (!may_fail(number)) {
        queue(make_packet(number), number, false);
        return;
    }
    if (chance(Chance::loss, number) < faults.loss) {
        ++counts_.lost;
        return;
    }
    const uint64_t after =
        number + 1 + static_cast<uint64_t>(chance(Chance::depth, number) * faults.reorder_depth);
    Datagram bytes = make_packet(number);
    const bool is_sent_twice = chance(Chance::duplicate, number) < faults.duplicates;
    Datagram copy = is_sent_twice ? bytes : Datagram();
    if (chance(Chance::reorder, number) < faults.reorder) {
        delayed_.push_back({after, number, false, std::move(bytes)});
    } else {
        queue(std::move(bytes), number, false);
    }
    if (is_sent_twice) {
        delayed_.push_back({after, number, true, std::move(copy)});
    }
}

void PacketSender::send_delayed(uint64_t after) {
    for (size_t i = 0; i < delayed_.size();) {
        if (delayed_[i].after > after) {
            ++i;
            continue;
        }
        Delayed due = std::move(delayed_[i]);
        delayed_.erase(delayed_.begin() + static_cast<std::ptrdiff_t>(i));
        queue(std::move(due.bytes), due.number, due.is_second);
    }
}

void PacketSender::queue(Datagram bytes, uint64_t number, bool is_second) {
    if (is_second) {
        ++counts_.duplicated;
    } else if (has_sent_ && number < highest_) {
        ++counts_.reordered;
    } else {
        has_sent_ = true;
        highest_ = number;
    }
    queue_.push_back(std::move(bytes));
    if (queue_.size() == batch) {
        send_queued();
    }
}

void PacketSender::send_queued() {
    std::array<mmsghdr, batch> messages{};
    std::array<iovec, batch> vectors{};
    for (size_t i = 0; i < queue_.size(); ++i) {
        vectors[i] = {queue_[i].data(), queue_[i].size()};
        messages[i].msg_hdr.msg_name = &options_.address;
        messages[i].msg_hdr.msg_namelen = options_.address_bytes;
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (size_t done = 0; done < queue_.size();) {
        const int sent = sendmmsg(fd_.get(), messages.data() + done,
                                  static_cast<unsigned>(queue_.size() - done), 0);
        if (sent > 0) {
            for (size_t i = done; i < done + static_cast<size_t>(sent); ++i) {
                counts_.bytes += queue_[i].size();
            }
            counts_.sent += static_cast<uint64_t>(sent);
            done += static_cast<size_t>(sent);
        } else if (errno == EMSGSIZE || errno == EACCES || errno == EINVAL) {
            throw RunError("--send: a datagram of " + std::to_string(queue_[done].size()) +
                           " bytes cannot be sent: " + errno_text() +
                           "; is the mtu of the interface that large?");
        } else if (errno != EINTR) {
            // Nobody listens, no route, no buffer: what a live sender does not wait for.
            ++counts_.refused;
            ++done;
        }
    }
    std::move(queue_.begin(), queue_.end(), std::back_inserter(spare_));
    queue_.clear();
}

// Until the packet's last sample would have been taken, and the network's jitter is over.
bool PacketSender::wait_for(uint64_t number, const std::atomic<bool>& stop) {
    if (sim_.pace == Pace::asap) {
        return !stop.load(std::memory_order_relaxed);
    }
    int64_t due_ns =
        start_ns_ + sample_time_ns((number + 1) * options_.format.samples, sim_.stream.rate);
    if (options_.faults.jitter_us > 0) {
        due_ns +=
            static_cast<int64_t>(chance(Chance::jitter, number) * options_.faults.jitter_us * 1000);
    }
    const int64_t now_ns = monotonic_ns();
    counts_.late += now_ns - due_ns > late_ns ? 1 : 0;
    if (due_ns - now_ns < nap_ns) {
        return !stop.load(std::memory_order_relaxed);
    }
    send_queued();
    return sleep_until(due_ns, stop);
}

void PacketSender::run(const std::atomic<bool>& stop) {
    const PunctualThread punctual;
    if (sim_.generate == Generate::once) {
        const uint64_t last = packets_in_all_ < loop_samples_
                                  ? packets_in_all_ * options_.format.samples
                                  : loop_samples_;
        make_frames_up_to(std::min(last, loop_samples_));
    }
    start_ns_ = monotonic_ns();
    for (uint64_t number = 0; number < packets_in_all_ && wait_for(number, stop); ++number) {
        dispatch(number);
        send_delayed(number);
    }
    send_delayed(std::numeric_limits<uint64_t>::max());
    send_queued();
    counts_.seconds = static_cast<double>(monotonic_ns() - start_ns_) / 1e9;
}

std::string PacketSender::json() const {
    std::array<char, 1024> text{};
    const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
    std::snprintf(text.data(), text.size(),
                  "{\"packets\": %llu, \"sent\": %llu, \"lost\": %llu, \"reordered\": %llu, "
                  "\"duplicated\": %llu, \"refused\": %llu, \"late\": %llu, \"bytes\": %llu, "
                  "\"samples_per_packet\": %u, \"samples\": %llu, \"samples_lost\": %llu, "
                  "\"seconds\": %.6f}",
                  number(counts_.packets), number(counts_.sent), number(counts_.lost),
                  number(counts_.reordered), number(counts_.duplicated), number(counts_.refused),
                  number(counts_.late), number(counts_.bytes), options_.format.samples,
                  number(counts_.packets * options_.format.samples),
                  number(counts_.lost * options_.format.samples), counts_.seconds);
    return text.data();
}

}  // namespace echelle
