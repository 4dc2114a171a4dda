// One run of the coordinator, from opened source to written report. Main thread.
#pragma once

#include "common/error.hpp"
#include "coordinator/options.hpp"

namespace echelle {

// Throws UsageError for what is wrong before the run begins. What fails later is told on standard
// error and in the report, and gives ExitCode::failed_while_running.
ExitCode run_coordinator(const Options& options);

}  // namespace echelle
