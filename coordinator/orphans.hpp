// Children of this process that nobody has told us of: workers that a dying nursery had forked
// without being able to say so. As the subreaper we inherit them.
#pragma once

#include <vector>

#include <sys/types.h>

namespace echelle {

// Pids of this process's children, living or not yet reaped.
std::vector<pid_t> children_of_this_process();
// Kills a child that has not been reaped, and waits until it is dead (its own children are then
// ours). Leaves it to be reaped; does nothing when it has been.
void end_child(pid_t child);

}  // namespace echelle
