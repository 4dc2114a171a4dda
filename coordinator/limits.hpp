// The machine's limits, looked at before workers are started: libzmq aborts the process when accept
// meets EMFILE, and a fork that fails half way through a start helps nobody.
#pragma once

#include <cstdint>

#include "common/wakeup.hpp"

namespace echelle {

// Raises the soft limit on open files to the hard one, then throws UsageError when `workers` need
// more descriptors, processes or threads than the limits allow.
void check_worker_limits(uint32_t workers, NotifyKind notify);

}  // namespace echelle
