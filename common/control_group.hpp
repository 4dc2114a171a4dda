// What this process's control group allows, whichever version of control groups the machine has.
#pragma once

#include <cstdint>

namespace echelle {

// UINT64_MAX where there is no limit, or none that can be read.
uint64_t control_group_memory_left();  // bytes
uint64_t control_group_task_limit();   // processes and threads

}  // namespace echelle
