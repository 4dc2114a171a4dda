// Hand-outs of empty blocks through the real ledger and the real wake-ups, between processes: one
// thread opens blocks as ingest does (a group at a time, tokens where a worker waits), workers
// claim and finish them and tell of the one that is awaited, and another thread retires them in
// order as the collector does.
//
//   hand_out --notify futex --workers 2 --seconds 2            as fast as they go
//   hand_out --notify futex --workers 2 --rate 132700          latency at that rate
//
// Prints one JSON object: blocks per second and the time from opened to retired.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/child.hpp"
#include "common/clock.hpp"
#include "common/futex.hpp"
#include "common/ledger.hpp"
#include "common/wakeup.hpp"
#include "coordinator/collector.hpp"
#include "coordinator/latency_histogram.hpp"

namespace echelle::bench {
namespace {

constexpr uint32_t open_groups = 64;  // as in the product
constexpr int64_t worker_wait_ns = 100'000'000;
constexpr int64_t collector_wait_ns = 5'000'000;
constexpr int64_t room_wait_ns = 2'000'000;

struct HandOutOptions {
    std::string notify = "zmq";
    uint32_t workers = 2;
    double seconds = 2.0;
    double rate = 0.0;  // blocks per second; 0: as many as possible
    uint32_t blocks_per_group() const { return 2 * workers; }
};

void work(Ledger& ledger, Wakeups& wakeups, uint16_t id) {
    const auto tokens = wakeups.token_receiver();
    const auto notices = wakeups.notice_sender();
    while (!ledger.workers_should_leave()) {
        ledger.look_for_work(id);
        tokens->prepare();
        bool claimed = false;
        while (const auto claim = ledger.claim_oldest(id, 1)) {
            claimed = true;
            ledger.worker(id).stage.store(static_cast<uint32_t>(WorkerStage::computing));
            ledger.finish(*claim);
            if (ledger.is_awaited(claim->number)) {
                notices->send(claim->number);
            }
        }
        if (!claimed) {
            tokens->wait(-1, worker_wait_ns);
        }
    }
}

class HandOut {
  public:
    HandOut(Ledger& ledger, Wakeups& wakeups, const HandOutOptions& options)
        : ledger_(ledger), wakeups_(wakeups), options_(options) {}

    nlohmann::json run() {
        const auto notices = wakeups_.notice_receiver();
        const auto tokens = wakeups_.token_sender();
        wait_for_workers(*tokens);
        const int64_t began_ns = monotonic_ns();
        std::thread collector([&] { collect(*notices); });
        open(*tokens, began_ns);
        collector.join();
        const double seconds = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
        return {{"blocks_per_s", static_cast<double>(ledger_.opened()) / seconds},
                {"blocks", ledger_.opened()},
                {"p50_us", latency_.percentile_us(0.5)},
                {"p99_us", latency_.percentile_us(0.99)},
                {"max_us", latency_.max_us()}};
    }

  private:
    // Each worker has looked for work at least once, so its sockets are there.
    void wait_for_workers(TokenSender& tokens) const {
        for (uint16_t id = 0; id < options_.workers; ++id) {
            while (ledger_.worker(id).stage.load() == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
        tokens.send(options_.workers);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }

    void open(TokenSender& tokens, int64_t began_ns) {
        const auto length_ns = static_cast<int64_t>(options_.seconds * 1e9);
        int64_t now_ns = began_ns;
        while ((now_ns = monotonic_ns()) - began_ns < length_ns) {
            wait_until_due(began_ns);
            const uint32_t seen = ledger_.room_futex().load(std::memory_order_acquire);
            uint32_t opened = 0;
            while (is_due(began_ns) && ledger_.has_room(options_.blocks_per_group())) {
                open_group();
                opened += options_.blocks_per_group();
            }
            if (opened > 0 && ledger_.a_worker_waits()) {
                tokens.send(std::min(opened, options_.workers));
            } else if (opened == 0) {
                futex_wait(ledger_.room_futex(), seen, room_wait_ns);
            }
        }
        ledger_.close();
    }

    bool is_due(int64_t began_ns) const {
        const double elapsed_s = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
        return options_.rate <= 0.0 ||
               static_cast<double>(ledger_.opened()) <= elapsed_s * options_.rate;
    }
    void wait_until_due(int64_t began_ns) const {
        while (!is_due(began_ns)) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }

    void open_group() {
        BlockDescriptor block;
        block.opened_ns = monotonic_ns();
        block.blocks_in_group = options_.blocks_per_group();
        block.listed_frames = 1;
        block.own_frames = 1;
        const std::array<uint64_t, 1> positions{0};
        for (uint32_t i = 0; i < block.blocks_in_group; ++i) {
            block.index_in_group = i;
            ledger_.open(block, positions);
        }
    }

    void collect(NoticeReceiver& notices) {
        while (true) {
            notices.prepare();
            ledger_.await_block(block_to_wait_for(ledger_, options_.blocks_per_group()));
            uint32_t collected = 0;
            while (ledger_.oldest_open() < ledger_.opened() && retire_oldest()) {
                ++collected;
            }
            if (ledger_.closed() && ledger_.oldest_open() == ledger_.opened()) {
                break;
            }
            if (collected == 0) {
                notices.wait(collector_wait_ns);
                continue;
            }
            ledger_.room_futex().fetch_add(1, std::memory_order_release);
            futex_wake(ledger_.room_futex());
        }
    }

    bool retire_oldest() {
        const uint64_t number = ledger_.oldest_open();
        if (ledger_.word(number).state != BlockState::done) {
            return false;
        }
        const int64_t opened_ns = ledger_.descriptor(number).opened_ns;
        ledger_.retire(number);
        latency_.add(monotonic_ns() - opened_ns);
        return true;
    }

    Ledger& ledger_;
    Wakeups& wakeups_;
    const HandOutOptions& options_;
    LatencyHistogram latency_;
};

int run(int argc, char** argv) {
    HandOutOptions options;
    CLI::App app("Hand-outs of empty blocks between processes.");
    app.add_option("--notify", options.notify, "zmq or futex");
    app.add_option("--workers", options.workers, "Worker processes (2)");
    app.add_option("--seconds", options.seconds, "How long to measure (2)");
    app.add_option("--rate", options.rate, "Blocks per second; 0: as many as possible (0)");
    CLI11_PARSE(app, argc, argv);

    LedgerShape shape;
    shape.capacity = open_groups * options.blocks_per_group();
    shape.most_frames = 1;
    shape.workers = options.workers;
    shape.result_bytes = 64;
    Ledger ledger(shape);
    const SocketFolder folder;
    const WakeupEndpoints endpoints{folder.endpoint("tokens"), folder.endpoint("notices")};
    const NotifyKind kind = parse_notify_kind(options.notify);
    std::vector<Child> workers;
    for (uint16_t id = 0; id < options.workers; ++id) {
        workers.emplace_back(cpu_for(id), [&] {
            const auto wakeups = make_wakeups(kind, ledger, endpoints);
            work(ledger, *wakeups, id);
        });
    }
    const auto wakeups = make_wakeups(kind, ledger, endpoints);
    const nlohmann::json result = HandOut(ledger, *wakeups, options).run();
    ledger.ask_workers_to_leave();
    for (Child& worker : workers) {
        worker.wait();
    }
    std::cout << result.dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    try {
        return echelle::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hand_out: %s\n", error.what());
        return 1;
    }
}
