#include "coordinator/sources/pcap_source.hpp"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/sources/captured_datagrams.hpp"
#include "coordinator/sources/packet_facts.hpp"
#include "coordinator/sources/packet_keys.hpp"
#include "coordinator/sources/packet_stream.hpp"
#include "coordinator/sources/replay_keys.hpp"
#include "coordinator/sources/replay_pace.hpp"

namespace echelle {
namespace {

constexpr size_t datagrams_looked_at = 1000;
constexpr size_t publish_every = 256;

// The first datagram that is one of samples in a framing that says so itself.
std::optional<FramingKind> guess_framing(const std::string& path, std::optional<uint16_t> port) {
    CapturedDatagrams datagrams(path);
    CapturedUdp udp;
    int64_t unix_ns = 0;
    for (size_t looked = 0; looked < datagrams_looked_at && datagrams.next(udp, unix_ns);) {
        if (port && udp.port != *port) {
            continue;
        }
        ++looked;
        if (const auto kind = framing_seen_in(udp.payload)) {
            return kind;
        }
    }
    return std::nullopt;
}

// What the first datagrams of samples say.
struct Beginning {
    Flow flow;
    int64_t epoch_ns = 0;
};

std::string counted(const std::map<std::string, uint64_t>& counts) {
    std::string text;
    for (const auto& [name, count] : counts) {
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
    }
    return text.empty() ? "it holds no packet" : text;
}

[[noreturn]] void refuse_without_samples(const std::string& path, const PacketKeys& keys,
                                         std::map<std::string, uint64_t> counts,
                                         const CapturedDatagrams& datagrams) {
    for (size_t i = 0; i < capture_faults; ++i) {
        if (datagrams.faults()[i] > 0) {
            counts[std::string(name_of(static_cast<CaptureFault>(i)))] += datagrams.faults()[i];
        }
    }
    throw UsageError("'" + path + "' has no datagram of samples in framing " +
                     std::string(name_of(keys.framing)) + " with " +
                     std::to_string(keys.stream.geometry.channels) + " channels (" +
                     counted(counts) + "): check framing, channels and format" +
                     (datagrams.problem().empty() ? "" : "; " + datagrams.problem()));
}

Beginning find_beginning(const std::string& path, const PacketKeys& keys,
                         std::optional<uint16_t> port) {
    CapturedDatagrams datagrams(path);
    const std::unique_ptr<Framing> framing = keys.make_framing();
    std::optional<Beginning> found;
    std::map<std::string, uint64_t> others;
    CapturedUdp udp;
    int64_t unix_ns = 0;
    for (size_t looked = 0;
         (!found || looked < datagrams_looked_at) && datagrams.next(udp, unix_ns);) {
        if ((port && udp.port != *port) || (found && !found->flow.is_of(udp))) {
            others["to another port"] += found ? 0 : 1;
            continue;
        }
        PacketPlace place;
        const DatagramFault fault = framing->place(udp.payload, place);
        if (fault != DatagramFault::none) {
            ++others[std::string(name_of(fault))];
            continue;
        }
        ++looked;
        if (!found) {
            found = Beginning{Flow::of(udp), place.unix_ns.value_or(unix_ns)};
        }
    }
    if (!found) {
        refuse_without_samples(path, keys, std::move(others), datagrams);
    }
    if (const std::string words = framing->contradiction(); !words.empty()) {
        throw UsageError("'" + path + "': " + words);
    }
    return *found;
}

class PcapSource final : public Source {
  public:
    PcapSource(std::string path, const PacketKeys& keys, ReplayKeys replay, Flow flow)
        : path_(std::move(path)),
          keys_(keys),
          replay_(std::move(replay)),
          flow_(std::move(flow)),
          packets_(keys.stream, keys.make_framing(), keys.make_joiner(), keys.reorder, 1) {}

    Stream stream() const override { return keys_.stream; }
    OverrunPolicy default_policy() const override {
        // As of any recording: played at a pace it stands for a live source.
        return replay_.speed ? OverrunPolicy::drop : OverrunPolicy::block;
    }
    std::string describe() const override {
        const std::string replay = replay_.text();
        return "packet capture '" + path_ + "': " + keys_.text() + ", port " +
               std::to_string(flow_.port) + (replay.empty() ? "" : "; played " + replay);
    }
    const char* facts_name() const override { return "source"; }

