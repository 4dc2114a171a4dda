// What a spectrum costs on its way to a subscriber: in place in the ring of spectra, and inline
// over ipc and over tcp on loopback, one after the other for each size. One process writes spectra
// into a feed as the collector does, at a steady pace; another reads them, adds up their values as
// a user would, and takes the time from writing to having read.
//
//   feed_paths --spectra 1000
//
// Prints a JSON array: latency percentiles in microseconds, CPU time of both processes per spectrum
// once they are at work, and how many spectra were missed.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/packet.hpp"
#include "common/shared_memory.hpp"
#include "coordinator/latency_histogram.hpp"
#include "coordinator/sinks/feed.hpp"
#include "echelle/feed.hpp"
#include "echelle/ring.hpp"

namespace echelle::bench {
namespace {

constexpr int warm_up = 20;
constexpr int64_t patience_ns = 20'000'000'000;

enum class Path { ring, ipc, tcp };

struct Case {
    Path path;
    uint32_t values;
    int64_t period_ns;
    uint64_t spectra;
};

// What the two processes tell the third; in memory that they share.
struct Outcome {
    std::atomic<bool> ready{false};
    std::atomic<bool> done{false};
    uint64_t missed = 0;
    LatencyHistogram latency;
    double writer_cpu_us = 0;  // from the first spectrum after the warm-up
    double reader_cpu_us = 0;
};

// Of this process, all its threads.
double cpu_us() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& time) {
        return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
}

std::string directory() {
    return "/tmp/echelle-bench-feed-" + std::to_string(getppid());
}

std::string endpoint_of(Path path) {
    return path == Path::tcp ? "tcp://127.0.0.1:25570" : "ipc://" + directory() + "/feed";
}

void write_spectra(const Case& work, Outcome& outcome) {
    FeedSetup setup;
    setup.endpoints = {endpoint_of(Path::ipc)};
    if (work.path == Path::tcp) {
        setup.endpoints.push_back(endpoint_of(Path::tcp));
    }
    setup.ring_socket = directory() + "/spectra";
    setup.channels = 1;
    setup.packet_bytes = packet_bytes_1_1(work.values);
    Feed feed(setup);
    std::vector<float> storage(setup.packet_bytes / sizeof(float));
    const auto packet = std::as_writable_bytes(std::span(storage));
    seal_packet_1_1(packet, {.fft_size = work.values}, {});
    const int64_t deadline = monotonic_ns() + patience_ns;
    while (!outcome.ready.load() && monotonic_ns() < deadline) {
        usleep(1000);
    }
    usleep(200'000);  // the subscription is on its way
    PacketTrailer trailer;
    int64_t next_ns = monotonic_ns();
    double cpu_before_us = 0;
    for (uint64_t i = 0; i < work.spectra + warm_up; ++i) {
        cpu_before_us = i == warm_up ? cpu_us() : cpu_before_us;
        while (monotonic_ns() < next_ns) {
            const timespec pause{0, std::min<int64_t>(next_ns - monotonic_ns() + 1, 100'000)};
            nanosleep(&pause, nullptr);
        }
        next_ns += work.period_ns;
        trailer.sequence = i;
        trailer.timestamp_ns = monotonic_ns();
        reseal_trailer(packet, trailer);
        feed.write(packet);
    }
    while (!outcome.done.load() && monotonic_ns() < deadline) {
        usleep(1000);
    }
    outcome.writer_cpu_us = cpu_us() - cpu_before_us;
    feed.finish();
}

float sum_of(const client::SpectrumPacket& packet) {
    const auto* values = reinterpret_cast<const float*>(packet.data.data());
    float sum = 0;
    for (uint32_t i = 0; i < packet.fft_size; ++i) {
        sum += values[i];
    }
    return sum;
}

class Reading {
  public:
    Reading(const Case& work, Outcome& outcome)
        : last_(work.spectra + warm_up), outcome_(outcome) {}
    bool is_over() const { return seen_ >= last_; }
    void took(const client::SpectrumPacket& packet) {
        volatile float sum = sum_of(packet);  // a user reads the values
        static_cast<void>(sum);
        if (packet.trailer->sequence >= warm_up) {
            cpu_before_us_ = cpu_before_us_ > 0 ? cpu_before_us_ : cpu_us();
            outcome_.latency.add(monotonic_ns() - packet.trailer->timestamp_ns);
        }
        seen_ = packet.trailer->sequence + 1;
        if (is_over()) {
            outcome_.reader_cpu_us = cpu_us() - cpu_before_us_;
        }
    }

  private:
    uint64_t last_;
    uint64_t seen_ = 0;
    double cpu_before_us_ = 0;
    Outcome& outcome_;
};

void read_ring(const Case& work, Outcome& outcome) {
    client::SpectrumRing ring(endpoint_of(Path::ipc));
    outcome.ready.store(true);
    Reading reading(work, outcome);
    while (!reading.is_over()) {
        const auto entry = ring.next();
        if (!entry) {
            ring.wait(std::chrono::milliseconds(100));
            continue;
        }
        reading.took(client::decode_packet(entry->packet));
        ring.confirm(*entry);
    }
    outcome.missed = ring.missed();
}

void read_inline(const Case& work, Outcome& outcome) {
    client::SubscribeOptions options;
    options.timeout = std::chrono::seconds(10);
    client::Subscriber feed(endpoint_of(work.path), options);
    outcome.ready.store(true);
    Reading reading(work, outcome);
    while (!reading.is_over()) {
        if (const auto spectrum = feed.next()) {
            reading.took(spectrum->packet);
        }
    }
    outcome.missed = feed.missed();
}

template <typename Body>
pid_t start(Body body) {
    const pid_t pid = fork();
    if (pid == 0) {
        try {
            body();
            _exit(0);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "feed_paths: %s\n", error.what());
            _exit(1);
        }
    }
    return pid;
}

void wait_for_end_of(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        throw RunError("a process of the measurement failed");
    }
}

nlohmann::json measure(const Case& work) {
    const SharedMemory memory = SharedMemory::anonymous("the outcome", sizeof(Outcome), false);
    auto& outcome = *new (memory.data()) Outcome;
    const pid_t writer = start([&] { write_spectra(work, outcome); });
    usleep(300'000);  // it binds
    const pid_t reader = start([&] {
        work.path == Path::ring ? read_ring(work, outcome) : read_inline(work, outcome);
        outcome.done.store(true);
    });
    wait_for_end_of(reader);
    wait_for_end_of(writer);
    const auto spectra = static_cast<double>(work.spectra);
    constexpr std::array<const char*, 3> names{"ring", "ipc", "tcp"};
    return {{"path", names[static_cast<size_t>(work.path)]},
            {"bytes", packet_bytes_1_1(work.values)},
            {"p50_us", outcome.latency.percentile_us(0.5)},
            {"p90_us", outcome.latency.percentile_us(0.9)},
            {"p99_us", outcome.latency.percentile_us(0.99)},
            {"writer_us", outcome.writer_cpu_us / spectra},
            {"reader_us", outcome.reader_cpu_us / spectra},
            {"missed", outcome.missed}};
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    using namespace echelle::bench;
    uint64_t spectra = 1000;
    CLI::App app("A spectrum's way to a subscriber: shared memory, ipc, tcp.", "feed_paths");
    app.add_option("--spectra", spectra, "Spectra of each measurement (1000)");
    CLI11_PARSE(app, argc, argv);
    const std::string place = "/tmp/echelle-bench-feed-" + std::to_string(getpid());
    std::filesystem::create_directory(place);
    int code = 0;
    nlohmann::json found = nlohmann::json::array();
    try {
        for (const uint32_t values : {513U, 65'537U, 262'145U}) {
            for (const Path path : {Path::ring, Path::ipc, Path::tcp}) {
                const int64_t period_ns = values < 1000      ? 500'000
                                          : values < 100'000 ? 2'000'000
                                                             : 5'000'000;
                found.push_back(measure({path, values, period_ns, spectra}));
            }
        }
        std::cout << found.dump(2) << "\n";
    } catch (const std::exception& error) {
        std::fprintf(stderr, "feed_paths: %s\n", error.what());
        code = 1;
    }
    std::filesystem::remove_all(place);
    return code;
}
