// echelle-fpga-sim: stands in for a capture card. Makes a ring of frames in shared memory that a
// coordinator attaches to (--source ring:NAME), a file of raw samples, or both; or sends the
// samples as UDP packets (--send).
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <string>

// GCC 12 suspects a null pointer in libstdc++ where CLI11 moves strings about.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/ring.hpp"
#include "fpga_sim/frame_producer.hpp"
#include "fpga_sim/packet_sender.hpp"
#include "fpga_sim/sim_options.hpp"

namespace echelle {
namespace {

constexpr int64_t attach_grace_ns = 2'000'000'000;

// The handler does nothing but this, which is safe in a handler.
std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void ask_to_stop(int /*signal*/) {
    stop_asked.store(true, std::memory_order_relaxed);
}

void end_cleanly_on_signals() {
    struct sigaction action {};
    action.sa_handler = ask_to_stop;
    sigemptyset(&action.sa_mask);
    // No SA_RESTART: a sleep or a wait for room is to end early.
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // A full file size limit is then an error of write() like any other.
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, nullptr);
    // So is a reader that has left.
    sigaction(SIGPIPE, &action, nullptr);
}

struct Arguments {
    SimArguments sim;
    std::string ring;
    uint64_t ring_frames = 256;
    std::string send;
    std::string send_report;
};

void add_options(CLI::App& app, Arguments& arguments) {
    app.set_version_flag("--version", ECHELLE_VERSION);
    app.add_option("--ring", arguments.ring, "make the ring /dev/shm/echelle-NAME")
        ->type_name("NAME");
    app.add_option("--ring-frames", arguments.ring_frames, "frames that the ring holds (256)")
        ->type_name("N");
    app.add_option("--send", arguments.send,
                   "send packets: udp://ADDRESS:PORT?framing=vita49|spead|raw&mtu=9000&...")
        ->type_name("URI");
    app.add_option("--send-report", arguments.send_report,
                   "write what was sent, and what was done to it, to FILE (JSON)")
        ->type_name("FILE");
    for (const SimKey& key : sim_keys()) {
        app.add_option_function<std::string>(
               "--" + std::string(key.name),
               [&key, &arguments](const std::string& text) { key.set(arguments.sim, text); },
               std::string(key.meaning))
            ->type_name(std::string(key.type));
    }
}

void pause_briefly() {
    const timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
}

void wait_for_consumer(const Ring& ring) {
    while (!stop_asked.load(std::memory_order_relaxed) && !ring.consumer_alive()) {
        pause_briefly();
    }
}

// A consumer may still be reading, or about to attach if none ever has: the region goes when it has
// detached or died, or when nobody has come.
void wait_for_detachment(const Ring& ring) {
    const bool was_consumed = ring.header().tail.load(std::memory_order_acquire) > 0;
    const int64_t deadline = monotonic_ns() + (was_consumed ? 0 : attach_grace_ns);
    bool seen = false;
    while (!stop_asked.load(std::memory_order_relaxed)) {
        const bool consumed = ring.consumer_alive();
        seen = seen || consumed;
        if (!consumed && (seen || monotonic_ns() >= deadline)) {
            return;
        }
        pause_briefly();
    }
}

void feed_ring(const Arguments& arguments, const SimOptions& options, FrameProducer& producer) {
    Ring ring = Ring::create_named(arguments.ring, options.stream, arguments.ring_frames);
    producer.fill(ring, stop_asked);
    if (options.pace == Pace::realtime) {
        // Only now does sample 0 come; nobody reads the header before it says "running".
        ring.header().epoch_ns = realtime_ns();
    }
    RingWriter writer(ring);
    const bool wait_for_room = options.pace == Pace::asap;
    if (wait_for_room) {
        wait_for_consumer(ring);
    }
    try {
        producer.run(writer, wait_for_room, stop_asked);
    } catch (...) {
        writer.end();
        throw;
    }
    writer.end();
    wait_for_detachment(ring);
}

void send_packets(const Arguments& arguments, const SimOptions& options) {
    if (!arguments.ring.empty() || !options.write_raw.empty()) {
        throw UsageError("--send goes with neither --ring nor --write-raw: start it twice");
    }
    if (options.faults.any()) {
        throw UsageError(
            "--send takes its faults from its own keys (loss, reorder, duplicates): leave out "
            "--drop and its like");
    }
    PacketSender sender(options, parse_send_options(arguments.send, options));
    std::ofstream report;
    if (!arguments.send_report.empty()) {
        report.open(arguments.send_report);
        if (!report) {
            throw UsageError("cannot write '" + arguments.send_report +
                             "': give --send-report a file in a directory that can be written");
        }
    }
    end_cleanly_on_signals();
    sender.run(stop_asked);
    if (report.is_open() && !(report << sender.json() << std::endl)) {
        throw RunError("cannot write '" + arguments.send_report + "'");
    }
    std::fprintf(stderr, "echelle-fpga-sim: %s\n", sender.json().c_str());
}

void simulate(const Arguments& arguments) {
    const SimOptions options = complete_sim_options(arguments.sim);
    if (!arguments.send.empty()) {
        send_packets(arguments, options);
        return;
    }
    if (arguments.ring.empty() && options.write_raw.empty() && options.write_framed.empty()) {
        throw UsageError(
            "nowhere to put the frames: give --ring NAME, --write-raw FILE, --write-framed FILE, "
            "several of them, or --send URI");
    }
    if (arguments.ring.empty() && !options.write_raw.empty() && !options.frames) {
        throw UsageError(
            "--write-raw without --ring would fill the disk: give --frames or "
            "--duration");
    }
    end_cleanly_on_signals();
    FrameProducer producer(options);
    if (arguments.ring.empty()) {
        producer.write_files(stop_asked);
    } else {
        feed_ring(arguments, options, producer);
    }
    const ProducerCounts& counts = producer.counts();
    std::fprintf(
        stderr, "echelle-fpga-sim: %llu frames published, %llu dropped, %llu repeated, %llu late\n",
        static_cast<unsigned long long>(counts.published),
        static_cast<unsigned long long>(counts.dropped),
        static_cast<unsigned long long>(counts.repeated),
        static_cast<unsigned long long>(counts.late));
}

int complain(const std::exception& error, ExitCode code) {
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::fprintf(stderr, "echelle-fpga-sim: %s\n", line.c_str());
    return static_cast<int>(code);
}

int run(int argc, char** argv) {
    CLI::App app(
        "Simulates an FPGA capture card: 16-bit frames into a shared-memory ring or a file",
        "echelle-fpga-sim");
    Arguments arguments;
    try {
        add_options(app, arguments);
        app.parse(argc, argv);
        simulate(arguments);
        return static_cast<int>(ExitCode::done);
    } catch (const CLI::Success& asked) {
        return app.exit(asked);  // --help, --version
    } catch (const CLI::ParseError& error) {
        return complain(UsageError(std::string(error.what()) + "; see --help"),
                        ExitCode::wrong_usage);
    } catch (const UsageError& error) {
        return complain(error, ExitCode::wrong_usage);
    } catch (const std::exception& error) {
        return complain(error, ExitCode::failed_while_running);
    }
}

}  // namespace
}  // namespace echelle

int main(int argc, char** argv) {
    return echelle::run(argc, argv);
}
