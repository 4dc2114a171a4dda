// A whole recording: packets from the input, rows to the writer, until the input ends, enough has
// been recorded or it is stopped. One for a process.
#pragma once

#include "clients/record/record_options.hpp"

namespace echelle::record {

// Asks for the end, as a signal does: from any thread or signal handler.
void stop_recording();

// Records, writes the report and says what was done. Throws UsageError and RunError.
void record_spectra(const RecordOptions& options);

}  // namespace echelle::record
