// The ledger between processes: workers are killed with SIGKILL at any instruction, and nothing is
// lost, doubled or torn. The parent is ingest, supervisor and collector in one thread.
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "common/clock.hpp"
#include "common/ledger.hpp"
#include "tests/unit/child_process.hpp"

namespace echelle {
namespace {

constexpr uint64_t no_block = UINT64_MAX;
constexpr size_t words = 512;  // of a result
constexpr int64_t longest_ns = 30'000'000'000;

uint64_t result_word(const Claim& claim, size_t index) {
    return (claim.number + 1) * 0x9E3779B97F4A7C15 + claim.word.packed() + index;
}

// A worker's life. Whoever claims `deadly_block` dies of it.
int work(Ledger& ledger, uint16_t id, uint16_t incarnation, uint64_t deadly_block) {
    while (!ledger.workers_should_leave()) {
        const auto claim = ledger.claim_oldest(id, incarnation);
        if (!claim) {
            sched_yield();
            continue;
        }
        if (claim->number == deadly_block) {
            ::kill(getpid(), SIGKILL);
        }
        auto* result = reinterpret_cast<uint64_t*>(ledger.result(claim->number).data());
        for (size_t i = 0; i < words; ++i) {
            if (i == words / 2 && claim->number % 2 == 0) {
                usleep(200);  // so that kills find workers at work on a busy machine, too
            }
            result[i] = result_word(*claim, i);
        }
        ledger.finish(*claim);
    }
    return 0;
}

class Cluster {
  public:
    Cluster(uint16_t workers, uint64_t deadly_block) : deadly_block_(deadly_block) {
        for (uint16_t id = 0; id < workers; ++id) {
            incarnations_.push_back(0);
            children_.push_back(fork_worker(id));
        }
    }

    void open_while_there_is_room(uint64_t up_to) {
        while (ledger_.opened() < up_to && ledger_.has_room(1)) {
            BlockDescriptor block;
            block.listed_frames = 1;
            const std::array<uint64_t, 1> positions{ledger_.opened()};
            ledger_.open(block, positions);
        }
    }

    void collect() {
        while (ledger_.oldest_open() < ledger_.opened()) {
            const uint64_t number = ledger_.oldest_open();
            const BlockWord word = ledger_.word(number);
            if (word.state != BlockState::done && word.state != BlockState::failed) {
                return;
            }
            if (word.state == BlockState::failed) {
                failed.push_back(number);
            } else if (is_whole(number, word)) {
                ++done;
            } else {
                ++torn;
            }
            ledger_.retire(number);
        }
    }

    void kill(uint16_t id) {
        children_[id].send(SIGKILL);
        recover(id);
    }

    // Waits for the dead worker, takes back what it held and forks another.
    void recover(uint16_t id) {
        EXPECT_EQ(children_[id].wait(), -SIGKILL);
        const auto reclaimed = ledger_.reclaim(id, incarnations_[id]);
        EXPECT_LE(reclaimed.requeued + reclaimed.failed, 1U);  // one claim at a time
        requeued += reclaimed.requeued;
        reclaimed_as_failed += reclaimed.failed;
        ++deaths;
        ++incarnations_[id];
        children_[id] = fork_worker(id);
    }

    void recover_those_who_died() {
        for (size_t i = 0; i < children_.size(); ++i) {
            const auto id = static_cast<uint16_t>(i);
            siginfo_t info{};
            if (waitid(P_PID, static_cast<id_t>(children_[id].pid()), &info,
                       WEXITED | WNOHANG | WNOWAIT) == 0 &&
                info.si_pid != 0) {
                recover(id);
            }
        }
    }

    void leave() {
        ledger_.ask_workers_to_leave();
        for (ChildProcess& child : children_) {
            EXPECT_EQ(child.wait(), 0);
        }
    }

