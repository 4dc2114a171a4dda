// All the ledger's parties at once, as threads: ingest, workers that die, a supervisor, a
// collector. Written to be clean under ThreadSanitizer.
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/ledger.hpp"

namespace echelle {
namespace {

constexpr uint64_t blocks = 50'000;
constexpr uint16_t workers = 3;
constexpr size_t words = 8;  // of a result

uint64_t result_word(uint64_t mark, size_t index) {
    return (mark + 1) * 0x9E3779B97F4A7C15 + index;
}

class Stress {
  public:
    void run() {
        std::vector<std::thread> threads;
        threads.emplace_back([this] { ingest(); });
        threads.emplace_back([this] { supervise(); });
        for (uint16_t id = 0; id < workers; ++id) {
            threads.emplace_back([this, id] { work(id); });
        }
        collect();
        ledger_.ask_workers_to_leave();
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

    void check() const {
        EXPECT_EQ(ledger_.opened(), blocks);
        EXPECT_EQ(ledger_.oldest_open(), blocks);
        EXPECT_EQ(collected_done_ + collected_dropped_ + collected_failed_, blocks);
        EXPECT_EQ(wrong_, 0U);
        EXPECT_EQ(collected_done_, finished_.load());
        EXPECT_EQ(collected_dropped_, dropped_);
        EXPECT_EQ(collected_failed_, failed_);
        EXPECT_EQ(died_.load(), requeued_ + failed_);
        EXPECT_EQ(stale_accepted_.load(), 0U);
        // The parties did meet.
        EXPECT_GT(collected_done_, blocks / 2);
        EXPECT_GT(collected_dropped_, 0U);
        EXPECT_GT(requeued_, 0U);
    }

  private:
    void ingest() {
        std::mt19937 engine(1);
        for (uint64_t number = 0; number < blocks; ++number) {
            while (!ledger_.has_room(1)) {
                std::this_thread::yield();
            }
            BlockDescriptor block;
            block.group = number * 3;
            block.listed_frames = 2;
            block.own_frames = 2;
            const std::array<uint64_t, 2> positions{number, number + 1};
            ledger_.open(block, positions);
            if (engine() % 4 == 0) {  // against the workers' claims
                const uint64_t victim = number - std::min<uint64_t>(number, engine() % 3);
                dropped_ += ledger_.drop(victim, DropReason::overrun);
            }
        }
        ledger_.close();
    }

    void work(uint16_t id) {
        std::mt19937 engine(100U + id);
        uint16_t incarnation = 0;
        while (!ledger_.workers_should_leave()) {
            const auto claim = ledger_.claim_oldest(id, incarnation);
            if (!claim) {
                std::this_thread::yield();
                continue;
            }
            const bool dies = engine() % 16 == 0;
            compute(*claim, dies ? words / 2 : words);
            if (dies) {
                die(id, *claim);
                ++incarnation;
            } else {
                finished_.fetch_add(ledger_.finish(*claim));
            }
        }
    }

    void compute(const Claim& claim, size_t words_written) {
        const uint64_t mark =
            ledger_.descriptor(claim.number).group + ledger_.positions(claim.number)[1];
        auto* result = reinterpret_cast<uint64_t*>(ledger_.result(claim.number).data());
        for (size_t i = 0; i < words_written; ++i) {
            result[i] = result_word(mark, i);
        }
    }

    // Lies dead until the supervisor has taken the block back, then begins a new life.
    void die(uint16_t id, const Claim& claim) {
        died_.fetch_add(1);
        dead_[id].store(claim.word.incarnation + 1U, std::memory_order_release);
        while (dead_[id].load(std::memory_order_acquire) != 0) {
            std::this_thread::yield();
        }
        stale_accepted_.fetch_add(ledger_.finish(claim));
    }

    void supervise() {
        while (!ledger_.workers_should_leave()) {
            for (uint16_t id = 0; id < workers; ++id) {
                const uint32_t dead = dead_[id].load(std::memory_order_acquire);
                if (dead != 0) {
                    const auto reclaimed = ledger_.reclaim(id, static_cast<uint16_t>(dead - 1));
                    requeued_ += reclaimed.requeued;
                    failed_ += reclaimed.failed;
                    dead_[id].store(0, std::memory_order_release);
                }
            }
            std::this_thread::yield();
        }
    }

    void collect() {
        for (uint64_t number = 0; number < blocks; ++number) {
            BlockState state = BlockState::free;
            while (number >= ledger_.opened() ||
                   (state = ledger_.word(number).state) < BlockState::done) {
                std::this_thread::yield();
            }
            collected_done_ += state == BlockState::done;
            collected_dropped_ += state == BlockState::dropped;
            collected_failed_ += state == BlockState::failed;
            wrong_ += state == BlockState::done && !is_whole(number);
            ledger_.retire(number);
        }
    }

    bool is_whole(uint64_t number) const {
        const auto* result = reinterpret_cast<const uint64_t*>(ledger_.result(number).data());
        for (size_t i = 0; i < words; ++i) {
            if (result[i] != result_word(number * 3 + number + 1, i)) {
                return false;
            }
        }
        return true;
    }

    Ledger ledger_{{.capacity = 16,
                    .most_frames = 2,
                    .workers = workers,
                    .result_bytes = words * sizeof(uint64_t)}};
    std::array<std::atomic<uint32_t>, workers> dead_{};  // incarnation + 1 of one who is dead
    std::atomic<uint64_t> finished_{0};
    std::atomic<uint64_t> died_{0};
    std::atomic<uint64_t> stale_accepted_{0};
    uint64_t dropped_ = 0;   // ingest
    uint64_t requeued_ = 0;  // supervisor
    uint64_t failed_ = 0;    // supervisor
    uint64_t collected_done_ = 0;
    uint64_t collected_dropped_ = 0;
    uint64_t collected_failed_ = 0;
    uint64_t wrong_ = 0;
};

TEST(LedgerStress, EveryBlockIsCollectedOnceInOrderWhoeverDies) {
    Stress stress;
    stress.run();
    stress.check();
}

}  // namespace
}  // namespace echelle