    nlohmann::json facts() const override {
        nlohmann::json json = json_of(packets_.snapshot());
        json["framing"] = name_of(keys_.framing);
        json["replay"]["speed"] =
            replay_.speed ? nlohmann::json(replay_.speed->value()) : nlohmann::json("asap");
        json["replay"]["late_frames"] = late_frames_.load(std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        json["capture"] = nlohmann::json::object();
        for (size_t i = 0; i < capture_faults; ++i) {
            if (faults_[i] > 0) {
                json["capture"][std::string(name_of(static_cast<CaptureFault>(i)))] = faults_[i];
            }
        }
        if (other_flows_ > 0) {
            json["capture"]["other_port"] = other_flows_;
        }
        if (!problem_.empty()) {
            json["remarks"].push_back(problem_);
        }
        return json;
    }

    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        FrameAssembler frames(writer, policy, stop, keys_.swaps_bytes());
        const Rational rate = keys_.stream.rate;
        frames.select(replay_.start ? replay_.start->samples_at(rate) : 0,
                      replay_.count ? replay_.count->samples_at(rate) : UINT64_MAX);
        std::optional<ReplayPace> pace;
        if (replay_.speed) {
            frames.set_pace([&](uint64_t end_sample) {
                if (!pace) {
                    pace.emplace(keys_.stream, *replay_.speed, frames.start(), late_frames_);
                }
                pace->wait_until_due(end_sample, stop);
            });
        }
        packets_.begin(frames);
        try {
            CapturedDatagrams datagrams(path_);
            play(datagrams, frames, stop);
        } catch (const UsageError& error) {
            throw RunError(error.what());  // it could be read when it was opened
        }
        packets_.finish();
        if (frames.frames().written == 0 && !stop.load(std::memory_order_relaxed)) {
            throw RunError(why_nothing_came());
        }
    }

  private:
    void play(CapturedDatagrams& datagrams, const FrameAssembler& frames,
              const std::atomic<bool>& stop) {
        CapturedUdp udp;
        int64_t unix_ns = 0;
        uint64_t others = 0;
        const auto goes_on = [&] {
            return !stop.load(std::memory_order_relaxed) && !frames.is_complete();
        };
        for (size_t count = 1; goes_on() && datagrams.next(udp, unix_ns); ++count) {
            if (!flow_.is_of(udp)) {
                ++others;
                continue;
            }
            const PacketStream::Handle handle = packets_.free_buffer();
            std::memcpy(packets_.buffer(handle).data(), udp.payload.data(), udp.payload.size());
            packets_.take(handle, udp.payload.size(), unix_ns);
            if (count % publish_every == 0) {
                note(datagrams, others);
                packets_.publish();
            }
        }
        note(datagrams, others);
    }

    std::string why_nothing_came() const {
        if (replay_.start || replay_.count) {
            return "no sample of '" + path_ + "' was selected (played " + replay_.text() +
                   "): give a smaller start, or a larger count";
        }
        std::string why = "no sample of '" + path_ + "' could be used: see source in the report";
        for (const std::string& remark : packets_.snapshot().remarks) {
            why += "; " + remark;
        }
        return why;
    }

    void note(const CapturedDatagrams& datagrams, uint64_t others) {
        const std::lock_guard lock(mutex_);
        faults_ = datagrams.faults();
        other_flows_ = others;
        problem_ = datagrams.problem();
    }

    std::string path_;
    PacketKeys keys_;
    ReplayKeys replay_;
    Flow flow_;
    PacketStream packets_;
    std::atomic<uint64_t> late_frames_{0};
    mutable std::mutex mutex_;  // guards what follows
    std::array<uint64_t, capture_faults> faults_{};
    uint64_t other_flows_ = 0;
    std::string problem_;
};

std::optional<uint16_t> take_port(SourceUri& uri) {
    const std::optional<uint64_t> port = uri.take_unsigned("port");
    if (port && (*port < 1 || *port > 65'535)) {
        throw UsageError("source '" + uri.text() + "' has port=" + std::to_string(*port) +
                         ": give 1 to 65535");
    }
    return port ? std::optional(static_cast<uint16_t>(*port)) : std::nullopt;
}

// What is played is known only when it has been read: a second pass would need the first one's end.
ReplayKeys take_replay(SourceUri& uri) {
    ReplayKeys replay = take_replay_keys(uri);
    if (replay.passes != 1U) {
        throw UsageError("source '" + uri.text() +
                         "' has loop=: a packet capture is played once; keep its samples with "
                         "--capture DIR and loop those");
    }
    return replay;
}

}  // namespace

std::unique_ptr<Source> open_pcap_source(SourceUri uri, const StreamOptions& options) {
    const std::string path = uri.path();
    if (path.empty()) {
        throw UsageError(
            "source '" + uri.text() +
            "' names no file: write it like pcap:capture.pcap?framing=vita49&rate=1e6");
    }
    const std::optional<uint16_t> port = take_port(uri);
    ReplayKeys replay = take_replay(uri);
    PacketKeys keys = take_packet_keys(uri, options, guess_framing(path, port));
    uri.refuse_unknown_keys();
    Beginning beginning = find_beginning(path, keys, port);
    keys.stream.epoch_ns = beginning.epoch_ns;
    return std::make_unique<PcapSource>(path, keys, std::move(replay), std::move(beginning.flow));
}

}  // namespace echelle