    const Ledger& ledger() const { return ledger_; }
    uint64_t done = 0;
    uint64_t torn = 0;
    std::vector<uint64_t> failed;
    uint64_t requeued = 0;
    uint64_t reclaimed_as_failed = 0;
    uint64_t deaths = 0;

  private:
    ChildProcess fork_worker(uint16_t id) {
        const uint16_t incarnation = incarnations_[id];
        return ChildProcess(
            [this, id, incarnation] { return work(ledger_, id, incarnation, deadly_block_); });
    }

    // Written from end to end by the very claim that the ledger says is done.
    bool is_whole(uint64_t number, BlockWord word) const {
        word.state = BlockState::claimed;
        const auto* result = reinterpret_cast<const uint64_t*>(ledger_.result(number).data());
        for (size_t i = 0; i < words; ++i) {
            if (result[i] != result_word({number, word}, i)) {
                return false;
            }
        }
        return true;
    }

    Ledger ledger_{
        {.capacity = 32, .most_frames = 1, .workers = 8, .result_bytes = words * sizeof(uint64_t)}};
    uint64_t deadly_block_;
    std::vector<uint16_t> incarnations_;
    std::vector<ChildProcess> children_;
};

// For two seconds, or 150 deaths; longer only where the machine is too busy for enough of them.
TEST(LedgerProcess, RandomKillsLoseNothing) {
    Cluster cluster(3, no_block);
    std::mt19937 engine(4);
    const int64_t start_ns = monotonic_ns();
    int64_t next_kill_ns = start_ns;
    const auto enough = [&cluster, start_ns] {
        const int64_t elapsed_ns = monotonic_ns() - start_ns;
        return cluster.deaths >= 150 || elapsed_ns > longest_ns ||
               (elapsed_ns > 2'000'000'000 && cluster.deaths > 10 && cluster.requeued > 3);
    };
    while (!enough()) {
        cluster.open_while_there_is_room(UINT64_MAX);
        cluster.collect();
        if (monotonic_ns() >= next_kill_ns) {
            cluster.kill(static_cast<uint16_t>(engine() % 3));
            next_kill_ns = monotonic_ns() + static_cast<int64_t>(engine() % 8'000'000);
        }
    }
    const uint64_t total = cluster.ledger().opened();
    while (cluster.ledger().oldest_open() < total && monotonic_ns() - start_ns < 2 * longest_ns) {
        cluster.collect();
    }
    cluster.leave();
    EXPECT_EQ(cluster.ledger().oldest_open(), total);
    EXPECT_EQ(cluster.done + cluster.failed.size(), total);
    EXPECT_EQ(cluster.torn, 0U);
    EXPECT_EQ(cluster.failed.size(), cluster.reclaimed_as_failed);
    EXPECT_LE(cluster.requeued + cluster.reclaimed_as_failed, cluster.deaths);
    EXPECT_GT(cluster.done, 100U);
    EXPECT_GT(cluster.deaths, 10U);
    EXPECT_GT(cluster.requeued, 3U);
}

// A block that kills three workers is given up; its neighbours are not.
TEST(LedgerProcess, ABlockThatKillsItsWorkersFailsAlone) {
    constexpr uint64_t total = 500;
    constexpr uint64_t deadly = 123;
    Cluster cluster(2, deadly);
    const int64_t start_ns = monotonic_ns();
    while (cluster.ledger().oldest_open() < total && monotonic_ns() - start_ns < longest_ns) {
        cluster.open_while_there_is_room(total);
        cluster.collect();
        cluster.recover_those_who_died();
    }
    cluster.leave();
    EXPECT_EQ(cluster.failed, (std::vector<uint64_t>{deadly}));
    EXPECT_EQ(cluster.done, total - 1);
    EXPECT_EQ(cluster.torn, 0U);
    EXPECT_EQ(cluster.deaths, 3U);
    EXPECT_EQ(cluster.requeued, 2U);
    EXPECT_EQ(cluster.reclaimed_as_failed, 1U);
}

}  // namespace
}  // namespace echelle
