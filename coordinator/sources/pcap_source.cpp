#include "coordinator/sources/pcap_source.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/sources/captured_udp.hpp"
#include "coordinator/sources/packet_facts.hpp"
#include "coordinator/sources/packet_keys.hpp"
#include "coordinator/sources/packet_stream.hpp"
#include "coordinator/sources/pcap_file.hpp"
#include "coordinator/sources/spead.hpp"
#include "coordinator/sources/vita49.hpp"

namespace echelle {
namespace {

constexpr size_t datagrams_looked_at = 1000;
constexpr size_t publish_every = 256;

// Where datagrams go: one capture may hold several streams.
struct Flow {
    std::vector<std::byte> address;
    uint16_t port = 0;

    bool is_of(const CapturedUdp& udp) const {
        return udp.port == port && std::ranges::equal(udp.destination, address);
    }
    static Flow of(const CapturedUdp& udp) {
        return {{udp.destination.begin(), udp.destination.end()}, udp.port};
    }
};

// The UDP datagrams of a capture, one after the other, and a count of everything else.
class Datagrams {
  public:
    explicit Datagrams(const std::string& path) : file_(path) {}

    bool next(CapturedUdp& udp, int64_t& unix_ns) {
        PcapFile::Packet packet;
        while (file_.next(packet)) {
            const CaptureFault fault = find_udp(file_.link(), packet.captured, packet.length, udp);
            if (fault == CaptureFault::none) {
                unix_ns = packet.unix_ns;
                return true;
            }
            ++faults_[static_cast<size_t>(fault)];
        }
        return false;
    }
    const std::array<uint64_t, capture_faults>& faults() const { return faults_; }
    const std::string& problem() const { return file_.problem(); }

  private:
    PcapFile file_;
    std::array<uint64_t, capture_faults> faults_{};
};

std::optional<FramingKind> framing_of(std::span<const std::byte> payload) {
    SpeadPacket spead;
    if (parse_spead(payload, spead) == DatagramFault::none) {
        return FramingKind::spead;
    }
    Vita49Packet vita49;
    if (parse_vita49(payload, vita49) == DatagramFault::none) {
        return FramingKind::vita49;
    }
    return std::nullopt;
}

// The first datagram that is one of samples in a framing that says so itself.
std::optional<FramingKind> guess_framing(const std::string& path, std::optional<uint16_t> port) {
    Datagrams datagrams(path);
    CapturedUdp udp;
    int64_t unix_ns = 0;
    for (size_t looked = 0; looked < datagrams_looked_at && datagrams.next(udp, unix_ns);) {
        if (port && udp.port != *port) {
            continue;
        }
        ++looked;
        if (const auto kind = framing_of(udp.payload)) {
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
                                         const Datagrams& datagrams) {
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
    Datagrams datagrams(path);
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
    PcapSource(std::string path, const PacketKeys& keys, Flow flow)
        : path_(std::move(path)),
          keys_(keys),
          flow_(std::move(flow)),
          packets_(keys.stream, keys.make_framing(), keys.reorder, 1) {}

    Stream stream() const override { return keys_.stream; }
    OverrunPolicy default_policy() const override { return OverrunPolicy::block; }
    std::string describe() const override {
        return "packet capture '" + path_ + "': " + keys_.text() + ", port " +
               std::to_string(flow_.port);
    }
    const char* facts_name() const override { return "source"; }

    nlohmann::json facts() const override {
        nlohmann::json json = json_of(packets_.snapshot());
        json["framing"] = name_of(keys_.framing);
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
        packets_.begin(frames);
        try {
            Datagrams datagrams(path_);
            play(datagrams, stop);
        } catch (const UsageError& error) {
            throw RunError(error.what());  // it could be read when it was opened
        }
        packets_.finish();
    }

  private:
    void play(Datagrams& datagrams, const std::atomic<bool>& stop) {
        CapturedUdp udp;
        int64_t unix_ns = 0;
        uint64_t others = 0;
        for (size_t count = 1;
             !stop.load(std::memory_order_relaxed) && datagrams.next(udp, unix_ns); ++count) {
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

    void note(const Datagrams& datagrams, uint64_t others) {
        const std::lock_guard lock(mutex_);
        faults_ = datagrams.faults();
        other_flows_ = others;
        problem_ = datagrams.problem();
    }

    std::string path_;
    PacketKeys keys_;
    Flow flow_;
    PacketStream packets_;
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

}  // namespace

std::unique_ptr<Source> open_pcap_source(SourceUri uri, const StreamOptions& options) {
    const std::string path = uri.path();
    if (path.empty()) {
        throw UsageError(
            "source '" + uri.text() +
            "' names no file: write it like pcap:capture.pcap?framing=vita49&rate=1e6");
    }
    const std::optional<uint16_t> port = take_port(uri);
    PacketKeys keys = take_packet_keys(uri, options, guess_framing(path, port));
    uri.refuse_unknown_keys();
    Beginning beginning = find_beginning(path, keys, port);
    keys.stream.epoch_ns = beginning.epoch_ns;
    return std::make_unique<PcapSource>(path, keys, std::move(beginning.flow));
}

}  // namespace echelle
