#include "coordinator/sources/pcap_file.hpp"

#include <algorithm>
#include <array>

#include <pcap/pcap.h>

#include "common/error.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {
namespace {

using std::literals::string_view_literals::operator""sv;

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

bool looks_like_pcap(std::string_view bytes) {
    // Microseconds and nanoseconds in both byte orders, and pcapng's section header block.
    constexpr std::array starts = {"\xD4\xC3\xB2\xA1"sv, "\xA1\xB2\xC3\xD4"sv, "\x4D\x3C\xB2\xA1"sv,
                                   "\xA1\xB2\x3C\x4D"sv, "\x0A\x0D\x0D\x0A"sv};
    return std::any_of(starts.begin(), starts.end(),
                       [bytes](std::string_view start) { return bytes.starts_with(start); });
}

void PcapFile::Closer::operator()(pcap* handle) const {
    pcap_close(handle);
}

PcapFile::PcapFile(const std::string& path) : path_(path) {
    const RegularFile checked(path);
    std::array<char, PCAP_ERRBUF_SIZE> error{};
    // libpcap takes "-" for standard input.
    const std::string name = path == "-" ? "./-" : path;
    handle_.reset(pcap_open_offline_with_tstamp_precision(name.c_str(), PCAP_TSTAMP_PRECISION_NANO,
                                                          error.data()));
    if (!handle_) {
        throw UsageError("'" + path +
                         "' cannot be read as a packet capture: " + one_line(error.data()));
    }
    const int datalink = pcap_datalink(handle_.get());
    const std::optional<LinkType> link = link_type_of(datalink);
    if (!link) {
        const char* const known = pcap_datalink_val_to_name(datalink);
        throw UsageError("'" + path + "' was captured on a link of type " +
                         (known != nullptr ? std::string(known) : std::to_string(datalink)) +
                         ": Ethernet, Linux cooked (SLL, SLL2) and raw IP are read");
    }
    link_ = *link;
}

bool PcapFile::next(Packet& packet) {
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    const int result = pcap_next_ex(handle_.get(), &header, &bytes);
    if (result != 1) {
        if (result == PCAP_ERROR) {
            problem_ = "'" + path_ +
                       "' is read up to a damaged packet: " + one_line(pcap_geterr(handle_.get()));
        }
        return false;
    }
    packet.captured = {reinterpret_cast<const std::byte*>(bytes), header->caplen};
    packet.length = header->len;
    // With this precision tv_usec holds nanoseconds. A time beyond what 64 bits hold is nonsense.
    constexpr int64_t most_seconds = int64_t{1} << 32;
    const int64_t seconds = std::clamp<int64_t>(header->ts.tv_sec, 0, most_seconds);
    packet.unix_ns =
        seconds * 1'000'000'000 + std::clamp<int64_t>(header->ts.tv_usec, 0, 999'999'999);
    return true;
}

}  // namespace echelle
