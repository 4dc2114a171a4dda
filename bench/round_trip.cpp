// What two processes need to wake each other and nothing more: the round trip of an 8-byte message
// over ZeroMQ PUSH/PULL (ipc), and of a futex in shared memory. The chain's latency is read beside
// it. Trips are due once in every `--period-us`, as frames come; with 0 one follows the other.
//
//   round_trip --kind zmq --trips 5000 --period-us 204.8
//
// Prints one JSON object with percentiles in microseconds.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <zmq.hpp>

#include "bench/child.hpp"
#include "common/clock.hpp"
#include "common/futex.hpp"
#include "common/shared_memory.hpp"
#include "coordinator/latency_histogram.hpp"

namespace echelle::bench {
namespace {

constexpr int64_t futex_patience_ns = 100'000'000;
constexpr uint64_t warm_up_trips = 100;

struct Trips {
    uint64_t count = 5000;
    double period_us = 204.8;
};

// Sleeps until a trip is due and returns when its time begins. One that became due while the trip
// before it was under way, or while this process was kept off its CPU, has waited since then, as a
// frame does that comes behind a late one. (Left out, a pause of 3 ms would count once and not for
// the 15 trips it held up: "coordinated omission".)
int64_t wait_until_due(int64_t due_ns) {
    if (monotonic_ns() >= due_ns) {
        return due_ns;
    }
    const timespec until{due_ns / 1'000'000'000, due_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    return monotonic_ns();
}

template <typename Trip>
nlohmann::json measure(const Trips& trips, Trip trip) {
    LatencyHistogram since_due;
    LatencyHistogram since_begun;
    const auto period_ns = static_cast<int64_t>(trips.period_us * 1000.0);
    for (uint64_t i = 0; i < warm_up_trips; ++i) {
        trip();
    }
    int64_t next_ns = monotonic_ns();
    for (uint64_t i = 0; i < trips.count; ++i) {
        next_ns += period_ns;
        const int64_t due_ns = period_ns > 0 ? wait_until_due(next_ns) : monotonic_ns();
        const int64_t began_ns = monotonic_ns();
        trip();
        const int64_t ended_ns = monotonic_ns();
        since_due.add(ended_ns - due_ns);
        since_begun.add(ended_ns - began_ns);
    }
    return {{"trips", since_due.count()},
            {"p50_us", since_due.percentile_us(0.5)},
            {"p90_us", since_due.percentile_us(0.9)},
            {"p99_us", since_due.percentile_us(0.99)},
            {"max_us", since_due.max_us()},
            {"p99_since_begun_us", since_begun.percentile_us(0.99)}};
}

// ---- ZeroMQ

// The peer of the measuring process: sends back what it receives.
void answer_over_zmq(const std::string& there, const std::string& back, uint64_t trips) {
    zmq::context_t context(1);
    zmq::socket_t in(context, zmq::socket_type::pull);
    zmq::socket_t out(context, zmq::socket_type::push);
    in.connect(there);
    out.connect(back);
    for (uint64_t i = 0; i < trips; ++i) {
        zmq::message_t message;
        static_cast<void>(in.recv(message));
        out.send(message, zmq::send_flags::none);
    }
}

nlohmann::json zmq_round_trip(const Trips& trips) {
    const SocketFolder folder;
    const std::string there = folder.endpoint("there");
    const std::string back = folder.endpoint("back");
    Child peer(cpu_for(1), [&] { answer_over_zmq(there, back, trips.count + warm_up_trips); });
    bind_this_thread(cpu_for(0));
    zmq::context_t context(1);
    zmq::socket_t out(context, zmq::socket_type::push);
    zmq::socket_t in(context, zmq::socket_type::pull);
    out.bind(there);
    in.bind(back);
    const nlohmann::json result = measure(trips, [&] {
        zmq::message_t message(8);
        out.send(message, zmq::send_flags::none);
        static_cast<void>(in.recv(message));
    });
    peer.wait();
    return result;
}

// ---- futex

struct Words {
    alignas(64) std::atomic<uint32_t> there{0};
    alignas(64) std::atomic<uint32_t> back{0};
};

void wait_for(std::atomic<uint32_t>& word, uint32_t wanted) {
    uint32_t now = 0;
    while ((now = word.load(std::memory_order_acquire)) != wanted) {
        futex_wait(word, now, futex_patience_ns);
    }
}

void send(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value, std::memory_order_release);
    futex_wake(word, 1);
}

nlohmann::json futex_round_trip(const Trips& trips) {
    const SharedMemory memory = SharedMemory::anonymous("two words", sizeof(Words), false);
    auto& words = *new (memory.data()) Words;
    const auto last = static_cast<uint32_t>(trips.count + warm_up_trips);
    Child peer(cpu_for(1), [&] {
        for (uint32_t i = 1; i <= last; ++i) {
            wait_for(words.there, i);
            send(words.back, i);
        }
    });
    bind_this_thread(cpu_for(0));
    uint32_t number = 0;
    const nlohmann::json result = measure(trips, [&] {
        ++number;
        send(words.there, number);
        wait_for(words.back, number);
    });
    peer.wait();
    return result;
}

int run(int argc, char** argv) {
    std::string kind = "zmq";
    Trips trips;
    CLI::App app("The round trip of a bare wake-up between two processes.");
    app.add_option("--kind", kind, "zmq or futex")->check(CLI::IsMember({"zmq", "futex"}));
    app.add_option("--trips", trips.count, "Round trips to measure (5000)");
    app.add_option("--period-us", trips.period_us, "Between the starts of trips; 0: none (204.8)");
    CLI11_PARSE(app, argc, argv);
    std::cout << (kind == "zmq" ? zmq_round_trip(trips) : futex_round_trip(trips)).dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    try {
        return echelle::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "round_trip: %s\n", error.what());
        return 1;
    }
}
