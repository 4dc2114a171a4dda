#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "clients/record/packet_input.hpp"
#include "common/error.hpp"

namespace echelle::record {
namespace {

// Far more than any packet has: a false length must not take all memory.
constexpr uint32_t packet_bytes_most = 1U << 28;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

uint32_t big_endian(const std::byte* at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
        value = value << 8 | std::to_integer<uint32_t>(at[i]);
    }
    return value;
}

// --record FILE of the coordinator: u32 big-endian length + packet, again and again
// (docs/packet.md).
class RecordingInput : public PacketInput {
  public:
    RecordingInput(const std::string& path, std::optional<std::vector<uint32_t>> channels)
        : path_(path), file_(std::fopen(path.c_str(), "rbe")) {
        struct stat status {};
        if (!file_ || fstat(fileno(file_.get()), &status) != 0) {
            throw UsageError("cannot read " + path + ": " + errno_text());
        }
        if (!S_ISREG(status.st_mode)) {
            throw UsageError("cannot read " + path + ": it is not a regular file");
        }
        const std::vector<uint32_t> all = list_channels();
        channels_ = channels.value_or(all);
        for (const uint32_t channel : channels_) {
            if (!std::binary_search(all.begin(), all.end(), channel)) {
                throw UsageError("channel " + std::to_string(channel) + " is not in " + path);
            }
        }
    }

    Arrival next(client::SpectrumPacket& packet, std::chrono::milliseconds /*patience*/) override {
        std::array<std::byte, 4> prefix{};
        if (is_cut_) {
            return Arrival::ended;
        }
        const size_t got = read(prefix);
        if (got == 0) {
            return Arrival::ended;
        }
        const uint32_t length = got == prefix.size() ? big_endian(prefix.data()) : 0;
        if (got < prefix.size() || length > packet_bytes_most) {
            is_cut_ = true;
            return Arrival::bad;
        }
        bytes_.resize(length);
        if (read(bytes_) < length) {
            is_cut_ = true;
            return Arrival::bad;
        }
        try {
            packet = client::decode_packet(bytes_);
        } catch (const client::PacketError&) {
            return Arrival::bad;
        }
        return Arrival::packet;
    }

    const std::vector<uint32_t>& channels() const override { return channels_; }
    std::string description() const override { return {}; }
    const char* kind() const override { return "recording"; }
    bool waits() const override { return true; }

  private:
    size_t read(std::span<std::byte> to) {
        const size_t got = std::fread(to.data(), 1, to.size(), file_.get());
        if (std::ferror(file_.get()) != 0) {
            throw RunError("cannot read " + path_ + ": " + errno_text());
        }
        return got;
    }

    // Of sound packets.
    std::vector<uint32_t> list_channels() {
        std::set<uint32_t> found;
        std::array<std::byte, 4> head{};
        std::vector<std::byte> packet;
        while (read(head) == head.size()) {
            const uint32_t length = big_endian(head.data());
            if (length > packet_bytes_most) {
                break;
            }
            packet.resize(length);
            if (read(packet) < length) {
                break;
            }
            try {
                found.insert(client::decode_packet(packet).channel_id);
            } catch (const client::PacketError&) {
                continue;  // counted when it is read again
            }
        }
        if (found.empty()) {
            throw UsageError(path_ +
                             " has no spectra: name what echelle-coordinator --record wrote");
        }
        std::rewind(file_.get());
        return {found.begin(), found.end()};
    }

    std::string path_;
    std::unique_ptr<std::FILE, CloseFile> file_;
    std::vector<uint32_t> channels_;
    std::vector<std::byte> bytes_;
    bool is_cut_ = false;
};

}  // namespace

std::unique_ptr<PacketInput> open_recording(const std::string& path,
                                            std::optional<std::vector<uint32_t>> channels) {
    return std::make_unique<RecordingInput>(path, std::move(channels));
}

}  // namespace echelle::record
