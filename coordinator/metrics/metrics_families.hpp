// From the books of one moment to the families of a scrape (docs/metrics.md lists them). Any
// thread.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "coordinator/metrics/family_list.hpp"
#include "coordinator/metrics/metrics_books.hpp"

namespace echelle {

std::vector<prometheus::MetricFamily> families_of(const MetricsBooks& books);

// What the source has counted of its own troubles: those of its facts that have a metric.
void add_source_families(FamilyList& list, const nlohmann::json& facts);

}  // namespace echelle
