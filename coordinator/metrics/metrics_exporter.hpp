// Serves /metrics to Prometheus servers, by prometheus-cpp and its CivetWeb (docs/metrics.md).
//
// Whoever scrapes costs the data path nothing: HTTP has threads of its own at a lower priority, a
// fixed number of them, which give up a client after a second. A scrape asks the main thread for
// the books of this moment, as `status` does, and writes them out in its own thread; ten times a
// second at most, whoever asks.
//
// Made, called and destroyed by the main thread, where threads may exist: after the nursery was
// forked.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "coordinator/metrics/metrics_address.hpp"
#include "coordinator/report.hpp"

namespace echelle {

class MetricsExporter {
  public:
    // Listens at once; `wake` makes the main thread call update() soon, from any thread. Throws
    // UsageError when it cannot listen.
    MetricsExporter(const MetricsAddress& address, std::function<void()> wake);
    ~MetricsExporter();
    MetricsExporter(const MetricsExporter&) = delete;
    MetricsExporter& operator=(const MetricsExporter&) = delete;

    // Takes the books if somebody waits for them. To be called every few milliseconds.
    void update(const RunFacts& facts);
    // The last books: from now on every scrape gets these.
    void end(const RunFacts& facts);

    // "127.0.0.1:9760", with the port that the system has chosen for 0.
    const std::string& address() const { return address_; }

  private:
    class Desk;
    class Server;

    std::shared_ptr<Desk> desk_;
    std::unique_ptr<Server> server_;
    std::string address_;
};

}  // namespace echelle
