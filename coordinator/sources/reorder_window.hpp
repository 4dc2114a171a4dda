// Puts packets back into the order of their numbers, and says which are missing. Pure: it knows
// numbers and the handles of whatever holds the packets, no bytes. Owned and called by the source's
// thread alone.
//
// Each number is in the end one of three: delivered in order; lost, if its packet never came; late,
// if it came after packets beyond the window had been delivered. A number that was delivered before
// is a duplicate. A packet is counted as reordered when one of a higher number came before it and
// it was delivered all the same.
//
// Numbers far from where the stream stands are not believed one by one: only when several that
// belong together follow each other, with none of the stream between them, has the sender started
// again. Until then they are held; the ones that turn out to stand alone are strays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace echelle {

struct PacketCounts {
    uint64_t delivered = 0;
    uint64_t lost = 0;
    uint64_t reordered = 0;
    uint64_t duplicates = 0;
    uint64_t late = 0;
    uint64_t strays = 0;    // implausible numbers
    uint64_t restarts = 0;  // of the sender
};

class ReorderWindow {
  public:
    using Handle = uint32_t;
    static constexpr size_t restart_run = 8;  // packets that make a restart believed
    static constexpr size_t start_run = 2;    // the same for the first ones of all

    struct Delivery {
        Handle handle = 0;
        uint64_t lost_before = 0;  // numbers missing between the delivery before and this one
        bool is_restart = false;   // what lies between the two is not known
    };
    // What is to be done with packets handed in, in this order.
    struct Outcome {
        std::vector<Delivery> deliveries;
        std::vector<Handle> refused;  // not to be used; counted

        void clear() {
            deliveries.clear();
            refused.clear();
        }
    };

    // Waits for a number until packets `span` beyond it have come. A jump forwards by more than
    // `longest_loss` is not believed. Both at least 1.
    ReorderWindow(uint32_t span, int64_t longest_loss);

    // Appends to `outcome`. Handles that appear in neither list are held: at most span + 8.
    void add(int64_t number, Handle handle, Outcome& outcome);
    // Gives out what is held: no more packets come, or none for a long while.
    void flush(Outcome& outcome);

    bool is_empty() const { return held_ == 0 && run_size_ == 0; }
    const PacketCounts& counts() const { return counts_; }

  private:
    enum class Refusal : uint8_t { duplicate, late, stray };
    struct Outlier {
        int64_t number = 0;
        Handle handle = 0;
        Refusal refusal = Refusal::stray;
    };
    struct Slot {
        Handle handle = 0;
        bool is_held = false;
    };

    void add_in_window(int64_t number, Handle handle, Outcome& outcome);
    void add_outlier(const Outlier& outlier, Outcome& outcome);
    bool belongs_to_run(int64_t number) const;
    void refuse_run(Outcome& outcome);
    void refuse(const Outlier& outlier, Outcome& outcome);
    void begin_at_run(Outcome& outcome);
    void begin(int64_t number);
    void advance(Outcome& outcome);
    void deliver_ready(Outcome& outcome);
    Refusal refusal_of(int64_t number) const;
    Slot& slot(int64_t number) {
        return slots_[static_cast<uint64_t>(number) & (slots_.size() - 1)];
    }

    static constexpr int64_t history = 1024;  // numbers behind the stream that are still known
    uint8_t& was_delivered(int64_t number) {
        return delivered_[static_cast<uint64_t>(number) % history];
    }

    int64_t span_;
    int64_t longest_loss_;
    std::vector<Slot> slots_;  // a power of two of them, so that numbers may wrap round
    size_t held_ = 0;
    bool has_begun_ = false;
    int64_t begun_at_ = 0;
    int64_t next_ = 0;      // to be delivered
    int64_t highest_ = 0;   // seen
    uint64_t missing_ = 0;  // given up since the last delivery
    bool restarted_ = false;
    std::array<uint8_t, history> delivered_{};
    std::array<Outlier, restart_run> run_{};
    size_t run_size_ = 0;
    PacketCounts counts_;
};

}  // namespace echelle
