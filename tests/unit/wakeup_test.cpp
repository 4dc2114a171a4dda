// Tokens and notices of both kinds, inside one process. Coordinator and worker each have their own
// Wakeups, as in life; ring and ledger play no part.
#include "common/wakeup.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/file_descriptor.hpp"
#include "tests/unit/child_process.hpp"
#include "tests/unit/wakeup_endpoints.hpp"

namespace echelle {
namespace {

constexpr int64_t ms = 1'000'000;
constexpr int64_t long_ns = 20'000 * ms;  // only a wait that is not ended early lasts so long

enum class Way { tokens, notices };

// One sender and one receiver, tokens or notices alike.
struct Channel {
    std::unique_ptr<TokenSender> token_sender;
    std::unique_ptr<TokenReceiver> token_receiver;
    std::unique_ptr<NoticeSender> notice_sender;
    std::unique_ptr<NoticeReceiver> notice_receiver;

    void send() { token_sender ? token_sender->send(1) : notice_sender->send(17); }
    void prepare() { token_receiver ? token_receiver->prepare() : notice_receiver->prepare(); }
    // How long it took.
    int64_t wait(int64_t timeout_ns) {
        const int64_t start = monotonic_ns();
        token_receiver ? token_receiver->wait(-1, timeout_ns) : notice_receiver->wait(timeout_ns);
        return monotonic_ns() - start;
    }
};

class WakeupTest : public testing::TestWithParam<std::tuple<NotifyKind, Way>> {
  protected:
    NotifyKind kind() const { return std::get<0>(GetParam()); }
    Way way() const { return std::get<1>(GetParam()); }

    void make_sender() {
        if (way() == Way::tokens) {
            channel_.token_sender = coordinator_->token_sender();
        } else {
            channel_.notice_sender = worker_->notice_sender();
        }
    }
    void make_receiver() {
        if (way() == Way::tokens) {
            channel_.token_receiver = worker_->token_receiver();
        } else {
            channel_.notice_receiver = coordinator_->notice_receiver();
        }
    }
    // Until one gets through: before that, hints may be lost. Leaves nothing under way.
    void connect() {
        make_receiver();
        make_sender();
        const int64_t deadline = monotonic_ns() + long_ns;
        do {
            ASSERT_LT(monotonic_ns(), deadline);
            channel_.prepare();
            channel_.send();
        } while (channel_.wait(100 * ms) > 80 * ms);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }

    EndpointDirectory directory_;
    Ledger ledger_{{.capacity = 1, .most_frames = 1, .workers = 1, .result_bytes = 64}};
    std::unique_ptr<Wakeups> coordinator_ = make_wakeups(kind(), ledger_, directory_.endpoints());
    std::unique_ptr<Wakeups> worker_ = make_wakeups(kind(), ledger_, directory_.endpoints());
    Channel channel_;
};

TEST_P(WakeupTest, EndsAWaitEarly) {
    connect();
    channel_.prepare();
    std::thread sender([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        channel_.send();
    });
    EXPECT_LT(channel_.wait(long_ns), long_ns / 2);
    sender.join();
}

TEST_P(WakeupTest, BetweenPrepareAndWaitIsNotLost) {
    connect();
    for (int i = 0; i < 5; ++i) {
        channel_.prepare();
        channel_.send();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_LT(channel_.wait(long_ns), long_ns / 2);
    }
}

TEST_P(WakeupTest, BeforePrepareIsForgotten) {
    connect();
    channel_.send();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    channel_.prepare();
    EXPECT_GE(channel_.wait(30 * ms), 29 * ms);
}

TEST_P(WakeupTest, WaitsEndByTheirTimeout) {
    make_receiver();
    channel_.prepare();
    const int64_t waited = channel_.wait(30 * ms);
    EXPECT_GE(waited, 29 * ms);
    EXPECT_LT(waited, long_ns / 2);
    for (const int64_t timeout : {int64_t{0}, int64_t{1}, int64_t{-1}, -1 * ms, -10'000 * ms}) {
        EXPECT_LT(channel_.wait(timeout), long_ns / 2) << timeout;
    }
}

TEST_P(WakeupTest, SendingToNobodyDoesNotBlock) {
    make_sender();
    const int64_t start = monotonic_ns();
    for (int i = 0; i < 5000; ++i) {
        channel_.send();
    }
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
}

TEST_P(WakeupTest, SendingToAStalledReceiverDoesNotBlockAndItWakesLater) {
    connect();
    channel_.prepare();
    const int64_t start = monotonic_ns();
    for (int i = 0; i < 20'000; ++i) {
        channel_.send();
    }
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
    EXPECT_LT(channel_.wait(long_ns), long_ns / 2);
    // What it swallowed comes to an end, and then it waits again.
    const int64_t deadline = monotonic_ns() + long_ns;
    do {
        ASSERT_LT(monotonic_ns(), deadline);
        channel_.prepare();
    } while (channel_.wait(50 * ms) < 49 * ms);
}

TEST_P(WakeupTest, ASenderMayComeAfterItsReceiver) {
    make_receiver();
    EXPECT_GE(channel_.wait(20 * ms), 19 * ms);
    make_sender();
    const int64_t deadline = monotonic_ns() + long_ns;
    do {
        ASSERT_LT(monotonic_ns(), deadline);
        channel_.prepare();
        channel_.send();
    } while (channel_.wait(100 * ms) > 80 * ms);
}

std::string test_name_of_both(const testing::TestParamInfo<std::tuple<NotifyKind, Way>>& both) {
    const auto& [kind, way] = both.param;
    return std::string(name_of(kind)) + (way == Way::tokens ? "Tokens" : "Notices");
}

INSTANTIATE_TEST_SUITE_P(Both, WakeupTest,
                         testing::Combine(testing::Values(NotifyKind::zmq, NotifyKind::futex),
                                          testing::Values(Way::tokens, Way::notices)),
                         test_name_of_both);

class TokenTest : public testing::TestWithParam<NotifyKind> {};

// `count` tokens wake as many workers, whether they share them out or are all woken.
TEST_P(TokenTest, CountWakesAsManyWorkers) {
    const EndpointDirectory directory;
    Ledger ledger({.capacity = 1, .most_frames = 1, .workers = 1, .result_bytes = 64});
    const auto coordinator = make_wakeups(GetParam(), ledger, directory.endpoints());
    const auto sender = coordinator->token_sender();
    std::atomic<bool> go{false};
    std::atomic<uint32_t> connected{0};
    std::atomic<uint32_t> woken{0};
    std::vector<std::thread> workers;
    workers.reserve(2);
    for (int i = 0; i < 2; ++i) {
        workers.emplace_back([&] {
            const auto wakeups = make_wakeups(GetParam(), ledger, directory.endpoints());
            const auto receiver = wakeups->token_receiver();
            receiver->wait(-1, long_ns);
            connected.fetch_add(1);
            while (!go.load()) {
                receiver->prepare();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            receiver->prepare();
            connected.fetch_add(1);
            const int64_t start = monotonic_ns();
            receiver->wait(-1, long_ns);
            woken.fetch_add(monotonic_ns() - start < long_ns / 2 ? 1 : 0);
        });
    }
    const auto wait_for = [&connected, &sender](uint32_t count, uint32_t tokens) {
        const int64_t deadline = monotonic_ns() + long_ns;
        while (connected.load() < count && monotonic_ns() < deadline) {
            if (tokens > 0) {
                sender->send(tokens);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    };
    wait_for(2, 2);
    go.store(true);
    wait_for(4, 0);
    sender->send(2);
    for (std::thread& worker : workers) {
        worker.join();
    }
    EXPECT_EQ(woken.load(), 2U);
}

std::string test_name(const testing::TestParamInfo<NotifyKind>& kind) {
    return std::string(name_of(kind.param));
}

INSTANTIATE_TEST_SUITE_P(Both, TokenTest, testing::Values(NotifyKind::zmq, NotifyKind::futex),
                         test_name);

FileDescriptor pidfd_of(pid_t pid) {
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

TEST(ZmqWakeups, TheCoordinatorsEndEndsAWait) {
    ChildProcess stands_for_the_coordinator([] {
        usleep(30'000);
        return 0;
    });
    const FileDescriptor pidfd = pidfd_of(stands_for_the_coordinator.pid());
    ASSERT_TRUE(pidfd);
    const EndpointDirectory directory;
    const auto wakeups = make_zmq_wakeups(directory.endpoints());
    const auto receiver = wakeups->token_receiver();
    receiver->prepare();
    const int64_t start = monotonic_ns();
    receiver->wait(pidfd.get(), long_ns);
    receiver->wait(pidfd.get(), long_ns);  // and every later one
    EXPECT_LT(monotonic_ns() - start, long_ns / 2);
}

TEST(ZmqWakeups, AnEndpointThatCannotBeHadIsARunError) {
    const EndpointDirectory directory;
    const std::vector<std::string> impossible = {"ipc://" + directory.file("no-such-directory/x"),
                                                 "ipc://" + directory.file(std::string(120, 'x')),
                                                 "nonsense"};
    for (const std::string& endpoint : impossible) {
        const auto wakeups = make_zmq_wakeups({endpoint, endpoint});
        EXPECT_THROW(wakeups->token_sender(), RunError) << endpoint;
        EXPECT_THROW(wakeups->notice_receiver(), RunError) << endpoint;
    }
}

TEST(NotifyKind, HasItsOptionsNames) {
    EXPECT_EQ(parse_notify_kind("zmq"), NotifyKind::zmq);
    EXPECT_EQ(parse_notify_kind("futex"), NotifyKind::futex);
    for (const char* text : {"", "ZMQ", "zmq ", "eventfd"}) {
        EXPECT_THROW(parse_notify_kind(text), UsageError) << text;
    }
    EXPECT_EQ(name_of(NotifyKind::zmq), "zmq");
    EXPECT_EQ(name_of(NotifyKind::futex), "futex");
}

}  // namespace
}  // namespace echelle
