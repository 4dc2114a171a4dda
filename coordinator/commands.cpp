#include "coordinator/commands.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "coordinator/limits.hpp"

namespace echelle {
namespace {

using Request = nlohmann::json;
using Answer = nlohmann::ordered_json;

// A whole number of the request, in [least, most].
uint32_t number_in(const Request& request, const char* key, uint32_t least, uint32_t most) {
    const auto value = request.find(key);
    if (value == request.end() || !value->is_number_integer() || value->get<double>() < least ||
        value->get<double>() > most) {
        throw ControlRefusal("bad-number",
                             std::string("\"") + key + "\" must be a whole number from " +
                                 std::to_string(least) + " to " + std::to_string(most));
    }
    return value->get<uint32_t>();
}

Answer scale(const CommandTargets& targets, const Request& request) {
    Supervisor& supervisor = *targets.supervisor;
    const uint32_t workers = number_in(request, "workers", 1, supervisor.most_workers());
    try {
        check_worker_limits(workers, targets.run->options.notify);
    } catch (const UsageError& error) {
        throw ControlRefusal("beyond-limits", error.what());
    }
    const uint32_t before = supervisor.wanted();
    supervisor.scale(workers, "asked by echellectl");
    return {{"from", before}, {"to", workers}};
}

Answer drain(const CommandTargets& targets, const Request& request) {
    Supervisor& supervisor = *targets.supervisor;
    const uint32_t id = number_in(request, "id", 0, supervisor.most_workers() - 1);
    if (supervisor.wanted() <= 1) {
        throw ControlRefusal("last-worker",
                             "this is the last worker: pause or stop the run instead");
    }
    if (!supervisor.drain(static_cast<uint16_t>(id), "drained by echellectl")) {
        throw ControlRefusal("no-such-worker",
                             "worker " + std::to_string(id) + " is not running; see status");
    }
    return {{"draining", id}, {"workers", supervisor.wanted()}};
}

Answer set_paused(const CommandTargets& targets, bool paused) {
    targets.ledger->set_paused(paused);
    if (!paused) {
        targets.wake_workers();
    }
    return {{"paused", paused}};
}

double seconds_in(const Request& request) {
    constexpr double most = 1e9;
    const auto value = request.find("seconds");
    if (value == request.end() || !value->is_number() || !(value->get<double>() > 0) ||
        value->get<double>() > most) {
        throw ControlRefusal("bad-number", "\"seconds\" must be a number above 0");
    }
    return value->get<double>();
}

Answer capture(const CommandTargets& targets, const Request& request) {
    if (targets.capture == nullptr) {
        throw ControlRefusal("no-capture",
                             "this run has no directory to capture into: start it with --capture "
                             "DIR, or --capture 'DIR?start=later'");
    }
    const std::string action = request.value("action", "");
    try {
        if (action == "start") {
            targets.capture->start();
            return {{"capturing", true}};
        }
        if (action == "stop") {
            targets.capture->stop();
            return {{"capturing", false}};
        }
        if (action == "last") {
            return {{"frames", targets.capture->keep_last(seconds_in(request))}};
        }
    } catch (const CaptureRefusal& refusal) {
        throw ControlRefusal(refusal.name(), refusal.what());
    }
    throw ControlRefusal("bad-request", "\"action\" of capture is start, stop or last");
}

}  // namespace

void add_commands(Control& control, const CommandTargets& targets) {
    control.on("status", [targets](const Request&) { return make_report(*targets.facts); });
    control.on("stop", [targets](const Request&) {
        // A paused run could not finish what is in flight.
        set_paused(targets, false);
        targets.stop();
        return Answer{{"stopping", true}};
    });
    control.on("scale", [targets](const Request& request) { return scale(targets, request); });
    control.on("drain", [targets](const Request& request) { return drain(targets, request); });
    control.on("pause", [targets](const Request&) { return set_paused(targets, true); });
    control.on("capture", [targets](const Request& request) { return capture(targets, request); });
    control.on("resume", [targets](const Request&) { return set_paused(targets, false); });
}

}  // namespace echelle
