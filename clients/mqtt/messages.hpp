// What the gateway tells its operator: one line each on standard error. Any thread.
//
// Never blocks: where standard error is a pipe that nobody reads, lines are counted instead, and
// the number is told with the next one that can be written.
#pragma once

#include <string>

namespace echelle::mqtt {

void warn(const std::string& message);
// Left out after be_quiet().
void note(const std::string& message);
void be_quiet();

}  // namespace echelle::mqtt
