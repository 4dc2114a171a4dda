#include "coordinator/info/spectra_info.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "common/crc32.hpp"
#include "common/error.hpp"
#include "common/packet.hpp"
#include "common/window.hpp"
#include "coordinator/sources/sample_file.hpp"
#include "coordinator/sources/utc_datetime.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t length_bytes = 4;  // before each packet

uint32_t big_endian(std::span<const std::byte> bytes) {
    uint32_t value = 0;
    for (const std::byte byte : bytes.first(4)) {
        value = value << 8U | std::to_integer<uint32_t>(byte);
    }
    return value;
}

std::string unit_of(const PacketTrailer& trailer) {
    const std::string base = (trailer.flags & PacketFlag::volts) != 0 ? "V^2" : "counts^2";
    return base + (trailer.scaling == Scaling::density ? "/Hz" : "");
}

// Without its parameter, which packets do not carry.
std::string window_name(WindowKind kind) {
    if (kind > WindowKind::tukey) {
        return "window " + std::to_string(static_cast<uint32_t>(kind));
    }
    const std::string text = Window{kind, 0.0}.text();
    return text.substr(0, text.find(','));
}

// What all spectra of a file have in common.
bool same_settings(const PacketView& a, const PacketView& b) {
    return a.header.fft_size == b.header.fft_size && a.has_trailer == b.has_trailer &&
           a.trailer.rate == b.trailer.rate && a.trailer.nperseg == b.trailer.nperseg &&
           a.trailer.noverlap == b.trailer.noverlap && a.trailer.window == b.trailer.window &&
           a.trailer.scaling == b.trailer.scaling && a.trailer.detrend == b.trailer.detrend &&
           a.trailer.average == b.trailer.average &&
           ((a.trailer.flags ^ b.trailer.flags) & (PacketFlag::volts | PacketFlag::two_sided)) == 0;
}

class SpectraSummary {
  public:
    explicit SpectraSummary(const std::string& path) : file_(path) {}

    Json read() {
        uint64_t at = 0;
        while (at < file_.size()) {
            const std::optional<uint64_t> next = read_record(at);
            if (!next) {
                break;
            }
            at = *next;
        }
        if (!first_) {
            throw UsageError("'" + file_.path() + "' holds no packet that can be read: " +
                             (remarks_.empty() ? "it is empty" : remarks_.front()));
        }
        return summary();
    }

  private:
    // Where the next record begins; nothing at a cut.
    std::optional<uint64_t> read_record(uint64_t at) {
        const uint64_t left = file_.size() - at;
        std::array<std::byte, length_bytes> prefix{};
        if (left >= length_bytes) {
            file_.read(at, prefix);
        }
        const uint64_t length = big_endian(prefix);
        if (left < length_bytes || length > left - length_bytes) {
            remarks_.push_back("it ends inside a record: the last " + std::to_string(left) +
                               " bytes, from byte " + std::to_string(at) + " on, cannot be used");
            return std::nullopt;
        }
        bytes_.resize(length);
        file_.read(at + length_bytes, bytes_);
        ++records_;
        PacketView view;
        const PacketError error = decode_packet(bytes_, view);
        if (error == PacketError::none) {
            add(view);
        } else {
            if (damaged_++ == 0) {
                remarks_.push_back("record " + std::to_string(records_ - 1) + " at byte " +
                                   std::to_string(at) + " is no packet that can be read (" +
                                   std::string(name_of(error)) + ")");
            }
        }
        return at + length_bytes + length;
    }

    void add(const PacketView& view) {
        const PacketTrailer& trailer = view.trailer;
        ++spectra_;
        channels_.insert(view.header.channel_id);
        if (!first_) {
            first_ = view;
        } else if (!same_settings(view, *first_) && !changed_) {
            changed_ = true;
            remarks_.push_back("settings change with record " + std::to_string(records_ - 1));
        }
        gaps_ += (trailer.flags & PacketFlag::gap_before) != 0 ? 1 : 0;
        incomplete_ += (trailer.flags & PacketFlag::incomplete) != 0 ? 1 : 0;
        partial_ += (trailer.flags & PacketFlag::partial) != 0 ? 1 : 0;
        over_range_ += trailer.over_range_count;
        first_ns_ = std::min(first_ns_, trailer.timestamp_ns);
        last_ns_ = std::max(last_ns_, trailer.timestamp_ns);
    }

    Json summary() {
        const PacketTrailer& trailer = first_->trailer;
        const uint32_t version = first_->header.version;
        Json info;
        info["kind"] = "spectra";
        info["what"] = "SpectrumPacket " + std::to_string(version >> 16U) + "." +
                       std::to_string(version & 0xFFFFU) + " recording '" + file_.path() + "'";
        info["bytes"] = file_.size();
        info["spectra"] = spectra_;
        info["channels"] = channels_.size();
        info["first_channel"] = *channels_.begin();
        info["last_channel"] = *channels_.rbegin();
        info["bins"] = first_->header.fft_size;
        if (first_->has_trailer) {
            info["rate"] = trailer.rate.text();
            info["bin_spacing_hz"] = trailer.bin_spacing_hz;
            info["first_bin_hz"] = trailer.first_bin_hz;
            info["nperseg"] = trailer.nperseg;
            info["noverlap"] = trailer.noverlap;
            info["window"] = window_name(trailer.window);
            info["scaling"] = name_of(trailer.scaling);
            info["detrend"] = name_of(trailer.detrend);
            info["average"] = name_of(trailer.average);
            info["unit"] = unit_of(trailer);
            info["start"] = utc_datetime_text(first_ns_);
            info["last_start"] = utc_datetime_text(last_ns_);
            info["gaps"] = gaps_;
            info["incomplete"] = incomplete_;
            info["partial"] = partial_;
            info["over_range_samples"] = over_range_;
        }
        info["damaged"] = damaged_;
        if (damaged_ > 1) {
            remarks_.push_back(std::to_string(damaged_) + " records are damaged in all");
        }
        if (gaps_ > 0) {
            remarks_.push_back(std::to_string(gaps_) +
                               " spectra have samples missing before or "
                               "inside them");
        }
        if (incomplete_ > 0) {
            remarks_.push_back(std::to_string(incomplete_) +
                               " spectra are of fewer segments than expected");
        }
        info["remarks"] = remarks_;
        return info;
    }

    RegularFile file_;
    std::vector<std::byte> bytes_;
    std::optional<PacketView> first_;  // its data are not kept
    std::set<uint32_t> channels_;
    std::vector<std::string> remarks_;
    uint64_t records_ = 0;
    uint64_t spectra_ = 0;
    uint64_t damaged_ = 0;
    uint64_t gaps_ = 0;
    uint64_t incomplete_ = 0;
    uint64_t partial_ = 0;
    uint64_t over_range_ = 0;
    int64_t first_ns_ = std::numeric_limits<int64_t>::max();
    int64_t last_ns_ = std::numeric_limits<int64_t>::min();
    bool changed_ = false;
};

}  // namespace

bool is_spectra_file(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    const RegularFile file(path);
    std::array<std::byte, length_bytes + packet_header_bytes> start{};
    if (file.size() < start.size()) {
        return false;
    }
    file.read(0, start);
    const auto header = std::span(start).subspan(length_bytes);
    // Any major version: what cannot be read is told as what it is.
    return crc32(header.first(packet_header_bytes - 4)) ==
           big_endian(header.subspan(packet_header_bytes - 4));
}

Json spectra_info(const std::string& path) {
    return SpectraSummary(path).read();
}

}  // namespace echelle
