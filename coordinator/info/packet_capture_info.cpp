#include "coordinator/info/packet_capture_info.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <set>
#include <vector>

#include <arpa/inet.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "common/error.hpp"
#include "common/source_uri.hpp"
#include "coordinator/sources/captured_datagrams.hpp"
#include "coordinator/sources/packet_keys.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/sample_file.hpp"
#include "coordinator/sources/utc_datetime.hpp"
#include "coordinator/sources/vita49.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t most_flows = 64;
constexpr size_t most_stream_ids = 64;  // of a flow

// What goes to one address and port.
struct FlowSummary {
    Flow flow;
    uint64_t datagrams = 0;
    uint64_t vita49 = 0;  // of samples
    uint64_t spead = 0;
    size_t smallest = std::numeric_limits<size_t>::max();
    size_t largest = 0;
    std::set<uint32_t> stream_ids;
};

std::string address_text(const Flow& flow) {
    constexpr size_t v4_bytes = 4;
    const bool is_v4 = flow.address.size() == v4_bytes;
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(is_v4 ? AF_INET : AF_INET6, flow.address.data(), text.data(), text.size());
    return (is_v4 ? text.data() : "[" + std::string(text.data()) + "]") + ":" +
           std::to_string(flow.port);
}

std::string id_text(uint32_t id) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "0x%X", id);
    return text.data();
}

Json json_of(const FlowSummary& summary) {
    Json json;
    json["to"] = address_text(summary.flow);
    json["datagrams"] = summary.datagrams;
    json["bytes_least"] = summary.smallest;
    json["bytes_most"] = summary.largest;
    json["vita49"] = summary.vita49;
    json["spead"] = summary.spead;
    json["stream_ids"] = Json::array();
    for (const uint32_t id : summary.stream_ids) {
        json["stream_ids"].push_back(id_text(id));
    }
    return json;
}

class CaptureSummary {
  public:
    explicit CaptureSummary(const std::string& path) : path_(path), datagrams_(path) {}

    Json read() {
        CapturedUdp udp;
        int64_t unix_ns = 0;
        while (datagrams_.next(udp, unix_ns)) {
            first_ns_ = count_ == 0 ? unix_ns : first_ns_;
            last_ns_ = unix_ns;
            ++count_;
            add(udp);
        }
        if (count_ == 0 && !datagrams_.problem().empty()) {
            throw UsageError(datagrams_.problem());
        }
        return summary();
    }

  private:
    void add(const CapturedUdp& udp) {
        auto found = std::ranges::find_if(
            flows_, [&udp](const FlowSummary& summary) { return summary.flow.is_of(udp); });
        if (found == flows_.end()) {
            if (flows_.size() == most_flows) {
                ++of_other_flows_;
                return;
            }
            flows_.emplace_back().flow = Flow::of(udp);
            found = flows_.end() - 1;
        }
        found->datagrams += 1;
        found->smallest = std::min(found->smallest, udp.payload.size());
        found->largest = std::max(found->largest, udp.payload.size());
        const auto framing = framing_seen_in(udp.payload);
        found->spead += framing == FramingKind::spead ? 1 : 0;
        found->vita49 += framing == FramingKind::vita49 ? 1 : 0;
        Vita49Packet packet;
        if (framing == FramingKind::vita49 &&
            parse_vita49(udp.payload, packet) == DatagramFault::none && packet.stream_id &&
            found->stream_ids.size() < most_stream_ids) {
            found->stream_ids.insert(*packet.stream_id);
        }
    }

    Json summary() const {
        Json info;
        info["kind"] = "packets";
        info["what"] = "packet capture '" + path_ + "'";
        info["datagrams"] = count_;
        info["start"] = count_ > 0 ? Json(utc_datetime_text(first_ns_)) : Json(nullptr);
        info["duration_s"] = static_cast<double>(last_ns_ - first_ns_) / 1e9;
        info["flows"] = Json::array();
        for (const FlowSummary& flow : flows_) {
            info["flows"].push_back(json_of(flow));
        }
        info["left_out"] = Json::object();
        for (size_t i = 0; i < capture_faults; ++i) {
            if (datagrams_.faults()[i] > 0) {
                info["left_out"][std::string(name_of(static_cast<CaptureFault>(i)))] =
                    datagrams_.faults()[i];
            }
        }
        info["remarks"] = remarks();
        return info;
    }

    Json remarks() const {
        Json remarks = Json::array();
        if (!datagrams_.problem().empty()) {
            remarks.push_back(datagrams_.problem());
        }
        if (of_other_flows_ > 0) {
            remarks.push_back(std::to_string(of_other_flows_) +
                              " datagrams go to further addresses or ports");
        }
        if (datagrams_.faults()[static_cast<size_t>(CaptureFault::truncated)] > 0) {
            remarks.push_back("packets were cut short: capture them with tcpdump -s 0");
        }
        return remarks;
    }

    std::string path_;
    CapturedDatagrams datagrams_;
    std::vector<FlowSummary> flows_;
    uint64_t of_other_flows_ = 0;
    uint64_t count_ = 0;
    int64_t first_ns_ = 0;
    int64_t last_ns_ = 0;
};

}  // namespace

std::optional<std::string> packet_capture_path(const std::string& source) {
    if (source.starts_with("pcap:")) {
        SourceUri uri = SourceUri::parse(source);
        if (source.find('?') != std::string::npos) {
            throw UsageError("'" + source + "' has keys: name the file alone, all of it is told");
        }
        if (uri.path().empty()) {
            throw UsageError("'" + source + "' names no file: write it like pcap:capture.pcap");
        }
        return uri.path();
    }
    struct stat status {};
    if (stat(source.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return std::nullopt;
    }
    constexpr size_t enough = 4;
    return looks_like_pcap(bytes_of_file(RegularFile(source), 0, enough)) ? std::optional(source)
                                                                          : std::nullopt;
}

Json packet_capture_info(const std::string& path) {
    return CaptureSummary(path).read();
}

}  // namespace echelle
