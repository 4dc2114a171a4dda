// The metric families of one scrape, in the order in which they are first named. Names, types and
// units follow prometheus.io/docs/practices/naming: base units, counters end in _total.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

namespace echelle {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class FamilyList {
  public:
    void counter(const std::string& name, const std::string& help, double value,
                 const MetricLabels& labels = {});
    void gauge(const std::string& name, const std::string& help, double value,
               const MetricLabels& labels = {});
    // 1, for the sake of its labels, which may be any text.
    void info(const std::string& name, const std::string& help, const MetricLabels& labels);
    void histogram(const std::string& name, const std::string& help,
                   prometheus::ClientMetric::Histogram values, const MetricLabels& labels = {});

    std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

  private:
    prometheus::ClientMetric& add(const std::string& name, const std::string& help,
                                  prometheus::MetricType type, const MetricLabels& labels);

    std::vector<prometheus::MetricFamily> families_;
};

}  // namespace echelle
