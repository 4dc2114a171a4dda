#include "coordinator/metrics/family_list.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace echelle {

using prometheus::ClientMetric;
using prometheus::MetricType;

namespace {

// A file's name may be anything, but a Prometheus server refuses an answer that is not UTF-8.
std::string as_utf8(const std::string& text) {
    using Json = nlohmann::json;
    return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void FamilyList::counter(const std::string& name, const std::string& help, double value,
                         const MetricLabels& labels) {
    add(name, help, MetricType::Counter, labels).counter.value = value;
}

void FamilyList::gauge(const std::string& name, const std::string& help, double value,
                       const MetricLabels& labels) {
    add(name, help, MetricType::Gauge, labels).gauge.value = value;
}

void FamilyList::info(const std::string& name, const std::string& help,
                      const MetricLabels& labels) {
    MetricLabels readable;
    for (const auto& [label, value] : labels) {
        readable.emplace_back(label, as_utf8(value));
    }
    gauge(name, help, 1, readable);
}

void FamilyList::histogram(const std::string& name, const std::string& help,
                           ClientMetric::Histogram values, const MetricLabels& labels) {
    add(name, help, MetricType::Histogram, labels).histogram = std::move(values);
}

ClientMetric& FamilyList::add(const std::string& name, const std::string& help, MetricType type,
                              const MetricLabels& labels) {
    // The last family nearly always: those of one name are added together.
    auto family = std::find_if(families_.rbegin(), families_.rend(),
                               [&name](const auto& candidate) { return candidate.name == name; });
    if (family == families_.rend()) {
        families_.push_back({name, help, type, {}});
        family = families_.rbegin();
    }
    ClientMetric& metric = family->metric.emplace_back();
    for (const auto& [label, value] : labels) {
        metric.label.push_back({label, value});
    }
    return metric;
}

}  // namespace echelle
