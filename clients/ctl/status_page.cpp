#include "clients/ctl/status_page.hpp"

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>

#include "clients/ctl/live_terminal.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr int top_interval_ms = 500;
constexpr int most_missed_answers = 5;

template <typename... Values>
void add_line(std::string& page, const char* format, Values... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    page += line;
    page += '\n';
}

std::string dropped_text(const Json& dropped) {
    std::string text;
    for (const auto& [reason, count] : dropped.items()) {
        text += (text.empty() ? "" : "  ") + reason + " " + count.dump();
    }
    return text.empty() ? "none" : text;
}

// Blocks and busy time of a worker at the look before, to tell rates from totals.
struct Before {
    uint64_t blocks = 0;
    double busy_s = 0;
};
struct Rates {
    double seconds = 0;  // since the look before; 0: there was none
    std::map<int, Before> workers;
};

void add_summary(std::string& page, const Json& status) {
    const Json& frames = status.at("frames");
    add_line(page, "frames   in %lu  done %lu  in flight %lu  dropped: %s",
             frames.at("in").get<unsigned long>(), frames.at("done").get<unsigned long>(),
             frames.at("in_flight").get<unsigned long>(),
             dropped_text(frames.at("dropped")).c_str());
    add_line(page, "spectra  %lu (%lu incomplete)   real-time factor %.3f   ring %.0f %% full%s",
             status.at("spectra").at("out").get<unsigned long>(),
             status.at("spectra").at("incomplete").get<unsigned long>(),
             status.at("realtime_factor").get<double>(), 100 * status.at("ring_fill").get<double>(),
             status.at("paused").get<bool>() ? "   PAUSED" : "");
    const Json& time = status.at("frame_us");
    const Json& latency = time.at("latency");
    add_line(
        page,
        "frame    period %.1f us  core %.1f us  latency P50 %.0f  P90 %.0f  P99 %.0f  max %.0f us",
        time.at("period").get<double>(), time.at("core").get<double>(),
        latency.at("p50").get<double>(), latency.at("p90").get<double>(),
        latency.at("p99").get<double>(), latency.at("max").get<double>());
}

void add_workers_in_all(std::string& page, const Json& workers) {
    for (const Json& worker : workers) {
        add_line(page, "worker %-5d pid %-8d cpu %-4s %-18s blocks %-12lu busy %.2f s  lives %d",
                 worker.at("id").get<int>(), worker.at("pid").get<int>(),
                 worker.at("cpu").dump().c_str(), worker.at("state").get<std::string>().c_str(),
                 worker.at("blocks").get<unsigned long>(), worker.at("busy_s").get<double>(),
                 worker.at("incarnations").get<int>());
    }
}

void add_workers(std::string& page, const Json& workers, Rates& rates) {
    add_line(page, "%-6s %-8s %-4s %-4s %-18s %12s %9s %6s %6s %8s", "worker", "pid", "cpu", "node",
             "state", "blocks", "blocks/s", "share", "busy", "restarts");
    uint64_t all_blocks = 0;
    for (const Json& worker : workers) {
        all_blocks += worker.at("blocks").get<uint64_t>();
    }
    for (const Json& worker : workers) {
        const int id = worker.at("id").get<int>();
        const auto blocks = worker.at("blocks").get<uint64_t>();
        const double busy_s = worker.at("busy_s").get<double>();
        Before& before = rates.workers[id];
        const double seconds = rates.seconds > 0 ? rates.seconds : 1;
        const double share =
            all_blocks > 0 ? 100.0 * static_cast<double>(blocks) / static_cast<double>(all_blocks)
                           : 0;
        const int incarnations = worker.at("incarnations").get<int>();
        add_line(page, "%-6d %-8d %-4s %-4s %-18s %12lu %9.0f %5.1f%% %5.0f%% %8d", id,
                 worker.at("pid").get<int>(), worker.at("cpu").dump().c_str(),
                 worker.at("node").dump().c_str(), worker.at("state").get<std::string>().c_str(),
                 static_cast<unsigned long>(blocks),
                 rates.seconds > 0 ? static_cast<double>(blocks - before.blocks) / seconds : 0.0,
                 share, rates.seconds > 0 ? 100 * (busy_s - before.busy_s) / seconds : 0.0,
                 incarnations > 0 ? incarnations - 1 : 0);
        before = {blocks, busy_s};
    }
}

std::string top_page(const Json& status, Rates& rates) {
    std::string page;
    add_line(page, "echelle %s   %.1f s", status.at("config").at("name").get<std::string>().c_str(),
             status.at("wall_s").get<double>());
    add_summary(page, status);
    add_workers(page, status.at("workers"), rates);
    return page;
}

}  // namespace

std::string status_page(const Json& status) {
    std::string page;
    add_summary(page, status);
    add_workers_in_all(page, status.at("workers"));
    return page;
}

void watch_top(const std::function<Json()>& ask, const std::function<bool()>& is_gone) {
    Rates rates;
    double last_wall_s = 0;
    int missed = 0;                      // answers, in a row
    std::optional<Json> status = ask();  // nobody who answers: the terminal is left alone
    bool has_ended = false;
    {
        const LiveTerminal terminal;
        do {
            if (status) {
                const double wall_s = status->at("wall_s").get<double>();
                rates.seconds = last_wall_s > 0 ? wall_s - last_wall_s : 0;
                last_wall_s = wall_s;
                terminal.show(top_page(*status, rates));
            }
            if (!terminal.is_live() || terminal.wait_for_end(top_interval_ms)) {
                break;
            }
            try {
                status = ask();
                missed = 0;
            } catch (const RunError&) {
                status.reset();
                has_ended = is_gone() || ++missed == most_missed_answers;
            }
        } while (!has_ended);
    }
    if (has_ended) {
        std::puts("the run has ended");
    }
}

}  // namespace echelle
