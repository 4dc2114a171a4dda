// Tokens and notices across a fork: each process makes its own after it.
#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "common/clock.hpp"
#include "common/ledger.hpp"
#include "common/wakeup.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/wakeup_endpoints.hpp"

namespace echelle {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t long_ns = 20'000 * ms;

int work(NotifyKind kind, Ledger& ledger, const WakeupEndpoints& endpoints) {
    const auto wakeups = make_wakeups(kind, ledger, endpoints);
    const auto tokens = wakeups->token_receiver();
    const auto notices = wakeups->notice_sender();
    while (!ledger.workers_should_leave()) {
        tokens->prepare();
        while (const auto claim = ledger.claim_oldest(0, 0)) {
            ledger.finish(*claim);
            notices->send(claim->number);
        }
        tokens->wait(-1, 100 * ms);
    }
    return 0;
}

class WakeupProcessTest : public testing::TestWithParam<NotifyKind> {
  protected:
    uint64_t open_block() {
        BlockDescriptor block;
        block.listed_frames = 1;
        const std::array<uint64_t, 1> positions{0};
        return ledger_.open(block, positions);
    }
    // Waits until the block is DONE; how long that took.
    int64_t wait_until_done(NoticeReceiver& notices, uint64_t number) {
        const int64_t start = monotonic_ns();
        for (;;) {
            notices.prepare();
            if (ledger_.word(number).state == BlockState::done ||
                monotonic_ns() - start > long_ns) {
                return monotonic_ns() - start;
            }
            notices.wait(100 * ms);
        }
    }

    EndpointDirectory directory_;
    Ledger ledger_{{.capacity = 64, .most_frames = 1, .workers = 1, .result_bytes = 64}};
};

TEST_P(WakeupProcessTest, BlocksGoRoundWithoutWaitingForATimer) {
    ChildProcess worker([this] { return work(GetParam(), ledger_, directory_.endpoints()); });
    const auto wakeups = make_wakeups(GetParam(), ledger_, directory_.endpoints());
    const auto tokens = wakeups->token_sender();
    const auto notices = wakeups->notice_receiver();
    // The first may be lost: the worker is not there yet, and finds the block by itself.
    const uint64_t first = open_block();
    tokens->send(1);
    ASSERT_LT(wait_until_done(*notices, first), long_ns);
    ledger_.retire(first);
    usleep(200'000);
    int late = 0;
    for (int i = 0; i < 40; ++i) {
        const uint64_t number = open_block();
        tokens->send(1);
        const int64_t took = wait_until_done(*notices, number);
        ASSERT_LT(took, long_ns);
        late += took > 90 * ms ? 1 : 0;  // both sides look by themselves every 100 ms
        ledger_.retire(number);
    }
    EXPECT_LE(late, 4);
    ledger_.ask_workers_to_leave();
    tokens->send(1);
    EXPECT_EQ(worker.wait(), 0);
}

TEST_P(WakeupProcessTest, AStoppedWorkerHoldsNobodyUpAndGoesOnLater) {
    ChildProcess worker([this] { return work(GetParam(), ledger_, directory_.endpoints()); });
    const auto wakeups = make_wakeups(GetParam(), ledger_, directory_.endpoints());
    const auto tokens = wakeups->token_sender();
    const auto notices = wakeups->notice_receiver();
    const uint64_t first = open_block();
    ASSERT_LT(wait_until_done(*notices, first), long_ns);
    ledger_.retire(first);

    worker.send(SIGSTOP);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(worker.pid()), &info, WSTOPPED | WNOWAIT), 0);
    const uint64_t second = open_block();
    const int64_t start = monotonic_ns();
    for (int i = 0; i < 1000; ++i) {
        tokens->send(1);
    }
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    EXPECT_EQ(ledger_.word(second).state, BlockState::ready);
    worker.send(SIGCONT);
    EXPECT_LT(wait_until_done(*notices, second), long_ns);
    ledger_.retire(second);
}

TEST_P(WakeupProcessTest, AKilledWorkersSuccessorIsWoken) {
    auto worker = std::make_unique<ChildProcess>(
        [this] { return work(GetParam(), ledger_, directory_.endpoints()); });
    // Forked before this process has a context of its own, as the nursery would.
    int start_second[2];
    ASSERT_EQ(pipe(start_second), 0);
    ChildProcess second([this, &start_second] {
        char byte = 0;
        return read(start_second[0], &byte, 1) == 1
                   ? work(GetParam(), ledger_, directory_.endpoints())
                   : 1;
    });
    const auto wakeups = make_wakeups(GetParam(), ledger_, directory_.endpoints());
    const auto tokens = wakeups->token_sender();
    const auto notices = wakeups->notice_receiver();
    uint64_t number = open_block();
    ASSERT_LT(wait_until_done(*notices, number), long_ns);
    ledger_.retire(number);

    worker->send(SIGKILL);
    EXPECT_EQ(worker->wait(), -SIGKILL);
    ASSERT_EQ(write(start_second[1], "x", 1), 1);
    number = open_block();
    tokens->send(1);
    EXPECT_LT(wait_until_done(*notices, number), long_ns);
    ledger_.retire(number);
    ledger_.ask_workers_to_leave();
    EXPECT_EQ(second.wait(), 0);
    close(start_second[0]);
    close(start_second[1]);
}

std::string test_name(const testing::TestParamInfo<NotifyKind>& kind) {
    return std::string(name_of(kind.param));
}

INSTANTIATE_TEST_SUITE_P(Both, WakeupProcessTest,
                         testing::Values(NotifyKind::zmq, NotifyKind::futex), test_name);

}  // namespace
}  // namespace echelle
