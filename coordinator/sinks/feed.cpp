#include "coordinator/sinks/feed.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/packet_fields.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

// Below the workers: where the CPUs are not enough for both it is the feed that loses, and counts.
constexpr int nice_value = 10;
constexpr uint64_t descriptors_for_others = 4;  // one in four may be a subscriber's

FeedLimits limits_here() {
    FeedLimits limits;
    // libzmq ends the process when an ipc connection finds no descriptor left.
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        limits.connections =
            std::min<size_t>(limits.connections, files.rlim_cur / descriptors_for_others);
    }
    return limits;
}

// Of this thread and those that libzmq makes from it.
void become_background() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pthread_setname_np(pthread_self(), "echelle-feed");
    // On Linux a thread has its own; where it is refused the feed runs as the others do.
    static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_value));
}

}  // namespace

Feed::Feed(const FeedSetup& setup) : exchange_(setup.channels, limits_here()) {
    std::promise<void> bound;
    auto outcome = bound.get_future();
    thread_ = std::thread([this, setup, bound = std::move(bound)]() mutable {
        become_background();
        std::unique_ptr<FeedPublisher> publisher;
        try {
            publisher = std::make_unique<FeedPublisher>(setup, exchange_);
        } catch (...) {
            bound.set_exception(std::current_exception());
            return;
        }
        bound.set_value();
        try {
            publisher->run();
        } catch (const std::exception& error) {
            // The run goes on: spectra that are recorded are worth more than the feed.
            warn(std::string("the feed has ended: ") + error.what());
        }
    });
    try {
        outcome.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

Feed::~Feed() {
    join();
}

void Feed::join() {
    if (thread_.joinable()) {
        exchange_.stopping.store(true, std::memory_order_release);
        exchange_.wake();
        thread_.join();
    }
}

void Feed::write(std::span<const std::byte> packet) {
    const auto channel = load_big<uint32_t>(packet.data() + 8);
    const std::byte* trailer = packet.data() + packet.size() - packet_trailer_bytes;
    constexpr uint16_t told = PacketFlag::gap_before | PacketFlag::over_range;
    if (exchange_.interest.wants(TextTopic::event) && (flags_in(trailer) & told) != 0) {
        const PacketTrailer read = read_trailer(trailer);
        exchange_.marks.push({channel, read.flags, read.first_sample, read.over_range_count});
    }
    if (!exchange_.interest.wants_channel(channel)) {
        return;
    }
    if (SpectrumRingWriter* ring = exchange_.ring()) {
        ring->write(packet, channel, sequence_in(trailer));
        exchange_.wake();
    }
}

void Feed::finish() {
    join();
}

void Feed::send_text(const std::string& topic, const std::string& json) {
    exchange_.leave_text(topic, json);
}

}  // namespace echelle
