#include "coordinator/metrics/counter_floor.hpp"

#include <algorithm>

namespace echelle {

void CounterFloor::hold(std::vector<prometheus::MetricFamily>& families) {
    for (prometheus::MetricFamily& family : families) {
        if (family.type != prometheus::MetricType::Counter) {
            continue;
        }
        for (prometheus::ClientMetric& metric : family.metric) {
            std::string key = family.name;
            for (const auto& label : metric.label) {
                key.append(1, '\0').append(label.name).append(1, '\0').append(label.value);
            }
            double& largest = largest_[key];
            largest = std::max(largest, metric.counter.value);
            metric.counter.value = largest;
        }
    }
}

}  // namespace echelle
