// echelle-hub: passes a coordinator's feed on. Exit codes: 0 done; 1 failed while running; 2 wrong
// usage.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clients/hub/hub_options.hpp"
#include "clients/hub/relay.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/file_descriptor.hpp"
#include "common/instance.hpp"
#include "common/invariant.hpp"

namespace {

using namespace echelle;

// Can be read once SIGINT or SIGTERM has come. To be made before any thread.
FileDescriptor watch_signals() {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    FileDescriptor descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!descriptor) {
        throw RunError("cannot watch signals: " + errno_text());
    }
    return descriptor;
}

// As the feed's own thread has: beside a coordinator on the same CPUs, it is the hub that waits. To
// be made before any thread.
void give_way() {
    constexpr int nice_value = 10;
    if (getpriority(PRIO_PROCESS, 0) < nice_value) {
        static_cast<void>(setpriority(PRIO_PROCESS, 0, nice_value));  // always allowed
    }
}

// A line on standard error, unless nobody reads it: a full pipe must not stop the hub.
void say(const std::string& line) {
    pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
    if (poll(&descriptor, 1, 0) > 0 && (descriptor.revents & POLLOUT) != 0) {
        std::fprintf(stderr, "echelle-hub: %s\n", line.c_str());
    }
}

// What was counted is written whether the run ended well or not.
void write_report(const HubOptions& options, const Relay& relay, int64_t began_ns) {
    if (!options.report.empty()) {
        const double wall_s = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
        write_hub_report(options, relay.identity(), relay.books(), relay.feed_figures(), wall_s);
    }
}

void run(const HubOptions& options) {
    give_way();
    const FileDescriptor stop = watch_signals();
    const Instance instance = Instance::lock(options.name);
    const int64_t began_ns = monotonic_ns();
    const auto quiet = [](const std::string&) {};
    try {
        Relay relay(options, instance, options.quiet ? Relay::Say(quiet) : Relay::Say(say));
        try {
            relay.run(stop.get());
        } catch (...) {
            write_report(options, relay, began_ns);
            throw;
        }
        ECHELLE_INVARIANT(relay.books().close());
        write_report(options, relay, began_ns);
    } catch (...) {
        instance.remove_files();
        throw;
    }
    instance.remove_files();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const ParsedHubOptions parsed = parse_hub_options(argc, argv);
        if (parsed.run) {
            run(parsed.options);
        } else {
            std::fputs(parsed.text.c_str(), stdout);
        }
        return static_cast<int>(ExitCode::done);
    } catch (const UsageError& error) {
        std::fprintf(stderr, "echelle-hub: %s\n", error.what());
        return static_cast<int>(ExitCode::wrong_usage);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "echelle-hub: failed: %s\n", error.what());
        return static_cast<int>(ExitCode::failed_while_running);
    }
}
