#include "coordinator/autoscaler.hpp"

#include <cstdio>

namespace echelle {
namespace {

constexpr double backlog_high = 0.25;
constexpr double backlog_low = 0.05;
constexpr double busy_high = 0.9;
constexpr double busy_low = 0.7;

std::string percent(const char* what, double share) {
    char text[64];
    std::snprintf(text, sizeof text, "%s %.0f %%", what, 100 * share);
    return text;
}

}  // namespace

std::optional<Autoscaler::Decision> Autoscaler::look(const Look& now) {
    if (settling_ > 0) {
        --settling_;
        return std::nullopt;
    }
    const bool high = now.backlog > backlog_high || now.busy > busy_high;
    const bool low = now.workers > 1 && now.backlog < backlog_low &&
                     now.busy * now.workers / (now.workers - 1) < busy_low;
    wants_up_ = high && now.workers < most_ ? wants_up_ + 1 : 0;
    wants_down_ = low && now.workers > least_ ? wants_down_ + 1 : 0;
    if (wants_up_ < looks_up && wants_down_ < looks_down) {
        return std::nullopt;
    }
    Decision decision;
    if (wants_up_ >= looks_up) {
        decision.workers = now.workers + 1;
        decision.reason = now.backlog > backlog_high ? percent("ring backlog", now.backlog)
                                                     : percent("workers busy", now.busy);
    } else {
        decision.workers = now.workers - 1;
        decision.reason =
            percent("workers busy", now.busy) + ", " + percent("ring backlog", now.backlog);
    }
    wants_up_ = 0;
    wants_down_ = 0;
    settling_ = looks_after_change;
    return decision;
}

}  // namespace echelle
