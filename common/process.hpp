// Facts about other processes that a pid alone does not tell.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace echelle {

// Start time in clock ticks since boot (field 22 of /proc/PID/stat): with the pid it names a
// process even after the pid has been used again. 0 when there is no such process, or it is dead
// and not yet reaped.
uint64_t process_start_ticks(pid_t pid);

struct ThreadActivity {
    char state = '?';  // of proc(5): R runs or could, S sleeps, D waits for a device, T is stopped
    int64_t cpu_ns = 0;  // that it has used, to some 10 ms
};
// Of a process's first thread; '?' when there is no such process.
ThreadActivity main_thread_activity(pid_t pid);

}  // namespace echelle
