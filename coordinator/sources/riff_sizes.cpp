#include "coordinator/sources/riff_sizes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace echelle {
namespace {

// A file of millions of empty chunks is no recording.
constexpr int most_chunks = 4096;
constexpr uint32_t open_size = std::numeric_limits<uint32_t>::max();

// Sony's GUIDs begin with the letters of the chunk that they stand for.
constexpr std::array<uint8_t, 12> w64_chunk_guid = {0xF3, 0xAC, 0xD3, 0x11, 0x8C, 0xD1,
                                                    0x00, 0xC0, 0x4F, 0x8E, 0xDB, 0x8A};
constexpr std::array<uint8_t, 12> w64_riff_guid = {0x2E, 0x91, 0xCF, 0x11, 0xA5, 0xD6,
                                                   0x28, 0xDB, 0x04, 0xC1, 0x00, 0x00};

uint64_t little_endian(std::span<const std::byte> bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i > 0; --i) {
        value = (value << 8) | std::to_integer<uint64_t>(bytes[i - 1]);
    }
    return value;
}

bool is(std::span<const std::byte> bytes, std::string_view letters) {
    return std::memcmp(bytes.data(), letters.data(), letters.size()) == 0;
}

struct Chunk {
    std::array<std::byte, 16> id{};
    uint64_t content = 0;  // byte at which its content begins
    uint64_t bytes = 0;    // of content
    bool open = false;
};

class ChunkWalk {
  public:
    ChunkWalk(const ReadBytes& read, uint64_t file_bytes) : read_(read) {
        sizes_.file_bytes = file_bytes;
    }

    std::optional<RiffSizes> sizes() {
        if (!read_form()) {
            return std::nullopt;
        }
        bool found = false;
        for (int count = 0; count < most_chunks; ++count) {
            const std::optional<Chunk> chunk = next();
            if (!chunk) {
                break;
            }
            const bool is_first_data = !found && is_data(*chunk);
            if (is_first_data) {
                found = true;
                sizes_.data_offset = chunk->content;
                sizes_.data_bytes = chunk->bytes;
                sizes_.data_open = chunk->open;
            } else if (!found && is(chunk->id, "ds64")) {
                read_long_sizes(*chunk);
            }
            if (reaches_the_end(*chunk)) {
                // Samples may be cut short; another chunk that doesn't fit is none.
                at_ = is_first_data ? sizes_.file_bytes : at_;
                break;
            }
            step_over(*chunk);
        }
        if (!found) {
            return std::nullopt;
        }
        sizes_.accounted_end = std::min(at_, sizes_.file_bytes);
        return sizes_;
    }

  private:
    bool read_form() {
        std::array<std::byte, 40> head{};
        const size_t got = read_(0, head);
        const auto bytes = std::span<const std::byte>(head);
        if (got >= 12 && is(bytes.subspan(8), "WAVE")) {
            const bool is_rf64 = is(bytes, "RF64") || is(bytes, "BW64");
            sizes_.kind = is_rf64 ? "RF64" : "WAV";
            at_ = 12;
            return is_rf64 || is(bytes, "RIFF");
        }
        wide_ = got == head.size() && is(bytes, "riff") && has_guid(bytes, w64_riff_guid) &&
                is(bytes.subspan(24), "wave") && has_guid(bytes.subspan(24), w64_chunk_guid);
        sizes_.kind = "W64";
        at_ = head.size();
        return wide_;
    }

    static bool has_guid(std::span<const std::byte> id, const std::array<uint8_t, 12>& guid) {
        return std::memcmp(id.data() + 4, guid.data(), guid.size()) == 0;
    }

    bool is_data(const Chunk& chunk) const {
        return is(chunk.id, "data") && (!wide_ || has_guid(chunk.id, w64_chunk_guid));
    }

    // The chunk at at_: absent where none begins.
    std::optional<Chunk> next() const {
        std::array<std::byte, 24> head{};
        const size_t header_bytes = wide_ ? 24 : 8;
        const auto bytes = std::span(head).first(header_bytes);
        if (at_ > sizes_.file_bytes || read_(at_, bytes) < header_bytes) {
            return std::nullopt;
        }
        Chunk chunk;
        const size_t id_bytes = wide_ ? 16 : 4;
        std::copy_n(head.begin(), id_bytes, chunk.id.begin());
        if (!is_chunk_name(chunk)) {
            return std::nullopt;
        }
        chunk.content = at_ + header_bytes;
        chunk.bytes = little_endian(bytes.subspan(id_bytes));
        if (wide_) {
            // The size of a W64 chunk counts its own header.
            if (chunk.bytes < header_bytes) {
                return std::nullopt;
            }
            chunk.bytes -= header_bytes;
        } else if (chunk.bytes == open_size) {
            chunk.open = !long_data_bytes_ && is_data(chunk);
            if (is_data(chunk)) {
                chunk.bytes = long_data_bytes_.value_or(sizes_.file_bytes - chunk.content);
            }
        }
        return chunk;
    }

    // Letters, digits and spaces: samples rarely look like this, chunk names always do.
    static bool is_chunk_name(const Chunk& chunk) {
        return std::all_of(chunk.id.begin(), chunk.id.begin() + 4, [](std::byte byte) {
            const auto letter = std::to_integer<unsigned char>(byte);
            return letter >= 0x20 && letter < 0x7F;
        });
    }

    // RF64: the sizes that don't fit 32 bits.
    void read_long_sizes(const Chunk& chunk) {
        std::array<std::byte, 16> sizes{};  // of the file, then of the data
        if (chunk.bytes >= sizes.size() && read_(chunk.content, sizes) == sizes.size()) {
            long_data_bytes_ = little_endian(std::span(sizes).subspan(8, 8));
        }
    }

    bool reaches_the_end(const Chunk& chunk) const {
        return chunk.bytes > sizes_.file_bytes - chunk.content;
    }

    void step_over(const Chunk& chunk) {
        const uint64_t alignment = wide_ ? 8 : 2;
        const uint64_t pad = (alignment - chunk.bytes % alignment) % alignment;
        const uint64_t end = chunk.content + chunk.bytes;
        at_ = end + std::min(pad, sizes_.file_bytes - end);
    }

    const ReadBytes& read_;
    RiffSizes sizes_;
    uint64_t at_ = 0;
    bool wide_ = false;  // W64: names of 16 bytes, sizes of 8
    std::optional<uint64_t> long_data_bytes_;
};

}  // namespace

std::optional<RiffSizes> read_riff_sizes(const ReadBytes& read, uint64_t file_bytes) {
    return ChunkWalk(read, file_bytes).sizes();
}

}  // namespace echelle
