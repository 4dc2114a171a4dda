// One life of the gateway: from the feed to the broker, until the run ends or it is asked to stop.
#pragma once

#include "clients/mqtt/options.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {

// Main thread. Throws UsageError before anything runs; failures while running are told on standard
// error and in the report. May end the process itself, where a thread hangs in the resolver.
ExitCode run_gateway(Options options);

}  // namespace echelle::mqtt
