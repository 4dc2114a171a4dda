#include "coordinator/metrics/metrics_exporter.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "coordinator/metrics/counter_floor.hpp"
#include "coordinator/metrics/metrics_families.hpp"

namespace echelle {
namespace {

constexpr int nice_value = 10;  // as the feed
constexpr std::chrono::seconds patience{2};
constexpr int64_t reuse_ns = 100'000'000;  // books of this age serve another scrape

// CivetWeb's own words: its user manual, "Configuration Options".
std::vector<std::string> server_options(const MetricsAddress& address) {
    return {"listening_ports",
            address.text(),
            "num_threads",
            "4",
            "connection_queue",
            "16",
            "listen_backlog",
            "16",
            "request_timeout_ms",  // of a request that drips in, or an answer nobody takes
            "1000",
            "max_request_size",
            "8192",
            "enable_directory_listing",
            "no"};
}

void become_background() {
    pthread_setname_np(pthread_self(), "metrics");
    // On Linux a thread has its own, and the threads that it makes begin with it.
    static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_value));
}

}  // namespace

// Where scrapes wait for the main thread.
class MetricsExporter::Desk : public prometheus::Collectable {
  public:
    explicit Desk(std::function<void()> wake) : wake_(std::move(wake)) {}

    // ---- CivetWeb's threads
    std::vector<prometheus::MetricFamily> Collect() const override {
        try {
            const auto books = current_books();
            if (!books) {
                return {};  // the workers are not there yet
            }
            auto families = families_of(*books);
            const std::lock_guard lock(mutex_);
            floor_.hold(families);
            return families;
        } catch (const std::exception&) {
            // Out of memory. An exception would go through CivetWeb's C; this scrape lacks figures.
            return {};
        }
    }

    // ---- the main thread
    bool is_asked() { return asked_.exchange(false, std::memory_order_relaxed); }
    void leave(std::shared_ptr<const MetricsBooks> books) {
        const std::lock_guard lock(mutex_);
        books_ = std::move(books);
        changed_.notify_all();
    }
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    // Those of this moment; older ones when the main thread does not come, none when it never did.
    std::shared_ptr<const MetricsBooks> current_books() const {
        std::unique_lock lock(mutex_);
        if (closed_ || (books_ && monotonic_ns() - books_->taken_ns < reuse_ns)) {
            return books_;
        }
        const auto before = books_;
        asked_.store(true, std::memory_order_relaxed);
        wake_();
        changed_.wait_for(lock, patience, [&] { return closed_ || books_ != before; });
        return books_;
    }

    const std::function<void()> wake_;
    mutable std::atomic<bool> asked_{false};
    mutable std::condition_variable changed_;
    mutable std::mutex mutex_;  // guards the following
    std::shared_ptr<const MetricsBooks> books_;
    bool closed_ = false;
    mutable CounterFloor floor_;
};

class MetricsExporter::Server {
  public:
    Server(const MetricsAddress& address, const std::shared_ptr<Desk>& desk) : address_(address) {
        std::exception_ptr failure;
        // CivetWeb's threads inherit the priority of the one that makes them.
        std::thread([&] {
            become_background();
            try {
                exposer_ = std::make_unique<prometheus::Exposer>(server_options(address));
                exposer_->RegisterCollectable(desk);
            } catch (const std::exception&) {
                failure = std::current_exception();
            }
        }).join();
        if (failure) {
            // It names no reason; the usual ones were looked for before.
            throw UsageError("cannot serve --metrics at " + address.text() +
                             ": its port was taken just now, or there is no memory for its "
                             "threads; give another port");
        }
        address_.port = static_cast<uint16_t>(exposer_->GetListeningPorts().at(0));
    }
    ~Server() {
        // CivetWeb looks every two seconds whether it is to end, and whenever somebody connects.
        std::atomic<bool> ended{false};
        std::thread visitor;
        try {
            visitor = std::thread([this, &ended] {
                while (!ended.load(std::memory_order_relaxed)) {
                    knock(address_);
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                }
            });
        } catch (const std::system_error&) {
            // No room for a thread: then it takes the two seconds.
        }
        exposer_.reset();
        ended.store(true, std::memory_order_relaxed);
        if (visitor.joinable()) {
            visitor.join();
        }
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    const MetricsAddress& address() const { return address_; }

  private:
    MetricsAddress address_;  // with the port that the system has chosen for 0
    std::unique_ptr<prometheus::Exposer> exposer_;
};

MetricsExporter::MetricsExporter(const MetricsAddress& address, std::function<void()> wake)
    : desk_(std::make_shared<Desk>(std::move(wake))) {
    check_can_listen(address);
    server_ = std::make_unique<Server>(address, desk_);
    address_ = server_->address().text();
}

MetricsExporter::~MetricsExporter() {
    desk_->close();
}

void MetricsExporter::update(const RunFacts& facts) {
    if (desk_->is_asked()) {
        desk_->leave(std::make_shared<const MetricsBooks>(take_metrics_books(facts)));
    }
}

void MetricsExporter::end(const RunFacts& facts) {
    desk_->leave(std::make_shared<const MetricsBooks>(take_metrics_books(facts)));
    desk_->close();
}

}  // namespace echelle
