#include "fpga_sim/packet_format.hpp"

#include <algorithm>

#include "common/invariant.hpp"

namespace echelle {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr size_t spead_header = 8;
constexpr size_t spead_items = 5;

// Appends big-endian numbers.
class Writer {
  public:
    explicit Writer(std::span<std::byte> bytes) : left_(bytes) {}

    void put(uint64_t value, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) {
            left_[i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
        }
        left_ = left_.subspan(bytes);
    }
    bool is_full() const { return left_.empty(); }

  private:
    std::span<std::byte> left_;
};

}  // namespace

size_t PacketFormat::header_bytes() const {
    switch (framing) {
        case PacketFraming::vita49:
            switch (time) {
                case PacketTime::samples:
                case PacketTime::picoseconds:
                    return 20;
                case PacketTime::free_running:
                    return 16;
                case PacketTime::none:
                    return 8;
            }
            break;
        case PacketFraming::spead:
            return spead_header + spead_items * 8;
        case PacketFraming::raw:
            break;
    }
    return raw_header_bytes;
}

void PacketFormat::write_header(uint64_t count, uint64_t first_sample,
                                std::span<std::byte> header) const {
    switch (framing) {
        case PacketFraming::vita49:
            write_vita49(count, first_sample, header);
            return;
        case PacketFraming::spead:
            write_spead(count, header);
            return;
        case PacketFraming::raw:
            std::fill(header.begin(), header.end(), std::byte{0});
            sequence.write(count * sequence_step, header);
            return;
    }
}

void PacketFormat::write_vita49(uint64_t count, uint64_t first_sample,
                                std::span<std::byte> header) const {
    constexpr uint64_t picoseconds_per_second = 1'000'000'000'000;
    const size_t words = (header.size() + samples * sample_bytes()) / 4;
    const bool has_second = time == PacketTime::samples || time == PacketTime::picoseconds;
    const uint64_t tsi = has_second ? 1 : 0;  // UTC
    const uint64_t tsf = time == PacketTime::samples        ? 1
                         : time == PacketTime::picoseconds  ? 2
                         : time == PacketTime::free_running ? 3
                                                            : 0;
    Writer writer(header);
    writer.put(uint64_t{1} << 28 | tsi << 22 | tsf << 20 | (count & 0xF) << 16 | words, 4);
    writer.put(stream_id, 4);
    // Whole seconds of signal, and the rest in units of 1 / (rate's denominator x a sample).
    const Wide scaled = Wide{first_sample} * stream.rate.denominator;
    const auto second = static_cast<uint64_t>(scaled / stream.rate.numerator);
    const Wide rest = scaled % stream.rate.numerator;
    if (has_second) {
        writer.put(static_cast<uint64_t>(start_second) + second, 4);
    }
    switch (time) {
        case PacketTime::samples:
            writer.put(static_cast<uint64_t>(rest / stream.rate.denominator), 8);
            break;
        case PacketTime::picoseconds:
            writer.put(static_cast<uint64_t>(rest * picoseconds_per_second / stream.rate.numerator),
                       8);
            break;
        case PacketTime::free_running:
            writer.put(first_sample, 8);
            break;
        case PacketTime::none:
            break;
    }
    ECHELLE_INVARIANT(writer.is_full());
}

void PacketFormat::write_spead(uint64_t count, std::span<std::byte> header) const {
    constexpr uint64_t immediate = uint64_t{1} << 63;
    constexpr uint64_t address_bits = 48;
    const uint64_t payload = samples * sample_bytes();
    const auto item = [](uint64_t id, uint64_t value) {
        return immediate | id << address_bits | value;
    };
    Writer writer(header);
    writer.put(0x5304'0206'0000'0000 | spead_items, 8);
    writer.put(item(1, count / packets_per_heap + 1), 8);
    writer.put(item(2, packets_per_heap * payload), 8);
    writer.put(item(3, count % packets_per_heap * payload), 8);
    writer.put(item(4, payload), 8);
    writer.put(uint64_t{0x3300} << address_bits, 8);
    ECHELLE_INVARIANT(writer.is_full());
}

}  // namespace echelle
