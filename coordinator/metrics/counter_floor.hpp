// Keeps counters from falling. A fall reads as a restart to Prometheus, which then counts
// everything once more. The books themselves only grow; but what is read here and there without a
// lock (a worker's record, the CPU time of one thread beside that of all) may seem to step back by
// a little.
//
// Not shared: the owner guards it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace echelle {

class CounterFloor {
  public:
    // Raises each counter to the largest value that it has had.
    void hold(std::vector<prometheus::MetricFamily>& families);

  private:
    std::map<std::string, double> largest_;  // by name and labels
};

}  // namespace echelle
