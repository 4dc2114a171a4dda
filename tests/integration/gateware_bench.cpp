// gateware_bench FILE FRAMES BUSY STALLS [SEED]: simulates fpga_sim/gateware with Verilator.
//
// Converters give FRAMES frames of 4 channels x 64 samples, whose values follow from their index
// alone (test_gateware.py makes the same ones), in BUSY percent of the clocks; the receiver takes
// beats at random, and STALLS times refuses them for three frames. The packets go to FILE, as a DMA
// engine would write them. The rules of AXI4-Stream are checked at every clock. Prints a JSON
// object.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "Vcapture.h"
#include "verilated.h"

namespace {

constexpr unsigned channels = 4;
constexpr unsigned samples = 64;
constexpr unsigned beat_words = 4;  // of 32 bits: DATA_BYTES 16
constexpr unsigned frame_beats = channels * samples * 2 / 16;
constexpr unsigned packet_beats = frame_beats + 8;

uint16_t sample_value(uint64_t index, unsigned channel) {
    const auto mixed = static_cast<uint32_t>((index * channels + channel + 1) * 2'654'435'761U);
    return static_cast<uint16_t>(mixed >> 16);
}

[[noreturn]] void fail(const char* rule) {
    std::fprintf(stderr, "gateware_bench: %s\n", rule);
    std::exit(1);
}

class Bench {
  public:
    Bench(std::FILE* file, uint64_t frames, unsigned busy, unsigned stalls, unsigned seed)
        : file_(file), beats_(frames * frame_beats), busy_(busy), random_(seed) {
        for (unsigned i = 0; i < stalls; ++i) {
            stall_at_.push_back((i + 1) * beats_ / (stalls + 1));
        }
    }

    void run() {
        top_.stream_number = 7;
        top_.rst = 1;
        tick();
        tick();
        top_.rst = 0;
        while (idle_clocks_ < 10'000) {
            give_beat();
            choose_ready();
            tick();
        }
        if (packet_beat_ != 0) {
            fail("the last packet has no end");
        }
        std::printf("{\"packets\": %llu, \"beats_in\": %llu, \"stalled\": %llu}\n",
                    static_cast<unsigned long long>(packets_),
                    static_cast<unsigned long long>(given_),
                    static_cast<unsigned long long>(stalled_));
    }

  private:
    bool chance(unsigned percent) { return random_() % 100 < percent; }

    void give_beat() {
        top_.adc_valid = given_ < beats_ && chance(busy_);
        if (!top_.adc_valid) {
            return;
        }
        for (unsigned word = 0; word < beat_words; ++word) {
            const uint64_t value = given_ * 8 + word * 2;  // 16-bit values before it
            const uint32_t low = sample_value(value / channels, value % channels);
            const uint32_t high = sample_value((value + 1) / channels, (value + 1) % channels);
            top_.adc_data[word] = low | high << 16;
        }
        top_.adc_over_range = given_ == 5;
        ++given_;
    }

    void choose_ready() {
        if (next_stall_ < stall_at_.size() && given_ >= stall_at_[next_stall_]) {
            ++next_stall_;
            stall_until_ = given_ + 5 * frame_beats;
        }
        const bool stalling = given_ < stall_until_ && given_ < beats_;
        top_.m_axis_tready = !stalling && chance(90);
        stalled_ += stalling ? 1 : 0;
    }

    void tick() {
        top_.time_ns += 10;
        top_.eval();
        check_and_take();
        top_.clk = 1;
        top_.eval();
        top_.clk = 0;
        top_.eval();
    }

    void check_and_take() {
        if (top_.rst != 0) {
            return;
        }
        bool changed = false;
        for (unsigned word = 0; word < beat_words; ++word) {
            changed = changed || top_.m_axis_tdata[word] != offered_[word];
        }
        if (was_offered_ && top_.m_axis_tvalid == 0) {
            fail("TVALID fell before TREADY");
        }
        if (was_offered_ && (changed || top_.m_axis_tlast != offered_last_)) {
            fail("TDATA or TLAST changed before TREADY");
        }
        was_offered_ = top_.m_axis_tvalid != 0 && top_.m_axis_tready == 0;
        for (unsigned word = 0; word < beat_words; ++word) {
            offered_[word] = top_.m_axis_tdata[word];
        }
        offered_last_ = top_.m_axis_tlast;
        idle_clocks_ = top_.m_axis_tvalid != 0 || given_ < beats_ ? 0 : idle_clocks_ + 1;
        if (top_.m_axis_tvalid != 0 && top_.m_axis_tready != 0) {
            take_beat();
        }
    }

    void take_beat() {
        std::fwrite(offered_, 4, beat_words, file_);
        ++packet_beat_;
        if ((top_.m_axis_tlast != 0) != (packet_beat_ == packet_beats)) {
            fail("TLAST isn't at the packet's end");
        }
        if (top_.m_axis_tlast != 0) {
            packet_beat_ = 0;
            ++packets_;
        }
    }

    Vcapture top_;
    std::FILE* file_;
    uint64_t beats_;
    unsigned busy_;
    std::mt19937 random_;
    std::vector<uint64_t> stall_at_;
    size_t next_stall_ = 0;
    uint64_t stall_until_ = 0;
    uint64_t stalled_ = 0;
    uint64_t given_ = 0;
    uint64_t packets_ = 0;
    unsigned packet_beat_ = 0;
    unsigned idle_clocks_ = 0;
    bool was_offered_ = false;
    uint32_t offered_[beat_words] = {};
    uint8_t offered_last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: gateware_bench FILE FRAMES BUSY STALLS [SEED]\n");
        return 2;
    }
    std::FILE* const file = std::fopen(argv[1], "wb");
    if (file == nullptr) {
        std::perror(argv[1]);
        return 1;
    }
    const auto number = [&](int i) { return static_cast<unsigned>(std::atoi(argv[i])); };
    Bench(file, number(2), number(3), number(4), argc > 5 ? number(5) : 1).run();
    return std::fclose(file) == 0 ? 0 : 1;
}
