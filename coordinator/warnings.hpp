// Warnings and notes to the operator: one line each on standard error. Any thread.
//
// Never blocks: where standard error is a pipe that nobody reads, warnings are counted instead of
// written. A coordinator that waits for its log's reader would supervise nobody meanwhile.
#pragma once

#include <string>

namespace echelle {

void warn(const std::string& message);
// Whether a line of up to 4096 bytes can be written to standard error without waiting.
bool standard_error_takes_more();

}  // namespace echelle
